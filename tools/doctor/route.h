// The way to another host as far as this one knows it: name, route, source address, and the index
// of the GID that leads there. And a connection to a program's port, for who asks for one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "port/address.h"

namespace weft::doctor {

// The addresses of a name or address, "fe80::1%eth0" too. Empty where there are none, and `error`
// says why.
std::vector<port::Address> addresses_of(const std::string& host, uint16_t port, std::string& error);
Finding name_not_found(const std::string& host, const std::string& error);

// What this host's routing says about an address.
struct RouteFacts {
  std::string peer;
  std::string error;                // why there is no way; else empty
  std::string source;               // address that packets leave from
  bool loopback = false;            // as 127.0.0.1
  std::string interface;            // that has it; empty where none was found
  uint32_t mtu = 0;                 // of the interface, or what the kernel knows of the way, bytes
  std::optional<size_t> gid_index;  // of the source; nothing where weft0 does not show it
  std::string first_gid;            // GID 0, which programs take unless they are told
};
// Sends nothing.
RouteFacts gather_route(const port::Address& to);
Finding check_route(const RouteFacts& facts);

// Makes a TCP connection and closes it: what listens there accepts it.
Finding check_connection(const port::Address& to, std::chrono::milliseconds timeout);

}  // namespace weft::doctor
