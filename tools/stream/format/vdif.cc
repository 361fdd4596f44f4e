// Frames of VLBI ("VLBI Data Interchange Format (VDIF) Specification", release 1.1.1, 2014), as
// they are, or behind the sequence number of VTP over UDP ("VTP: VDIF Transport Protocol", release
// 1.0.0, 2013).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "bench/failure.h"
#include "stream/format/format.h"

namespace weft::stream {
namespace {

// VDIF's header is words of 4 bytes.
constexpr Field row(std::string_view name, uint32_t at, uint32_t shift, uint32_t bits,
                    std::string_view meaning) {
  return {name, at, 4, ByteOrder::little, shift, bits, meaning};
}
constexpr Field kInvalid = row("invalid", 0, 31, 1, "1: the samples are not valid");
constexpr Field kLegacy = row("legacy", 0, 30, 1, "1: a header of 16 bytes");
constexpr Field kSecond = row("second", 0, 0, 30, "since the epoch");
constexpr Field kUnassigned = row("unassigned", 4, 30, 2, "");
constexpr Field kEpoch = row("epoch", 4, 24, 6, "half years since 2000");
constexpr Field kFrame = row("frame", 4, 0, 24, "within the second");
constexpr Field kVersion = row("version", 8, 29, 3, "");
constexpr Field kChannels = row("channels_log2", 8, 24, 5, "");
constexpr Field kLength = row("length", 8, 0, 24, "of the frame, 8 bytes each");
constexpr Field kComplex = row("complex", 12, 31, 1, "");
constexpr Field kBits = row("bits_minus_1", 12, 26, 5, "of a sample");
constexpr Field kThread = row("thread", 12, 16, 10, "");
constexpr Field kStation = row("station", 12, 0, 16, "");
constexpr std::array kFields{kInvalid,  kLegacy, kSecond,  kUnassigned, kEpoch,  kFrame,  kVersion,
                             kChannels, kLength, kComplex, kBits,       kThread, kStation};
constexpr Field kSequence{"sequence", 0, 8, ByteOrder::little, 0, 64, "VTP's, of the datagram"};

constexpr uint32_t kHeader = 32;
constexpr uint32_t kLegacyHeader = 16;
constexpr uint32_t kLengthUnit = 8;  // bytes
constexpr uint32_t kThreads = 1024;
constexpr uint32_t kOurStation = 1;

constexpr int64_t kBegins = 946'684'800;  // the first epoch: seconds since 1970
constexpr int64_t kSecondNs = 1'000'000'000;
// Seconds from the first epoch to each.
constexpr auto kEpochs = [] {
  using namespace std::chrono;
  std::array<uint64_t, 64> begins{};
  constexpr sys_days kFirst{January / 1 / 2000};
  for (unsigned i = 0; i < begins.size(); ++i) {
    const sys_days day{year{2000 + static_cast<int>(i / 2)} / (i % 2 == 0 ? January : July) / 1};
    begins[i] = static_cast<uint64_t>(seconds{day - kFirst}.count());
  }
  return begins;
}();

uint32_t bytes_before_frame(const Shape& shape) {
  return shape.vtp ? kSequence.end() : 0;
}
uint32_t frame_bytes(const Shape& shape) {
  return (shape.legacy ? kLegacyHeader : kHeader) + shape.payload;
}

std::vector<Field> fields(const Shape& shape) {
  std::vector<Field> rows{kFields.begin(), kFields.end()};
  for (Field& field : rows) field.at += bytes_before_frame(shape);
  if (shape.vtp) rows.push_back(kSequence);
  return rows;
}
uint32_t header_bytes(const Shape& shape) {
  return bytes_before_frame(shape) + frame_bytes(shape) - shape.payload;
}
uint32_t payload_bytes(const Shape& shape) {
  return shape.payload;
}

void check(const Shape& shape) {
  if (shape.frames_per_second == 0 || shape.frames_per_second > kFrame.most() + 1) {
    throw bench::Failure{
        fmt::format("--frames-per-second: VDIF counts frames within a second, 1 to {}; packets do "
                    "not say how many there are",
                    kFrame.most() + 1)};
  }
  if (shape.payload == 0 || shape.payload % kLengthUnit != 0) {
    throw bench::Failure{"--payload: a frame of VDIF is a multiple of 8 bytes"};
  }
  if (shape.bits == 0 || shape.bits > kBits.most() + 1) {
    throw bench::Failure{"--bits: a sample of VDIF has 1 to 32 bits"};
  }
}

double packets_per_second(const Shape& shape) {
  return shape.frames_per_second;
}

void write_time(const Shape& shape, uint64_t number, uint64_t epoch, std::byte* frame) {
  kEpoch.put(frame, epoch);
  kSecond.put(frame, number / shape.frames_per_second - kEpochs[epoch]);
  kFrame.put(frame, number % shape.frames_per_second);
}
uint64_t number_in(const Shape& shape, const std::byte* frame) {
  return (kEpochs[kEpoch.get(frame)] + kSecond.get(frame)) * shape.frames_per_second +
         kFrame.get(frame);
}

void write(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  std::memset(p, 0, header_bytes(shape));
  if (shape.vtp) kSequence.put(p, number);
  std::byte* const frame = p + bytes_before_frame(shape);
  kLegacy.put(frame, shape.legacy ? 1 : 0);
  kLength.put(frame, frame_bytes(shape) / kLengthUnit);
  kBits.put(frame, shape.bits - 1);
  kThread.put(frame, stream % kThreads);
  kStation.put(frame, kOurStation);
  const uint64_t second = number / shape.frames_per_second;
  const auto later = std::upper_bound(kEpochs.begin(), kEpochs.end(), second);
  write_time(shape, number, static_cast<uint64_t>(later - kEpochs.begin() - 1), frame);
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  if (shape.vtp) kSequence.put(p, kSequence.get(p) + by);
  std::byte* const frame = p + bytes_before_frame(shape);
  write_time(shape, number_in(shape, frame) + by, kEpoch.get(frame), frame);
}

bool is_of(const Shape& shape, const std::byte* frame) {
  return kLegacy.get(frame) == (shape.legacy ? 1 : 0) &&
         kLength.get(frame) * kLengthUnit == frame_bytes(shape);
}

Header read(const Shape& shape, ConstPacket packet) {
  const std::byte* const frame = packet.data() + bytes_before_frame(shape);
  if (!is_of(shape, frame)) return {.verdict = Verdict::wrong_shape};
  if (kFrame.get(frame) >= shape.frames_per_second) return {.verdict = Verdict::no_time};
  Header header{.verdict = kInvalid.get(frame) != 0 ? Verdict::flagged : Verdict::good,
                .number = number_in(shape, frame),
                .origin = {.station = static_cast<uint32_t>(kStation.get(frame)),
                           .unit = static_cast<uint32_t>(kThread.get(frame))},
                .stream = {}};
  if (shape.stream_number.told()) header.stream = kThread.get(frame);
  return header;
}

std::string why_none(const Shape& shape, ConstPacket packet) {
  const std::byte* const frame = packet.data() + bytes_before_frame(shape);
  if (kLegacy.get(frame) != (shape.legacy ? 1 : 0)) {
    return fmt::format("a header of {} bytes (--legacy)",
                       kLegacy.get(frame) != 0 ? kLegacyHeader : kHeader);
  }
  if (!is_of(shape, frame)) {
    return fmt::format("a frame of {} bytes, not {} (--payload, --vtp)",
                       kLength.get(frame) * kLengthUnit, frame_bytes(shape));
  }
  return fmt::format("frame {} of a second of {} (--frames-per-second)", kFrame.get(frame),
                     shape.frames_per_second);
}

int64_t time_ns(const Shape& shape, const std::byte* p) {
  const std::byte* const frame = p + bytes_before_frame(shape);
  const auto second = static_cast<int64_t>(kEpochs[kEpoch.get(frame)] + kSecond.get(frame));
  return (kBegins + second) * kSecondNs +
         static_cast<int64_t>(kFrame.get(frame)) * kSecondNs / shape.frames_per_second;
}
PacketPeriod period(const Shape& shape, const Origin&) {
  return {.ns = kSecondNs, .packets = shape.frames_per_second};
}

}  // namespace

constinit const FormatRules kVdif{.name = "vdif",
                                  .unit = "thread",
                                  .begins_s = kBegins,
                                  .fields = fields,
                                  .header_bytes = header_bytes,
                                  .payload_bytes = payload_bytes,
                                  .check = check,
                                  .packets_per_second = packets_per_second,
                                  .read = read,
                                  .write = write,
                                  .advance = advance,
                                  .explain = why_none,
                                  .time_ns = time_ns,
                                  .period = period};

}  // namespace weft::stream
