// Beamlets of a LOFAR station, as its Remote Station Processing boards send them ("Station Data
// Cookbook", LOFAR-ASTRON-MAN-064).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "stream/format/format.h"
#include "stream/format/station.h"

namespace weft::stream {
namespace {

constexpr auto kLittle = ByteOrder::little;
constexpr Field kVersion{"version", 0, 1, kLittle, 0, 8, "2 (16 bits alone), 3 or 4"};
constexpr Field kBoard{"board", 1, 1, kLittle, 0, 5, "of the station, a stream each"};
constexpr Field kNotValid{"error", 1, 1, kLittle, 6, 1, "1: the samples are not valid"};
constexpr Field kIs200MHz{"clock", 1, 1, kLittle, 7, 1, "0: 160 MHz, 1: 200 MHz"};
constexpr Field kBitMode{"bit_mode", 2, 1, kLittle, 0, 2, "samples of 0: 16 bits, 1: 8, 2: 4"};
constexpr Field kConfiguration{"configuration", 3, 1, kLittle, 0, 8, ""};
constexpr Field kStation{"station", 4, 2, kLittle, 0, 16, ""};
constexpr Field kBeamlets{"beamlets", 6, 1, kLittle, 0, 8, ""};
constexpr Field kSlices{"slices", 7, 1, kLittle, 0, 8, "of each beamlet, one after the other"};
constexpr Field kSecond{"second", 8, 4, kLittle, 0, 32, "since 1970; all ones: no time"};
constexpr Field kSlice{"slice", 12, 4, kLittle, 0, 32, "the first one's, in that second"};
constexpr std::array kFields{kVersion, kBoard,    kNotValid, kIs200MHz, kBitMode, kConfiguration,
                             kStation, kBeamlets, kSlices,   kSecond,   kSlice};

constexpr uint32_t kHeader = 16;
constexpr uint64_t kOldest = 2;  // version; it has no bit mode
constexpr uint64_t kUsual = 3;
constexpr uint64_t kNewest = 4;
constexpr uint32_t kBoards = 4;  // of a station, each with a stream of its own
constexpr std::array<uint32_t, 4> kBits{16, 8, 4, 0};  // by bit mode

uint64_t bit_mode(const Shape& shape) {
  return static_cast<uint64_t>(std::find(kBits.begin(), kBits.end(), shape.bits) - kBits.begin());
}
bool is_known(uint64_t version) {
  return version >= kOldest && version <= kNewest;
}
uint32_t bits_in(const std::byte* p) {
  return kVersion.get(p) == kOldest ? 16 : kBits[kBitMode.get(p)];
}

uint64_t hertz(uint32_t megahertz) {
  return uint64_t{megahertz} * 1'000'000;
}
uint32_t clock_in(const std::byte* p) {
  return kIs200MHz.get(p) != 0 ? 200 : 160;
}

// The slice that is the first to begin in second `second`, or later. A second has 195312.5 of them
// at 200 MHz, and 156250 at 160 MHz.
uint64_t first_slice_of(uint64_t second, uint32_t clock) {
  return (second * hertz(clock) + kSamplesPerSlice / 2) / kSamplesPerSlice;
}

void write_time(uint64_t slice, uint32_t clock, std::byte* p) {
  const uint64_t second = slice * kSamplesPerSlice / hertz(clock);
  kSecond.put(p, second);
  kSlice.put(p, slice - first_slice_of(second, clock));
}
uint64_t slice_in(const std::byte* p) {
  return first_slice_of(kSecond.get(p), clock_in(p)) + kSlice.get(p);
}

std::vector<Field> fields(const Shape&) {
  return {kFields.begin(), kFields.end()};
}

uint32_t header_bytes(const Shape&) {
  return kHeader;
}
void check(const Shape& shape) {
  check_station(shape, kBeamlets.most(), kSlices.most());
}

void write(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  const uint32_t clock = station_clock(shape);
  std::memset(p, 0, kHeader);
  kVersion.put(p, kUsual);
  kBoard.put(p, stream % kBoards);
  kIs200MHz.put(p, clock == 200 ? 1 : 0);
  kBitMode.put(p, bit_mode(shape));
  kStation.put(p, 1 + stream / kBoards);
  kBeamlets.put(p, shape.beamlets);
  kSlices.put(p, shape.slices);
  write_time(number * shape.slices, clock, p);
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  write_time(slice_in(p) + by * shape.slices, clock_in(p), p);
}

bool has_time(const std::byte* p, uint32_t clock) {
  const uint64_t second = kSecond.get(p);
  const uint64_t slices = first_slice_of(second + 1, clock) - first_slice_of(second, clock);
  return second != kSecond.most() && kSlice.get(p) < slices;
}

Header read(const Shape& shape, ConstPacket packet) {
  const std::byte* p = packet.data();
  if (!is_known(kVersion.get(p))) return {.verdict = Verdict::wrong_kind};
  if (bits_in(p) != shape.bits || kBeamlets.get(p) != shape.beamlets ||
      kSlices.get(p) != shape.slices) {
    return {.verdict = Verdict::wrong_shape};
  }
  const uint32_t clock = clock_in(p);
  if (!has_time(p, clock)) return {.verdict = Verdict::no_time};
  return {.verdict = shape.clock != 0 && shape.clock != clock ? Verdict::foreign
                     : kNotValid.get(p) != 0                  ? Verdict::flagged
                                                              : Verdict::good,
          .number = slice_in(p) / shape.slices,
          .origin = {.station = static_cast<uint32_t>(kStation.get(p)),
                     .unit = static_cast<uint32_t>(kBoard.get(p)),
                     .clock = clock}};
}

std::string why_none(const Shape& shape, ConstPacket packet) {
  const std::byte* p = packet.data();
  if (!is_known(kVersion.get(p))) {
    return fmt::format("version {}, not {} to {}", kVersion.get(p), kOldest, kNewest);
  }
  if (bits_in(p) != shape.bits) {
    return fmt::format("{} bits, not {} (--bits)", bits_in(p), shape.bits);
  }
  if (kBeamlets.get(p) != shape.beamlets) {
    return fmt::format("{} beamlets, not {} (--beamlets)", kBeamlets.get(p), shape.beamlets);
  }
  if (kSlices.get(p) != shape.slices) {
    return fmt::format("{} slices, not {} (--slices)", kSlices.get(p), shape.slices);
  }
  if (!has_time(p, clock_in(p))) {
    return fmt::format("second {} and slice {}: its board has no time", kSecond.get(p),
                       kSlice.get(p));
  }
  return fmt::format("a clock of {} MHz, not {} (--clock)", clock_in(p), shape.clock);
}

int64_t time_ns(const Shape&, const std::byte* p) {
  return static_cast<int64_t>(slice_in(p)) * slice_ns(clock_in(p));
}
PacketPeriod period(const Shape& shape, const Origin& origin) {
  return {.ns = slice_ns(origin.clock) * shape.slices};
}

}  // namespace

constinit const FormatRules kRsp{.name = "rsp",
                                 .unit = "board",
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
