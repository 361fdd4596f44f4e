#include "port/adapter_port.h"

#include <cerrno>

namespace weft::port {
namespace {

constexpr int kTries = 64;
constexpr int kBacklog = 4096;

bool fit(uint16_t number) {
  return number >= 1024 && !(number >= 24576 && number <= 32767) && number != 65535;
}

Result<Fd, SystemError> bind_udp(int family, uint16_t number) {
  Fd fd = raise(Fd{::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)});
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  if (family == AF_INET6) {
    const int off = 0;
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  const Address at = Address::any(family, number);
  if (::bind(fd.get(), at.get(), at.length) != 0) return fail(SystemError{errno, "bind"});
  return fd;
}

Address name_of(int fd) {
  Address a;
  a.length = sizeof a.storage;
  if (::getsockname(fd, a.get(), &a.length) != 0) a.length = 0;
  return a;
}

}  // namespace

Result<PortClaim, SystemError> claim_port(uint16_t wish) {
  if (wish != 0 && !fit(wish)) return fail(SystemError{EINVAL, "a number for no port"});
  SystemError last{EADDRINUSE, "bind"};
  for (int i = 0; i < (wish == 0 ? kTries : 1); ++i) {
    int family = AF_INET6;
    auto udp = bind_udp(family, wish);
    if (!udp.ok()) {
      family = AF_INET;  // a host without IPv6
      udp = bind_udp(family, wish);
      if (!udp.ok()) return fail(udp.error());
    }
    const uint16_t number = name_of(udp->get()).port();
    if (!fit(number)) continue;
    auto tcp = TcpListener::listen(Address::any(family, number), kBacklog);
    if (!tcp.ok()) {
      last = tcp.error();
      if (last.code == EADDRINUSE) continue;
      return fail(last);
    }
    return PortClaim{number, std::move(*udp), std::move(*tcp)};
  }
  return fail(last);
}

}  // namespace weft::port
