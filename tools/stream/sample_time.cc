#include "stream/sample_time.h"

#include "stream/format/format.h"

namespace weft::stream {

int64_t PacketPeriod::packet_after(int64_t passed) const {
  const int64_t whole = passed / ns * packets;
  int64_t n = whole + passed % ns * packets / ns;
  // times() is cut off, and so a packet may begin within the nanosecond before.
  while (times(n + 1) <= passed) ++n;
  return n;
}

bool tells_time(const Shape& shape) {
  return rules_of(shape.format).time_ns != nullptr;
}

PacketPeriod period_of(const Shape& shape, const Origin& origin) {
  return tells_time(shape) ? rules_of(shape.format).period(shape, origin) : PacketPeriod{};
}

std::optional<int64_t> sample_time_ns(const Shape& shape, ConstPacket packet, uint64_t by) {
  if (!tells_time(shape)) return std::nullopt;
  const Header header = read_header(shape, packet);
  if (!header.has_number()) return std::nullopt;
  return rules_of(shape.format).time_ns(shape, packet.data()) +
         period_of(shape, header.origin).times(static_cast<int64_t>(by));
}

}  // namespace weft::stream
