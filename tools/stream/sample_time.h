// When the first sample of a packet was taken, as far as packets of a format say so: those whose
// numbers are a clock.
#pragma once

#include <cstdint>
#include <optional>

#include "stream/packet.h"

namespace weft::stream {

// So many packets last so many nanoseconds.
struct PacketPeriod {
  int64_t ns = 0;  // 0: nobody knows
  int64_t packets = 1;

  bool known() const { return ns != 0; }
  // How long `n` packets last; cut off.
  int64_t times(int64_t n) const { return n / packets * ns + n % packets * ns / packets; }
  // The packet that lasts when `passed` ns have passed since the begin of packet 0.
  int64_t packet_after(int64_t passed) const;
};

// Whether packets of this shape say it.
bool tells_time(const Shape& shape);
// From one packet to the next, of those that say it.
PacketPeriod period_of(const Shape& shape, const Origin& origin);
// Nanoseconds since 1970 (UTC, without leap seconds) of the first sample of a packet that has a
// number, and of the one that comes `by` numbers later. Nothing where packets do not tell.
std::optional<int64_t> sample_time_ns(const Shape& shape, ConstPacket packet, uint64_t by = 0);

}  // namespace weft::stream
