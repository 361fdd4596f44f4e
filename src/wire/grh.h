// Global routing header as UD receivers find it in front of their data (InfiniBand 8.3;
// spec/wdp-ud 3.2). It never is on weft's wire: the receiver makes it from what it knows of the
// datagram.
//
//    0                                       4         6         7         8        24        40
//   +-----+---------------+-----------------+---------+---------+---------+---------+---------+
//   |IPver| traffic class | flow label (20) | payload | next    | hop     | SGID    | DGID    |
//   | 6   |               | 0               | length  | header  | limit   |         |         |
//   +-----+---------------+-----------------+---------+---------+---------+---------+---------+
#pragma once

#include "base/bytes.h"
#include "base/gid.h"

namespace weft::wire {

struct Grh {
  static constexpr size_t kSize = 40;
  static constexpr uint8_t kNextHeader = 0x1b;

  uint8_t traffic_class = 0;
  uint16_t payload_length = 0;
  uint8_t hop_limit = 0;
  Gid source;
  Gid destination;

  // Writes kSize bytes.
  void encode(std::byte* p) const {
    store_be(p, uint32_t{6} << 28 | uint32_t{traffic_class} << 20);
    store_be(p + 4, payload_length);
    p[6] = std::byte{kNextHeader};
    p[7] = static_cast<std::byte>(hop_limit);
    std::memcpy(p + 8, source.raw.data(), source.raw.size());
    std::memcpy(p + 24, destination.raw.data(), destination.raw.size());
  }
  static Grh parse(const std::byte* p) {
    Grh g{.traffic_class = static_cast<uint8_t>(load_be<uint32_t>(p) >> 20),
          .payload_length = load_be<uint16_t>(p + 4),
          .hop_limit = std::to_integer<uint8_t>(p[7])};
    std::memcpy(g.source.raw.data(), p + 8, g.source.raw.size());
    std::memcpy(g.destination.raw.data(), p + 24, g.destination.raw.size());
    return g;
  }
  friend constexpr bool operator==(const Grh&, const Grh&) = default;
};

}  // namespace weft::wire
