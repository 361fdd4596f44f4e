// What is asked of a socket's kernel side beside its bytes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "port/address.h"

namespace weft::port {

// Options that tune, or that not every kernel has: where one is refused the bytes move all the
// same.
inline void set_option(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

// Before a socket is bound to `at`. The IPv6 wildcard means both families, unless `only_ipv6`; a
// given IPv6 address means itself, and a mapped one cannot be bound otherwise than with both.
inline void set_families(int fd, const Address& at, bool only_ipv6) {
  if (at.family() != AF_INET6) return;
  const bool both = !only_ipv6 && (at.is_any() || at.gid().is_ipv4());
  set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, both ? 0 : 1);
}

}  // namespace weft::port
