// IPv4 multicast: groups that a receiver joins, and how packets leave for one (RFC 1112; of one
// source alone: RFC 4607).
#pragma once

#include <string>
#include <vector>

#include "port/fd.h"

namespace weft::stream {

// All functions throw kit::Failure.

struct Group {
  std::string address;
  std::string source;  // whose packets are wanted; empty: anybody's
  friend bool operator==(const Group&, const Group&) = default;
};
// "ADDRESS", "ADDRESS+N" (this group and the N behind it), each with "@SOURCE" behind it.
std::vector<Group> groups_of(const std::string& text);

bool is_multicast(const std::string& address);
// `interface`: an address of it; empty: as routes say.
void join(const port::Fd& socket, const Group& group, const std::string& interface);
// Datagrams to groups leave by this interface, and pass so many hops.
void leave_by(const port::Fd& socket, const std::string& interface, int hops);

}  // namespace weft::stream
