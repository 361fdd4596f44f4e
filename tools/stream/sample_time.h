// When the first sample of a packet was taken, as far as packets of a format say so.
#pragma once

#include <cstdint>
#include <optional>

#include "stream/packet.h"

namespace weft::stream {

// Whether packets of this shape say it. RSP's do; those of other formats have a number alone.
bool tells_time(const Shape& shape);
// From one packet to the next, in ns: exact, for a slice lasts 5120 or 6400 ns. `clock`: MHz.
int64_t packet_ns(const Shape& shape, uint32_t clock);
// Nanoseconds since 1970 (UTC, without leap seconds) of the first sample of a packet that has a
// number. Nothing where packets do not tell.
std::optional<int64_t> sample_time_ns(const Shape& shape, ConstPacket packet);
// The same of the packet that comes `by` numbers later.
std::optional<int64_t> sample_time_ns(const Shape& shape, ConstPacket packet, uint64_t by);

}  // namespace weft::stream
