#include "port/udp_bind.h"
#include "port/calls.h"

#include <cerrno>

#include "port/socket_option.h"

namespace weft::port {
namespace {

Result<Fd, SystemError> udp_socket(int family) {
  Fd fd = raise(Fd{calls::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)});
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  return fd;
}

}  // namespace

Result<Fd, SystemError> bind_udp(const Address& at, bool only_ipv6) {
  auto fd = udp_socket(at.family());
  if (!fd.ok()) return fd;
  set_families(fd->get(), at, only_ipv6);
  if (::bind(fd->get(), at.get(), at.length) != 0) return fail(SystemError{errno, "bind"});
  return fd;
}

Result<Fd, SystemError> bind_group(const Address& group, uint32_t interface) {
  auto fd = udp_socket(group.family());
  if (!fd.ok()) return fd;
  set_option(fd->get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set_families(fd->get(), group, true);
  // Or else the kernel would hand over what another socket of this host has joined.
  if (group.family() == AF_INET6) {
    set_option(fd->get(), IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  } else {
    set_option(fd->get(), IPPROTO_IP, IP_MULTICAST_ALL, 0);
  }
  Address at = group;
  if (at.family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&at.storage)->sin6_scope_id = interface;
  }
  if (::bind(fd->get(), at.get(), at.length) != 0) return fail(SystemError{errno, "bind"});
  return fd;
}

int join_group(int fd, const Address& group, const Gid& local, uint32_t interface) {
  int done = 0;
  if (group.family() == AF_INET6) {
    ipv6_mreq request{};
    request.ipv6mr_multiaddr = reinterpret_cast<const sockaddr_in6*>(&group.storage)->sin6_addr;
    request.ipv6mr_interface = interface;
    done = ::setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
  } else {
    ip_mreqn request{};
    request.imr_multiaddr = reinterpret_cast<const sockaddr_in*>(&group.storage)->sin_addr;
    request.imr_address.s_addr = htonl(local.ipv4());
    request.imr_ifindex = static_cast<int>(interface);
    done = ::setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
  }
  // Two addresses of one interface.
  return done == 0 || errno == EADDRINUSE ? 0 : errno;
}

}  // namespace weft::port
