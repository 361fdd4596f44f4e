#include "port/adapter_port.h"

#include <cerrno>

#include "base/adapter_ports.h"
#include "port/udp_bind.h"

namespace weft::port {
namespace {

constexpr int kTries = 64;
constexpr int kBacklog = 4096;

}  // namespace

Result<PortClaim, SystemError> claim_port(uint16_t wish) {
  if (wish != 0 && !is_adapter_port(wish)) return fail(SystemError{EINVAL, "a number for no port"});
  SystemError last{EADDRINUSE, "bind"};
  for (int i = 0; i < (wish == 0 ? kTries : 1); ++i) {
    int family = AF_INET6;
    auto udp = bind_udp(Address::any(family, wish));
    if (!udp.ok()) {
      family = AF_INET;  // a host without IPv6
      udp = bind_udp(Address::any(family, wish));
      if (!udp.ok()) return fail(udp.error());
    }
    const uint16_t number = Address::of_socket(udp->get()).port();
    if (!is_adapter_port(number)) continue;
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
