// What is said of each datagram beside its bytes: control messages to the kernel and from it.

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cstring>

#include "port/route.h"
#include "port/socket_option.h"
#include "port/udp_socket.h"

namespace weft::port {
namespace {

bool sends_from_itself(const Gid& own) {
  const auto source = source_towards(Address::from_gid(own, 0), {});
  return source.ok() && source->gid() == own;
}

}  // namespace

// Would the kernel choose this source by itself? To name it costs 50 ns for each call.
bool UdpSocket::chosen_anyway(const Gid& from, const Gid& to) {
  if (from != to || from.is_link_local()) return false;
  if (own_source_.to_ask(from)) own_source_.answered(sends_from_itself(from));
  return own_source_.taken();
}

// Does the datagram itself have to say its hop limit? To a group it has: what the socket gives is
// for single hosts.
bool UdpSocket::says_hops(uint8_t hops, const Gid& to) {
  using Say = UsualTtl::Say;
  if (!to.is_ipv4() || IN_MULTICAST(to.ipv4())) return hops != UsualTtl::kKernels;
  const Say say = ttl_.said(hops);
  if (say == Say::to_socket) {
    set_option(fd_.get(), IPPROTO_IP, IP_TTL, hops != UsualTtl::kKernels ? hops : -1);
  }
  return say == Say::with_datagram;
}

size_t UdpSocket::write_control(MutableBytes control, const Train& train, size_t segment) {
  size_t used = 0;
  // Not by CMSG_NXTHDR(), which wants all of it zeroed before.
  const auto put = [&](int level, int type, const auto& value) {
    const cmsghdr header{
        .cmsg_len = CMSG_LEN(sizeof value), .cmsg_level = level, .cmsg_type = type};
    std::memcpy(&control[used], &header, sizeof header);
    std::memcpy(&control[used + CMSG_LEN(0)], &value, sizeof value);
    used += CMSG_SPACE(sizeof value);
  };
  if (segment != 0) put(SOL_UDP, UDP_SEGMENT, static_cast<uint16_t>(segment));
  const Gid to = train.to->gid();
  const bool ipv4 = to.is_ipv4();
  if (!train.from.is_zero() && !chosen_anyway(train.from, to)) {
    // Towards IPv4 in its own form, also from a dual-stack socket: what is shorter than 37 bytes
    // costs the kernel no allocation.
    if (ipv4 && train.from.is_ipv4()) {
      in_pktinfo info{};
      info.ipi_spec_dst.s_addr = htonl(train.from.ipv4());
      info.ipi_ifindex = static_cast<int>(train.interface);
      put(IPPROTO_IP, IP_PKTINFO, info);
    } else {
      in6_pktinfo info{};
      std::memcpy(&info.ipi6_addr, train.from.raw.data(), sizeof info.ipi6_addr);
      info.ipi6_ifindex = train.interface;
      put(IPPROTO_IPV6, IPV6_PKTINFO, info);
    }
  }
  if (train.tos != 0) {
    const int tos = train.tos;
    if (ipv4) {
      put(IPPROTO_IP, IP_TOS, tos);
    } else {
      put(IPPROTO_IPV6, IPV6_TCLASS, tos);
    }
  }
  if (says_hops(train.hop_limit, to)) {
    const int limit = train.hop_limit;
    if (ipv4) {
      put(IPPROTO_IP, IP_TTL, limit);
    } else {
      put(IPPROTO_IPV6, IPV6_HOPLIMIT, limit);
    }
  }
  return used;
}

void UdpSocket::read_control(msghdr& header, Received& r) {
  // Levels and types of the kernel's are small numbers.
  constexpr auto kind = [](int level, int type) { return level << 16 | type; };
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    const auto get = [&](auto& value) {
      if (c->cmsg_len >= CMSG_LEN(sizeof value)) std::memcpy(&value, CMSG_DATA(c), sizeof value);
    };
    int number = 0;
    switch (kind(c->cmsg_level, c->cmsg_type)) {
      case kind(IPPROTO_IPV6, IPV6_PKTINFO): {
        in6_pktinfo info{};
        get(info);
        std::memcpy(r.to.raw.data(), &info.ipi6_addr, r.to.raw.size());
        r.interface = info.ipi6_ifindex;
        break;
      }
      case kind(IPPROTO_IP, IP_PKTINFO): {
        in_pktinfo info{};
        get(info);
        r.to = Gid::from_ipv4(ntohl(info.ipi_addr.s_addr));
        r.interface = static_cast<uint32_t>(info.ipi_ifindex);
        break;
      }
      case kind(IPPROTO_IP, IP_TOS):
        get(r.tos);
        break;
      case kind(IPPROTO_IPV6, IPV6_TCLASS):
        get(number);
        r.tos = static_cast<uint8_t>(number);
        break;
      case kind(IPPROTO_IP, IP_TTL):
      case kind(IPPROTO_IPV6, IPV6_HOPLIMIT):
        get(number);
        r.hop_limit = static_cast<uint8_t>(number);
        break;
      case kind(SOL_UDP, UDP_GRO):
        get(number);
        if (number > 0) r.segment = static_cast<size_t>(number);
        break;
      default:
        break;
    }
  }
}

}  // namespace weft::port
