#include "port/both_ports.h"

#include <cerrno>
#include <vector>

#include "port/udp_bind.h"

namespace weft::port {

Result<BothPorts, SystemError> bind_both(const Address& at, bool only_ipv6) {
  std::vector<Fd> refused;
  for (int i = 0; i < kMostProposals; ++i) {
    auto udp = bind_udp(at, only_ipv6);
    if (!udp.ok()) return fail(udp.error());
    Address there = at;
    there.set_port(Address::of_socket(udp->get()).port());
    auto tcp = TcpListener::bind(there, only_ipv6);
    if (tcp.ok()) return BothPorts{std::move(*udp), std::move(*tcp)};
    if (tcp.error().code != EADDRINUSE) return fail(tcp.error());
    refused.push_back(std::move(*udp));
  }
  return fail(SystemError{EADDRINUSE, "bind"});
}

}  // namespace weft::port
