#include "sdp/sockets/addresses.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "sdp/sockets/real.h"
#include "sdp/sockets/shown_name.h"

namespace weft::sdp {

std::optional<Address> name_of(int fd) {
  Address address{};
  socklen_t size = sizeof address;
  if (real().getsockname(fd, &address.any, &size) != 0) return std::nullopt;
  if (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6) return std::nullopt;
  return address;
}

bool any_address(const Address& a) {
  if (a.any.sa_family == AF_INET) return a.v4.sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr);
}

bool same_address(const Address& a, const Address& b) {
  return shown_name(a).address == shown_name(b).address;
}

Address in_family(const Address& address, sa_family_t family) {
  if (address.any.sa_family != AF_INET || family != AF_INET6) return address;
  Address mapped{};
  mapped.any.sa_family = AF_INET6;
  const auto bytes = shown_name(address).address;
  std::memcpy(&mapped.v6.sin6_addr, bytes.data(), bytes.size());
  mapped.set_port(address.port());
  return mapped;
}

Address own_address(const std::shared_ptr<Session>& session) {
  Address own{};
  const sockaddr* a = rdma_get_local_addr(session->id());
  std::memcpy(&own, a, a->sa_family == AF_INET ? sizeof own.v4 : sizeof own.v6);
  return own;
}

Address this_host(const Address& any, const std::optional<Address>& own) {
  Address to = any;
  if (own && !any_address(*own) && own->any.sa_family == any.any.sa_family) {
    to = *own;
  } else if (any.any.sa_family == AF_INET) {
    to.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    to.v6.sin6_addr = in6addr_loopback;
  }
  to.set_port(any.port());
  return to;
}

bool is_one_family(int fd) {
  int only = 0;
  socklen_t size = sizeof only;
  return real().getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) == 0 && only != 0;
}

bool is_free(const Address& at, bool one_family) {
  const File probe{::socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int one = 1;
  if (!probe) return false;
  (void)real().setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const int only = one_family ? 1 : 0;  // IPv4 does not know the option
  (void)real().setsockopt(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  return ::bind(probe.get(), &at.any, at.size()) == 0;
}

}  // namespace weft::sdp
