#include "sdp/sockets/path.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>

#include "sdp/loop/file.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

// A datagram socket that is connected knows it, and has sent nothing.
std::optional<int> mtu_to(const Address& peer) {
  const bool v4 = peer.any.sa_family == AF_INET;
  const File probe{::socket(peer.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!probe || real().connect(probe.get(), &peer.any, peer.size()) != 0) return std::nullopt;
  int mtu = 0;
  socklen_t size = sizeof mtu;
  const int status = real().getsockopt(probe.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6,
                                       v4 ? IP_MTU : IPV6_MTU, &mtu, &size);
  return status == 0 ? std::optional{mtu} : std::nullopt;
}

// With timestamps, as Linux sends by default.
int segment_of(int mtu, const Address& peer) {
  constexpr int kMostPacket = 65535;
  constexpr int kTcp = 20 + 12;
  const bool v4 = peer.any.sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr);
  return std::min(mtu, kMostPacket) - (v4 ? 20 : 40) - kTcp;
}

}  // namespace

std::optional<int> option_of_path(int level, int name, const Address& peer) {
  const bool segment = level == IPPROTO_TCP && name == TCP_MAXSEG;
  const bool mtu = peer.any.sa_family == AF_INET ? level == IPPROTO_IP && name == IP_MTU
                                                 : level == IPPROTO_IPV6 && name == IPV6_MTU;
  if (!segment && !mtu) return std::nullopt;
  const auto known = mtu_to(peer);
  if (!known || mtu) return known;
  return segment_of(*known, peer);
}

}  // namespace weft::sdp
