// The IP packets of a capture: headers that nobody sent, made up for bytes that went through a
// socket, so that programs which read captures follow them. For TCP and, for datagrams, UDP.
#pragma once

#include <array>
#include <compare>
#include <span>

#include "base/bytes.h"
#include "base/gid.h"
#include "base/io_vec.h"
#include "wire/ip_headers.h"

namespace weft::trace {

// One end of a connection. IPv4 addresses in their mapped form make IPv4 packets.
struct Endpoint {
  Gid address;
  uint16_t port = 0;
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// The control bits of RFC 9293 section 3.1.
namespace tcp_flag {
inline constexpr uint8_t kFin = 0x01;
inline constexpr uint8_t kSyn = 0x02;
inline constexpr uint8_t kRst = 0x04;
inline constexpr uint8_t kPsh = 0x08;
inline constexpr uint8_t kAck = 0x10;
}  // namespace tcp_flag

struct TcpHeader {
  uint32_t sequence = 0;
  uint32_t acknowledgment = 0;
  uint8_t flags = 0;
};

// Headers of one packet, IP and what is above it.
class Headers {
 public:
  static constexpr size_t kMost =
      wire::kIpv6Header + wire::kTcpHeader + 8;  // with the options of a SYN
  Bytes bytes() const { return {raw_.data(), size_}; }
  size_t size() const { return size_; }

 private:
  friend Headers tcp_headers(const Endpoint&, const Endpoint&, const TcpHeader&, size_t);
  friend Headers udp_headers(const Endpoint&, const Endpoint&, size_t, uint8_t);
  std::array<std::byte, kMost> raw_{};
  size_t size_ = 0;
};

// Payload of the largest packet: the total length of IPv4 has 16 bits. Captures of senders that
// leave the cutting to the adapter (GSO) have such packets, too.
inline constexpr size_t kMostPayload = 65535 - wire::kIpv4Header - wire::kTcpHeader;

// The headers in front of `payload` bytes, at most kMostPayload, of UDP what a datagram may have.
// `tos` is the type of service or traffic class, with the ECN bits. Both ends are of one family. As
// in captures of packets on their way to an adapter that completes checksums, that of TCP and UDP
// covers the pseudo-header alone: nobody has to read the payload for it. A SYN offers windows up to
// 1 GiB, so that no analysis thinks one full.
Headers tcp_headers(const Endpoint& from, const Endpoint& to, const TcpHeader& tcp, size_t payload);
Headers udp_headers(const Endpoint& from, const Endpoint& to, size_t payload, uint8_t tos = 0);

// As the end sees it whose file it is.
enum class Direction : uint8_t { out, in };
constexpr Direction reverse(Direction direction) {
  return direction == Direction::out ? Direction::in : Direction::out;
}

// One packet for the file. Views, good for the call they are handed to.
struct Packet {
  int64_t at = 0;  // ns since 1970
  Direction direction{};
  Bytes headers;
  std::span<const IoVec> payload;  // holds at least `kept` bytes
  size_t kept = 0;                 // of the payload, in the file
  size_t size = 0;                 // of the payload, as it was
};

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void packet(const Packet& packet) = 0;
};

}  // namespace weft::trace
