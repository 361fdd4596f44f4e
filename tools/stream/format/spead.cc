// Packets of heaps ("SPEAD: Streaming Protocol for Exchanging Astronomical Data", revision 1 of
// 2012): a word, items of 8 bytes each in any order, and payload.
//
// Places in a ring are all alike, and the items of packets are not as many: a packet lies there
// with the null items behind its own that make it up to Shape::items. The protocol has receivers
// pass over these, so that it is the same packet still.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "kit/failure.h"
#include "stream/format/format.h"
#include "stream/format/station.h"

namespace weft::stream {
namespace {

constexpr Field kMagic{"magic", 0, 1, ByteOrder::big, 0, 8, "'S'"};
constexpr Field kVersion{"version", 1, 1, ByteOrder::big, 0, 8, "4"};
constexpr Field kNameWidth{"name_width", 2, 1, ByteOrder::big, 0, 8, "bytes of an item's name"};
constexpr Field kAddressWidth{"address_width", 3, 1, ByteOrder::big, 0, 8, "bytes of its value"};
constexpr Field kReserved{"reserved", 4, 2, ByteOrder::big, 0, 16, ""};
constexpr Field kItems{"items", 6, 2, ByteOrder::big, 0, 16, "how many"};
constexpr std::array kFields{kMagic, kVersion, kNameWidth, kAddressWidth, kReserved, kItems};

constexpr uint64_t kTheMagic = 0x53;
constexpr uint64_t kTheVersion = 4;
constexpr uint32_t kItemBytes = 8;
constexpr uint32_t kMostItems = 512;

// An item is one word: a bit, its name, and its value or the place of that in the heap.
constexpr Field kItem{"item", 0, kItemBytes, ByteOrder::big, 0, 64, ""};
constexpr uint64_t kImmediate = uint64_t{1} << 63;
enum Item : uint64_t {
  kNull = 0,
  kHeapCounter = 1,
  kHeapSize = 2,
  kHeapOffset = 3,
  kPayloadLength = 4,
  kDescriptor = 5,
  kStreamControl = 6,
  kData = 0x1000,  // the first name that is free for use
};

std::byte* item_at(std::byte* p, uint64_t i) {
  return p + kItems.end() + i * kItemBytes;
}
const std::byte* item_at(const std::byte* p, uint64_t i) {
  return p + kItems.end() + i * kItemBytes;
}
uint64_t most_value(const Shape& shape) {
  return (uint64_t{1} << shape.address_bits) - 1;
}
uint64_t name_in(const Shape& shape, uint64_t item) {
  return (item & ~kImmediate) >> shape.address_bits;
}
uint64_t immediate(const Shape& shape, uint64_t name, uint64_t value) {
  return kImmediate | name << shape.address_bits | (value & most_value(shape));
}
uint64_t number_item(const Shape& shape) {
  return shape.number.told() ? shape.number.at : uint64_t{kHeapCounter};
}

// Of the numbers that an item's value tells: how many bits, where these are all that it loses.
uint32_t bits_of_number(const Shape& shape) {
  const uint64_t step = shape.number.step;
  if (!std::has_single_bit(step) || !std::has_single_bit(shape.heap_packets)) return 64;
  const int bits = static_cast<int>(shape.address_bits) - std::countr_zero(step) +
                   std::countr_zero(shape.heap_packets);
  return bits > 0 && bits < 62 ? static_cast<uint32_t>(bits) : 64;
}

// What the items of a packet say.
struct Told {
  std::optional<uint64_t> number;
  std::optional<uint64_t> stream;
  std::optional<uint64_t> size;
  std::optional<uint64_t> offset;
  std::optional<uint64_t> length;
  bool control = false;
};

uint32_t bytes_before_payload(uint64_t items) {
  return static_cast<uint32_t>(kItems.end() + kItemBytes * items);
}

Told told_by(const Shape& shape, const std::byte* p) {
  Told told;
  for (uint64_t i = 0; i < kItems.get(p); ++i) {
    const uint64_t item = kItem.get(item_at(p, i));
    const uint64_t name = name_in(shape, item);
    if (name == kDescriptor) told.control = true;
    // Others have their values in the heap.
    if ((item & kImmediate) == 0) continue;
    const uint64_t value = item & most_value(shape);
    if (name == kHeapSize) told.size = value;
    if (name == kHeapOffset) told.offset = value;
    if (name == kPayloadLength) told.length = value;
    if (name == kStreamControl) told.control = true;
    if (name == number_item(shape)) told.number = value / shape.number.step;
    if (shape.stream_number.told() && name == shape.stream_number.at) {
      told.stream = value / shape.stream_number.step;
    }
  }
  return told;
}

bool begins_well(const Shape& shape, ConstPacket packet) {
  const std::byte* p = packet.data();
  return packet.size() >= kItems.end() && kMagic.get(p) == kTheMagic &&
         kVersion.get(p) == kTheVersion && kAddressWidth.get(p) * 8 == shape.address_bits &&
         kNameWidth.get(p) + kAddressWidth.get(p) == kItemBytes;
}

std::vector<Field> fields(const Shape&) {
  return {kFields.begin(), kFields.end()};
}
uint32_t header_bytes(const Shape& shape) {
  return bytes_before_payload(shape.items);
}
uint32_t payload_bytes(const Shape& shape) {
  return shape.payload;
}

void check(const Shape& shape) {
  if (shape.heap_packets == 0 || shape.payload == 0) {
    throw kit::Failure{"a packet cannot be empty"};
  }
  if (shape.address_bits != 40 && shape.address_bits != 48) {
    throw kit::Failure{"--address-bits: SPEAD-64-40 and SPEAD-64-48 have 40 and 48"};
  }
  const uint64_t most_name = (kImmediate >> shape.address_bits) - 1;
  for (const Place& place : {shape.number, shape.stream_number}) {
    if (place.told() && (place.at == kNull || place.at > most_name || place.step == 0)) {
      throw kit::Failure{
          fmt::format("items have names from 1 to {:#x}, and steps of 1 or more", most_name)};
    }
  }
  const uint32_t own =
      5 + (number_item(shape) != kHeapCounter ? 1 : 0) + (shape.stream_number.told() ? 1 : 0);
  if (shape.items < own || shape.items > kMostItems) {
    throw kit::Failure{
        fmt::format("--items: a packet of this shape has {} to {}", own, kMostItems)};
  }
}

Shape essentials(const Shape& shape) {
  return {.format = Format::spead,
          .payload = shape.payload,
          .heap_packets = shape.heap_packets,
          .number = {.at = static_cast<uint32_t>(number_item(shape)),
                     .bytes = kItemBytes,
                     .step = shape.number.step},
          .stream_number = shape.stream_number,
          .address_bits = shape.address_bits,
          .items = shape.items};
}

void write(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  const uint64_t heap = number / shape.heap_packets;
  const uint64_t part = number % shape.heap_packets;
  kMagic.put(p, kTheMagic);
  kVersion.put(p, kTheVersion);
  kNameWidth.put(p, kItemBytes - shape.address_bits / 8);
  kAddressWidth.put(p, shape.address_bits / 8);
  kReserved.put(p, 0);
  kItems.put(p, shape.items);
  uint32_t items = 0;
  const auto add = [&](uint64_t item) { kItem.put(item_at(p, items++), item); };
  const bool by_counter = number_item(shape) == kHeapCounter;
  add(immediate(shape, kHeapCounter, by_counter ? heap * shape.number.step : heap));
  add(immediate(shape, kHeapSize, uint64_t{shape.payload} * shape.heap_packets));
  add(immediate(shape, kHeapOffset, part * shape.payload));
  add(immediate(shape, kPayloadLength, shape.payload));
  if (!by_counter) add(immediate(shape, number_item(shape), heap * shape.number.step));
  if (shape.stream_number.told()) {
    add(immediate(shape, shape.stream_number.at, stream * shape.stream_number.step));
  }
  // The data begin at offset 0 of the heap: an address, not an immediate value.
  add(uint64_t{kData} << shape.address_bits);
  while (items < shape.items) add(immediate(shape, kNull, 0));
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  const uint64_t heaps = by / shape.heap_packets;
  for (uint64_t i = 0; i < kItems.get(p); ++i) {
    const uint64_t item = kItem.get(item_at(p, i));
    const uint64_t name = name_in(shape, item);
    const bool counts = name == number_item(shape);
    if ((item & kImmediate) == 0 || (!counts && name != kHeapCounter)) continue;
    kItem.put(item_at(p, i),
              immediate(shape, name, item + (counts ? heaps * shape.number.step : heaps)));
  }
}

// The part of its heap that a packet is; nothing where a heap has no such part. The last one may be
// shorter.
std::optional<uint64_t> part_of(const Shape& shape, const Told& told, uint64_t length) {
  const uint64_t offset = told.offset.value_or(0);
  if (offset % shape.payload != 0 || offset / shape.payload >= shape.heap_packets) return {};
  const bool ends = told.size && offset + length == *told.size;
  if (length != shape.payload && !(ends && length > 0 && length < shape.payload)) return {};
  if (!told.offset && shape.heap_packets > 1) return {};
  return offset / shape.payload;
}

Header read(const Shape& shape, ConstPacket packet) {
  if (!begins_well(shape, packet)) return {.verdict = Verdict::wrong_kind};
  const std::byte* p = packet.data();
  const uint64_t items = kItems.get(p);
  if (bytes_before_payload(items) > packet.size()) return {.verdict = Verdict::wrong_size};
  const Told told = told_by(shape, p);
  if (told.control) return {.verdict = Verdict::control};
  if (items > shape.items) return {.verdict = Verdict::wrong_shape};
  const uint64_t carried = packet.size() - bytes_before_payload(items);
  const uint64_t length = told.length.value_or(carried);
  // In its place it is made up to the whole.
  if (length > carried || (length < carried && packet.size() != shape.packet_bytes())) {
    return {.verdict = Verdict::wrong_size};
  }
  const auto part = part_of(shape, told, length);
  if (!part || !told.number || (shape.stream_number.told() && !told.stream)) {
    return {.verdict = Verdict::wrong_shape};
  }
  return {.verdict = Verdict::good,
          .number = *told.number * shape.heap_packets + *part,
          .origin = {},
          .stream = told.stream,
          .bits = bits_of_number(shape)};
}

void copy(const Shape& shape, ConstPacket from, std::byte* p) {
  const uint64_t items = std::min<uint64_t>(kItems.get(from.data()), shape.items);
  const uint32_t header = bytes_before_payload(items);
  std::memcpy(p, from.data(), header);
  kItems.put(p, shape.items);
  for (uint64_t i = items; i < shape.items; ++i)
    kItem.put(item_at(p, i), immediate(shape, kNull, 0));
  const auto payload =
      from.subspan(header).first(std::min<size_t>(from.size() - header, shape.payload));
  std::memcpy(p + header_bytes(shape), payload.data(), payload.size());
  std::memset(p + header_bytes(shape) + payload.size(), 0, shape.payload - payload.size());
}

std::string why_none(const Shape& shape, ConstPacket packet) {
  if (!begins_well(shape, packet)) {
    return fmt::format("it does not begin as SPEAD-64-{} does (--address-bits)",
                       shape.address_bits);
  }
  const uint64_t items = kItems.get(packet.data());
  if (items > shape.items)
    return fmt::format("{} items, not up to {} (--items)", items, shape.items);
  if (bytes_before_payload(items) > packet.size()) return "it ends within its items";
  const Told told = told_by(shape, packet.data());
  const uint64_t carried = packet.size() - bytes_before_payload(items);
  const uint64_t length = told.length.value_or(carried);
  if (length > carried) {
    return fmt::format("{} bytes behind its items, which say {}", carried, length);
  }
  if (!told.number) return fmt::format("no item {:#x} with a value (--number)", number_item(shape));
  if (shape.stream_number.told() && !told.stream) {
    return fmt::format("no item {:#x} with a value (--stream-number)", shape.stream_number.at);
  }
  if (!part_of(shape, told, length)) {
    return fmt::format(
        "{} bytes from {} on are no part of a heap of {} with {} bytes each (--heap-packets, "
        "--payload)",
        length, told.offset.value_or(0), shape.heap_packets, shape.payload);
  }
  return fmt::format("{} bytes, and its items say {}", packet.size(),
                     bytes_before_payload(items) + length);
}

}  // namespace

constinit const FormatRules kSpead{.name = "spead",
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
                                   .copy = copy};

}  // namespace weft::stream
