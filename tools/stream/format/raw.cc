// A header of any kind, of which the user says where the number is: what CASPER's boards and others
// send.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kit/failure.h"
#include "stream/format/format.h"
#include "stream/format/station.h"

namespace weft::stream {
namespace {

constexpr Place kUsualNumber{.at = 0, .bytes = 8};

const Place& number_place(const Shape& shape) {
  return shape.number.told() ? shape.number : kUsualNumber;
}
// The row that the table of this shape would have.
Field field_at(const Place& place, std::string_view name) {
  const uint32_t rest = 8 * place.bytes - place.shift;
  return {.name = name,
          .at = place.at,
          .bytes = place.bytes,
          .order = place.order,
          .shift = place.shift,
          .bits = place.bits != 0 ? place.bits : rest,
          .meaning = {}};
}
// Of the numbers that fit into a place: how many bits, where these are all that it loses.
uint32_t bits_of(const Place& place) {
  if (!std::has_single_bit(place.step)) return 64;
  const uint32_t bits = field_at(place, {}).bits;
  const auto lost = static_cast<uint32_t>(std::countr_zero(place.step));
  return bits == 64 ? 64 : bits - lost;
}

void check_place(const Place& place, const char* option) {
  const Field field = field_at(place, {});
  if (place.bytes > 8 || place.shift >= 8 * place.bytes || place.step == 0 ||
      field.shift + field.bits > 8 * field.bytes) {
    throw kit::Failure{fmt::format(
        "{}: a number is in a word of 1 to 8 bytes, from a bit of it on, in steps of 1 or more",
        option)};
  }
  if (place.step > field.most()) {
    throw kit::Failure{
        fmt::format("{}: {} bits have no step of {}", option, field.bits, place.step)};
  }
}

std::vector<Field> fields(const Shape& shape) {
  std::vector<Field> rows{field_at(number_place(shape), "number")};
  if (shape.stream_number.told()) rows.push_back(field_at(shape.stream_number, "stream"));
  return rows;
}

uint32_t header_bytes(const Shape& shape) {
  const uint32_t needed = std::max(number_place(shape).end(), shape.stream_number.end());
  return shape.header != 0 ? shape.header : needed;
}
uint32_t payload_bytes(const Shape& shape) {
  return shape.payload;
}

void check(const Shape& shape) {
  if (shape.payload == 0) throw kit::Failure{"a packet cannot be empty"};
  check_place(number_place(shape), "--number");
  if (shape.stream_number.told()) check_place(shape.stream_number, "--stream-number");
  if (std::max(number_place(shape).end(), shape.stream_number.end()) > header_bytes(shape)) {
    throw kit::Failure{"--header-bytes: the numbers are in the header"};
  }
}

Shape essentials(const Shape& shape) {
  return {.format = Format::raw,
          .payload = shape.payload,
          .header = header_bytes(shape),
          .number = number_place(shape),
          .stream_number = shape.stream_number};
}

void write(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  std::memset(p, 0, header_bytes(shape));
  field_at(number_place(shape), "number").put(p, number * number_place(shape).step);
  if (shape.stream_number.told()) {
    field_at(shape.stream_number, "stream").put(p, stream * shape.stream_number.step);
  }
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  const Field field = field_at(number_place(shape), "number");
  field.put(p, field.get(p) + by * number_place(shape).step);
}

Header read(const Shape& shape, ConstPacket packet) {
  const std::byte* p = packet.data();
  const Place& place = number_place(shape);
  Header header{.verdict = Verdict::good,
                .number = field_at(place, {}).get(p) / place.step,
                .origin = {},
                .stream = {},
                .bits = bits_of(place)};
  if (const Place& stream = shape.stream_number; stream.told()) {
    header.stream = field_at(stream, {}).get(p) / stream.step;
  }
  return header;
}

// A counter goes on in small steps in the order that its bytes have, and in large ones in the
// other.
Shape learn(const Shape& shape, std::span<const ConstPacket> first) {
  constexpr uint64_t kSmall = uint64_t{1} << 24;
  const auto small_steps = [&](ByteOrder order) {
    Place place = kUsualNumber;
    place.order = order;
    const Field field = field_at(place, {});
    uint64_t count = 0;
    for (size_t i = 1; i < first.size(); ++i) {
      const uint64_t a = field.get(first[i - 1].data());
      const uint64_t b = field.get(first[i].data());
      if (std::max(a, b) - std::min(a, b) < kSmall) ++count;
    }
    return count;
  };
  Shape known = shape;
  known.number = kUsualNumber;
  if (small_steps(ByteOrder::little) > small_steps(ByteOrder::big)) {
    known.number.order = ByteOrder::little;
  }
  return known;
}

std::string why_none(const Shape& shape, ConstPacket packet) {
  return fmt::format("the number {}", read(shape, packet).number);
}

}  // namespace

constinit const FormatRules kRaw{.name = "raw",
                                 .unit = nullptr,
                                 .fields = fields,
                                 .header_bytes = header_bytes,
                                 .payload_bytes = payload_bytes,
                                 .check = check,
                                 .essentials = essentials,
                                 .packets_per_second = station_pace,
                                 .read = read,
                                 .write = write,
                                 .advance = advance,
                                 .explain = why_none,
                                 .learn = learn};

}  // namespace weft::stream
