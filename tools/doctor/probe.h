// The datagrams that two doctors exchange: a header of 64 bytes, big-endian, and behind it bytes
// that differ from one to the next:
//
//    0  magic "WFDR"      4  version 1    5  kind       6  0, 0
//    8  token of the session              16  cookie (ping_reply), else 0
//   24  round            28  id          32  size of the datagram
//   36  source address of the ping, as a GID           52  its port      54  0
//
// A `ping` is answered by a `ping_reply` of 64 bytes, a `probe` by nothing: the client asks over
// TCP what arrived. A datagram with an unknown token is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/gid.h"
#include "wire/ip_headers.h"

namespace weft::doctor {

inline constexpr size_t kProbeHeader = 64;
inline constexpr size_t kMostDatagram = wire::kMaxUdpPayload;

struct Probe {
  enum class Kind : uint8_t { ping = 1, ping_reply = 2, probe = 3 };
  Kind kind = Kind::probe;
  uint64_t token = 0;
  uint64_t cookie = 0;  // proves, sent back over TCP, that the client receives at its address
  uint32_t round = 0;   // grows from one burst to the next
  uint32_t id = 0;      // within the round
  Gid seen;
  uint16_t seen_port = 0;

  // `size` bytes, at least kProbeHeader.
  std::vector<std::byte> encode(size_t size) const;
  // Nothing where the bytes are no whole datagram of a doctor's.
  static std::optional<Probe> parse(std::span<const std::byte> datagram);
};

}  // namespace weft::doctor
