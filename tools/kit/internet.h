// IPv4 addresses of the sockets that weft is compared with.
#pragma once

#include <netinet/in.h>

#include <string>

#include "port/fd.h"

namespace weft::kit {

// All throw Failure.
sockaddr_in address_of(const std::string& text, uint16_t port);
inline const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}
// Bound to this address and any port. `type` as of socket(2).
port::Fd new_socket(const std::string& own_address, int type);
uint16_t port_of(const port::Fd& socket);

}  // namespace weft::kit
