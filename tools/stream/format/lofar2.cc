// Beamlets of a LOFAR 2.0 station, as its Station Digital Processor sends them. Its interface
// document is not public. This table is partly from memory: sizes and order of the fields are those
// that weft's authors remember of the software around the stations. Nobody has compared it with the
// document, or with a packet of a station.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "stream/format/format.h"
#include "stream/format/station.h"

namespace weft::stream {
namespace {

constexpr auto kBig = ByteOrder::big;
constexpr Field kMarker{"marker", 0, 1, kBig, 0, 8, "'b'"};
constexpr Field kVersion{"version", 1, 1, kBig, 0, 8, "any"};
constexpr Field kObservation{"observation", 2, 4, kBig, 0, 32, ""};
constexpr Field kStation{"station", 6, 2, kBig, 0, 16, "with its antenna field"};
constexpr Field kSource{"source_info", 8, 3, kBig, 0, 24, "not looked at"};
constexpr Field kReserved{"reserved", 11, 4, kBig, 0, 32, ""};
constexpr Field kScale{"beamlet_scale", 15, 2, kBig, 0, 16, ""};
constexpr Field kFirstBeamlet{"beamlet_index", 17, 2, kBig, 0, 16, "the first one's"};
constexpr Field kBlocks{"blocks", 19, 1, kBig, 0, 8, "slices of each beamlet"};
constexpr Field kBeamlets{"beamlets", 20, 2, kBig, 0, 16, ""};
constexpr Field kPeriod{"block_period", 22, 2, kBig, 0, 16, "ns of a slice"};
constexpr Field kSerial{"block_serial_number", 24, 8, kBig, 0, 64, "the first slice's, since 1970"};
constexpr std::array kFields{kMarker, kVersion,      kObservation, kStation,  kSource, kReserved,
                             kScale,  kFirstBeamlet, kBlocks,      kBeamlets, kPeriod, kSerial};

constexpr uint32_t kHeader = 32;
constexpr uint64_t kTheMarker = 'b';
constexpr uint64_t kOurVersion = 5;

// MHz; 0 where the slices are of no clock that a station has.
uint32_t clock_in(const std::byte* p) {
  for (const uint32_t clock : {200U, 160U}) {
    if (kPeriod.get(p) == static_cast<uint64_t>(slice_ns(clock))) return clock;
  }
  return 0;
}

std::vector<Field> fields(const Shape&) {
  return {kFields.begin(), kFields.end()};
}
uint32_t header_bytes(const Shape&) {
  return kHeader;
}
void check(const Shape& shape) {
  check_station(shape, kBeamlets.most(), kBlocks.most());
}

void write(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  std::memset(p, 0, kHeader);
  kMarker.put(p, kTheMarker);
  kVersion.put(p, kOurVersion);
  kStation.put(p, 1 + stream);
  kBlocks.put(p, shape.slices);
  kBeamlets.put(p, shape.beamlets);
  kPeriod.put(p, static_cast<uint64_t>(slice_ns(station_clock(shape))));
  kSerial.put(p, number * shape.slices);
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  kSerial.put(p, kSerial.get(p) + by * shape.slices);
}

Header read(const Shape& shape, ConstPacket packet) {
  const std::byte* const p = packet.data();
  if (kMarker.get(p) != kTheMarker) return {.verdict = Verdict::wrong_kind};
  if (kBlocks.get(p) != shape.slices || kBeamlets.get(p) != shape.beamlets) {
    return {.verdict = Verdict::wrong_shape};
  }
  const uint32_t clock = clock_in(p);
  return {.verdict = shape.clock != 0 && shape.clock != clock ? Verdict::foreign : Verdict::good,
          .number = kSerial.get(p) / shape.slices,
          .origin = {.station = static_cast<uint32_t>(kStation.get(p)),
                     .unit = static_cast<uint32_t>(kFirstBeamlet.get(p)),
                     .clock = clock}};
}

std::string why_none(const Shape& shape, ConstPacket packet) {
  const std::byte* const p = packet.data();
  if (kMarker.get(p) != kTheMarker) {
    return fmt::format("the marker {:#04x}, not {:#04x}", kMarker.get(p), kTheMarker);
  }
  if (kBlocks.get(p) != shape.slices) {
    return fmt::format("{} blocks, not {} (--slices)", kBlocks.get(p), shape.slices);
  }
  if (kBeamlets.get(p) != shape.beamlets) {
    return fmt::format("{} beamlets, not {} (--beamlets)", kBeamlets.get(p), shape.beamlets);
  }
  if (clock_in(p) != shape.clock && shape.clock != 0) {
    return fmt::format("slices of {} ns, not of a clock of {} MHz (--clock)", kPeriod.get(p),
                       shape.clock);
  }
  return fmt::format("the block {}", kSerial.get(p));
}

// What a header says that a slice lasts, whether or not a station has such a clock.
int64_t time_ns(const Shape&, const std::byte* p) {
  return static_cast<int64_t>(kSerial.get(p) * kPeriod.get(p));
}
PacketPeriod period(const Shape& shape, const Origin& origin) {
  if (origin.clock == 0) return {};
  return {.ns = slice_ns(origin.clock) * shape.slices};
}

}  // namespace

constinit const FormatRules kLofar2{.name = "lofar2",
                                    .unit = "beamlet_index",
                                    .fields = fields,
                                    .header_bytes = header_bytes,
                                    .payload_bytes = station_payload_bytes,
                                    .check = check,
                                    .essentials = station_essentials,
                                    .packets_per_second = station_pace,
                                    .read = read,
                                    .write = write,
                                    .advance = advance,
                                    .explain = why_none,
                                    .time_ns = time_ns,
                                    .period = period};

}  // namespace weft::stream
