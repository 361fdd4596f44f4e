#include "trace/packet.h"

namespace weft::trace {
namespace {

constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;
constexpr uint8_t kTimeToLive = 64;
constexpr uint16_t kDontFragment = 0x4000;
// RFC 9293 section 3.1 and RFC 7323 section 2.2: maximum segment size, window scale, end.
constexpr size_t kSynOptionsSize = 8;
constexpr uint8_t kWindowScale = 14;
constexpr uint16_t kWindow = 0xffff;

void put8(std::byte* at, size_t offset, unsigned v) {
  at[offset] = static_cast<std::byte>(v);
}
void put16(std::byte* at, size_t offset, size_t v) {
  store_be(at + offset, static_cast<uint16_t>(v));
}

// The sum of RFC 1071 over whole words, not folded.
uint32_t sum_words(const std::byte* p, size_t n) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < n; i += 2) sum += load_be<uint16_t>(p + i);
  return sum;
}
uint16_t fold(uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

// Returns the size of the IP header; `above` is what follows it. And the sum of the pseudo-header
// (RFC 9293 section 3.1, RFC 8200 section 8.1).
struct IpPart {
  size_t size;
  uint16_t pseudo_sum;
};
IpPart put_ip(std::byte* at, const Endpoint& from, const Endpoint& to, uint8_t protocol,
              size_t above, uint8_t tos) {
  if (from.address.is_ipv4()) {
    put8(at, 0, 0x45);
    put8(at, 1, tos);
    put16(at, 2, wire::kIpv4Header + above);
    put16(at, 6, kDontFragment);
    put8(at, 8, kTimeToLive);
    put8(at, 9, protocol);
    std::memcpy(at + 12, from.address.raw.data() + 12, 4);
    std::memcpy(at + 16, to.address.raw.data() + 12, 4);
    put16(at, 10, static_cast<uint16_t>(~fold(sum_words(at, wire::kIpv4Header))));
    const auto length = static_cast<uint32_t>(above);
    return {wire::kIpv4Header, fold(sum_words(at + 12, 8) + protocol + length)};
  }
  put8(at, 0, 0x60 | tos >> 4);
  put8(at, 1, (tos & 0x0fU) << 4);
  put16(at, 4, above);
  put8(at, 6, protocol);
  put8(at, 7, kTimeToLive);
  std::memcpy(at + 8, from.address.raw.data(), 16);
  std::memcpy(at + 24, to.address.raw.data(), 16);
  return {wire::kIpv6Header, fold(sum_words(at + 8, 32) + protocol + static_cast<uint32_t>(above))};
}

}  // namespace

Headers tcp_headers(const Endpoint& from, const Endpoint& to, const TcpHeader& tcp,
                    size_t payload) {
  Headers h;
  const bool syn = (tcp.flags & tcp_flag::kSyn) != 0;
  const size_t size = wire::kTcpHeader + (syn ? kSynOptionsSize : 0);
  const IpPart ip = put_ip(h.raw_.data(), from, to, kTcp, size + payload, 0);
  std::byte* at = h.raw_.data() + ip.size;
  put16(at, 0, from.port);
  put16(at, 2, to.port);
  store_be(at + 4, tcp.sequence);
  store_be(at + 8, tcp.acknowledgment);
  put8(at, 12, static_cast<unsigned>(size / 4) << 4);
  put8(at, 13, tcp.flags);
  put16(at, 14, kWindow);
  put16(at, 16, ip.pseudo_sum);
  if (syn) {
    put8(at, 20, 2);
    put8(at, 21, 4);
    put16(at, 22, kMostPayload);
    put8(at, 24, 3);
    put8(at, 25, 3);
    put8(at, 26, kWindowScale);
  }
  h.size_ = ip.size + size;
  return h;
}

Headers udp_headers(const Endpoint& from, const Endpoint& to, size_t payload, uint8_t tos) {
  Headers h;
  const IpPart ip = put_ip(h.raw_.data(), from, to, kUdp, wire::kUdpHeader + payload, tos);
  std::byte* at = h.raw_.data() + ip.size;
  put16(at, 0, from.port);
  put16(at, 2, to.port);
  put16(at, 4, wire::kUdpHeader + payload);
  put16(at, 6, ip.pseudo_sum);
  h.size_ = ip.size + wire::kUdpHeader;
  return h;
}

}  // namespace weft::trace
