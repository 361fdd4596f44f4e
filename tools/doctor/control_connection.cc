#include "doctor/control_connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <array>

#include "device/system.h"
#include "wire/ip_headers.h"

namespace weft::doctor {

bool ControlConnection::fetch() {
  std::array<char, 4096> piece{};
  for (;;) {
    const IoVec place{piece.data(), piece.size()};
    const auto t = stream_.receive({&place, 1});
    if (t.would_block) return true;
    if (t.end || t.error != 0) return false;
    received_.add({piece.data(), t.bytes});
    // The rest can wait until this has been looked at.
    if (received_.full()) return true;
  }
}

std::optional<nlohmann::json> ControlConnection::next() {
  auto document = received_.next();
  if (document && !document->is_object()) throw kit::Failure("a line is no JSON object");
  return document;
}

bool ControlConnection::send_text(const std::string& text) {
  unsent_ += text;
  return flush();
}

bool ControlConnection::flush() {
  while (!unsent_.empty()) {
    const IoVec piece{unsent_.data(), unsent_.size()};
    const auto t = stream_.send({&piece, 1});
    if (t.would_block) return true;
    if (t.error != 0) return false;
    unsent_.erase(0, t.bytes);
  }
  return true;
}

SegmentState segment_state(const port::TcpStream& stream) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(stream.fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  constexpr uint32_t kTimestamps = 12;
  const size_t headers = wire::kTcpHeader + wire::ip_header(stream.local().gid().is_ipv4());
  const uint32_t options = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0 ? kTimestamps : 0;
  return {.mss = info.tcpi_snd_mss,
          .packet = info.tcpi_snd_mss + options + static_cast<uint32_t>(headers),
          .retransmits = info.tcpi_retransmits,
          .unacknowledged = info.tcpi_unacked};
}

uint32_t interface_mtu(const Gid& local, uint32_t otherwise) {
  for (const device::LocalAddress& a : device::local_addresses()) {
    if (a.gid == local) return a.link_mtu;
  }
  return otherwise;
}

uint32_t mtu_towards(const port::Address& to) {
  // IPv4 in its own form: a socket of IPv6 is not told of it.
  const port::Address at = port::Address::from_gid(to.gid(), to.port(), to.scope());
  const bool ipv4 = at.family() == AF_INET;
  const port::Fd fd{::socket(at.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  int mtu = 0;
  socklen_t length = sizeof mtu;
  if (!fd.valid() || ::connect(fd.get(), at.get(), at.length) != 0 ||
      ::getsockopt(fd.get(), ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu,
                   &length) != 0) {
    return 0;
  }
  return static_cast<uint32_t>(std::max(mtu, 0));
}

}  // namespace weft::doctor
