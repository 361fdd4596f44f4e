// Frames of VLBI, as they are, or behind the sequence number of VTP over UDP.
#include <fmt/format.h>

#include <cstring>

#include "kit/failure.h"
#include "stream/format/format.h"
#include "stream/format/vdif_header.h"

namespace weft::stream {
namespace {

constexpr uint32_t kThreads = 1024;
constexpr uint32_t kOurStation = 1;
constexpr int64_t kSecondNs = 1'000'000'000;

uint32_t bytes_before_frame(const Shape& shape) {
  return shape.vtp ? vdif::kSequence.end() : 0;
}
uint32_t frame_bytes(const Shape& shape) {
  return (shape.legacy ? vdif::kLegacyHeader : vdif::kHeader) + shape.payload;
}

std::vector<Field> fields(const Shape& shape) {
  std::vector<Field> rows{vdif::kFields.begin(), vdif::kFields.end()};
  for (Field& field : rows) field.at += bytes_before_frame(shape);
  if (shape.vtp) rows.push_back(vdif::kSequence);
  return rows;
}
uint32_t header_bytes(const Shape& shape) {
  return bytes_before_frame(shape) + frame_bytes(shape) - shape.payload;
}
uint32_t payload_bytes(const Shape& shape) {
  return shape.payload;
}

void check(const Shape& shape) {
  if (shape.frames_per_second == 0 || shape.frames_per_second > vdif::kFrame.most() + 1) {
    throw kit::Failure{
        fmt::format("--frames-per-second: VDIF counts frames within a second, 1 to {}; packets do "
                    "not say how many there are",
                    vdif::kFrame.most() + 1)};
  }
  if (shape.payload == 0 || shape.payload % vdif::kLengthUnit != 0) {
    throw kit::Failure{"--payload: a frame of VDIF is a multiple of 8 bytes"};
  }
  if (shape.bits == 0 || shape.bits > vdif::kBits.most() + 1) {
    throw kit::Failure{"--bits: a sample of VDIF has 1 to 32 bits"};
  }
}

Shape essentials(const Shape& shape) {
  return {.format = Format::vdif,
          .payload = shape.payload,
          .stream_number = shape.stream_number,
          .frames_per_second = shape.frames_per_second,
          .legacy = shape.legacy,
          .vtp = shape.vtp};
}

double packets_per_second(const Shape& shape) {
  return shape.frames_per_second;
}

void write_time(const Shape& shape, uint64_t number, uint64_t epoch, std::byte* frame) {
  vdif::kEpoch.put(frame, epoch);
  vdif::kSecond.put(frame, number / shape.frames_per_second - vdif::kEpochs[epoch]);
  vdif::kFrame.put(frame, number % shape.frames_per_second);
}
uint64_t number_in(const Shape& shape, const std::byte* frame) {
  return (vdif::kEpochs[vdif::kEpoch.get(frame)] + vdif::kSecond.get(frame)) *
             shape.frames_per_second +
         vdif::kFrame.get(frame);
}

void write(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  std::memset(p, 0, header_bytes(shape));
  if (shape.vtp) vdif::kSequence.put(p, number);
  std::byte* const frame = p + bytes_before_frame(shape);
  vdif::kLegacy.put(frame, shape.legacy ? 1 : 0);
  vdif::kLength.put(frame, frame_bytes(shape) / vdif::kLengthUnit);
  vdif::kBits.put(frame, shape.bits - 1);
  vdif::kThread.put(frame, stream % kThreads);
  vdif::kStation.put(frame, kOurStation);
  write_time(shape, number, vdif::epoch_at(number / shape.frames_per_second), frame);
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  if (shape.vtp) vdif::kSequence.put(p, vdif::kSequence.get(p) + by);
  std::byte* const frame = p + bytes_before_frame(shape);
  write_time(shape, number_in(shape, frame) + by, vdif::kEpoch.get(frame), frame);
}

bool is_of(const Shape& shape, const std::byte* frame) {
  return vdif::kLegacy.get(frame) == (shape.legacy ? 1 : 0) &&
         vdif::kLength.get(frame) * vdif::kLengthUnit == frame_bytes(shape);
}

Header read(const Shape& shape, ConstPacket packet) {
  const std::byte* const frame = packet.data() + bytes_before_frame(shape);
  if (!is_of(shape, frame)) return {.verdict = Verdict::wrong_shape};
  if (vdif::kFrame.get(frame) >= shape.frames_per_second) return {.verdict = Verdict::no_time};
  Header header{.verdict = vdif::kInvalid.get(frame) != 0 ? Verdict::flagged : Verdict::good,
                .number = number_in(shape, frame),
                .origin = {.station = static_cast<uint32_t>(vdif::kStation.get(frame)),
                           .unit = static_cast<uint32_t>(vdif::kThread.get(frame))},
                .stream = {}};
  if (shape.stream_number.told()) header.stream = vdif::kThread.get(frame);
  return header;
}

std::string why_none(const Shape& shape, ConstPacket packet) {
  const std::byte* const frame = packet.data() + bytes_before_frame(shape);
  if (vdif::kLegacy.get(frame) != (shape.legacy ? 1 : 0)) {
    return fmt::format("a header of {} bytes (--legacy)",
                       vdif::kLegacy.get(frame) != 0 ? vdif::kLegacyHeader : vdif::kHeader);
  }
  if (!is_of(shape, frame)) {
    return fmt::format("a frame of {} bytes, not {} (--payload, --vtp)",
                       vdif::kLength.get(frame) * vdif::kLengthUnit, frame_bytes(shape));
  }
  return fmt::format("frame {} of a second of {} (--frames-per-second)", vdif::kFrame.get(frame),
                     shape.frames_per_second);
}

int64_t time_ns(const Shape& shape, const std::byte* p) {
  const std::byte* const frame = p + bytes_before_frame(shape);
  const auto second =
      static_cast<int64_t>(vdif::kEpochs[vdif::kEpoch.get(frame)] + vdif::kSecond.get(frame));
  return (vdif::kBegins + second) * kSecondNs +
         static_cast<int64_t>(vdif::kFrame.get(frame)) * kSecondNs / shape.frames_per_second;
}
PacketPeriod period(const Shape& shape, const Origin&) {
  return {.ns = kSecondNs, .packets = shape.frames_per_second};
}

}  // namespace

constinit const FormatRules kVdif{.name = "vdif",
                                  .unit = "thread",
                                  .begins_s = vdif::kBegins,
                                  .fields = fields,
                                  .header_bytes = header_bytes,
                                  .payload_bytes = payload_bytes,
                                  .check = check,
                                  .essentials = essentials,
                                  .packets_per_second = packets_per_second,
                                  .read = read,
                                  .write = write,
                                  .advance = advance,
                                  .explain = why_none,
                                  .time_ns = time_ns,
                                  .period = period};

}  // namespace weft::stream
