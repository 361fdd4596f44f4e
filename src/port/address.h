// Where a socket is: IP address, scope and port. Value type.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "base/gid.h"

namespace weft::port {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  // `scope`: interface index, for link-local IPv6 addresses alone (connect(2) gives EINVAL without
  // it).
  static Address from_gid(const Gid& gid, uint16_t port, uint32_t scope = 0);
  // The same for a dual-stack socket: IPv4 in its mapped form.
  static Address from_gid_as_ipv6(const Gid& gid, uint16_t port, uint32_t scope = 0);
  // The name of a socket; not valid() where it has none, and errno says why.
  static Address of_socket(int fd);
  // Any address of this host, dual-stack where IPv6 exists.
  static Address any(int family, uint16_t port);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  bool valid() const { return length != 0; }
  uint16_t port() const;
  void set_port(uint16_t port);
  Gid gid() const;
  uint32_t scope() const;
  bool is_any() const;
  // "192.0.2.1:7471", "[2001:db8::1]:7471".
  std::string to_string() const;
};

}  // namespace weft::port
