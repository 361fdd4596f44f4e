// Addresses on the command line of `weft stream`. What can never be one ends the command at once,
// where a sender would otherwise wait for a receiver that cannot come.
#pragma once

#include <cstdint>
#include <string>

namespace weft::stream {

// --bind: empty, or an IPv4 address that this host has now; later on it may come and go. Ends the
// command as wrong usage, or throws kit::Failure.
void check_own_address(const std::string& address);

// Where a receiver is: ADDRESS or ADDRESS:PORT, and ADDRESS:PORT alone if `with_port`. ADDRESS is
// IPv4 or the name of a host; resolve() finds out later whether there is such a host. Else wrong
// usage of `option`.
void check_place(const char* option, const std::string& place, bool with_port);

// An address of either family; else wrong usage of `option`.
void check_address(const char* option, const std::string& address);

// So many streams have a port each, from `first` on; else wrong usage of `option`.
void check_ports(const char* option, uint32_t first, uint32_t streams);

}  // namespace weft::stream
