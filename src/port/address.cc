#include "port/address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace weft::port {
namespace {

sockaddr_in& v4(sockaddr_storage& s) {
  return reinterpret_cast<sockaddr_in&>(s);
}
const sockaddr_in& v4(const sockaddr_storage& s) {
  return reinterpret_cast<const sockaddr_in&>(s);
}
sockaddr_in6& v6(sockaddr_storage& s) {
  return reinterpret_cast<sockaddr_in6&>(s);
}
const sockaddr_in6& v6(const sockaddr_storage& s) {
  return reinterpret_cast<const sockaddr_in6&>(s);
}

}  // namespace

Address Address::from_gid(const Gid& gid, uint16_t port, uint32_t scope) {
  if (!gid.is_ipv4()) return from_gid_as_ipv6(gid, port, scope);
  Address a;
  v4(a.storage).sin_family = AF_INET;
  v4(a.storage).sin_addr.s_addr = htonl(gid.ipv4());
  a.length = sizeof(sockaddr_in);
  a.set_port(port);
  return a;
}

Address Address::from_gid_as_ipv6(const Gid& gid, uint16_t port, uint32_t scope) {
  Address a;
  v6(a.storage).sin6_family = AF_INET6;
  std::memcpy(&v6(a.storage).sin6_addr, gid.raw.data(), gid.raw.size());
  if (gid.is_link_local()) v6(a.storage).sin6_scope_id = scope;
  a.length = sizeof(sockaddr_in6);
  a.set_port(port);
  return a;
}

Address Address::any(int family, uint16_t port) {
  Address a;
  a.storage.ss_family = static_cast<sa_family_t>(family);
  a.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  a.set_port(port);
  return a;
}

Address Address::of_socket(int fd) {
  Address a;
  a.length = sizeof a.storage;
  if (::getsockname(fd, a.get(), &a.length) != 0) a.length = 0;
  return a;
}

uint16_t Address::port() const {
  return ntohs(family() == AF_INET6 ? v6(storage).sin6_port : v4(storage).sin_port);
}

void Address::set_port(uint16_t port) {
  (family() == AF_INET6 ? v6(storage).sin6_port : v4(storage).sin_port) = htons(port);
}

Gid Address::gid() const {
  if (family() != AF_INET6) return Gid::from_ipv4(ntohl(v4(storage).sin_addr.s_addr));
  Gid g;
  std::memcpy(g.raw.data(), &v6(storage).sin6_addr, g.raw.size());
  return g;
}

uint32_t Address::scope() const {
  return family() == AF_INET6 ? v6(storage).sin6_scope_id : 0;
}

bool Address::is_any() const {
  const Gid g = gid();
  return g.is_ipv4() ? g.ipv4() == INADDR_ANY : g.is_zero();
}

std::string Address::to_string() const {
  if (!valid()) return "no address";
  const Gid g = gid();
  const std::string host = g.to_string();
  return (g.is_ipv4() ? host : "[" + host + "]") + ":" + std::to_string(port());
}

}  // namespace weft::port
