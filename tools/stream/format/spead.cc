// Packets of heaps ("SPEAD: Streaming Protocol for Exchanging Astronomical Data", revision 1 of
// 2012): a word, items of 8 bytes each, and payload.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "bench/failure.h"
#include "stream/format/format.h"

namespace weft::stream {
namespace {

constexpr Field kMagic{"magic", 0, 1, ByteOrder::big, 0, 8, "'S'"};
constexpr Field kVersion{"version", 1, 1, ByteOrder::big, 0, 8, "4"};
constexpr Field kItemWidth{"item_width", 2, 1, ByteOrder::big, 0, 8, "bytes of an item's name"};
constexpr Field kAddressWidth{"address_width", 3, 1, ByteOrder::big, 0, 8, "bytes of its value"};
constexpr Field kReserved{"reserved", 4, 2, ByteOrder::big, 0, 16, ""};
constexpr Field kItems{"items", 6, 2, ByteOrder::big, 0, 16, "how many"};
constexpr std::array kFields{kMagic, kVersion, kItemWidth, kAddressWidth, kReserved, kItems};
// All but the number of items, which is 0 here.
constexpr Field kStart{"start", 0, 8, ByteOrder::big, 0, 64, ""};
constexpr uint64_t kTheStart = 0x5304'0206'0000'0000;

// An item is one word: a bit, its name, and its value or the place of that in the heap.
constexpr unsigned kValueBits = 48;
constexpr uint32_t kItemBytes = 8;
constexpr Field kItem{"item", 0, kItemBytes, ByteOrder::big, 0, 64, ""};
constexpr uint64_t kImmediate = uint64_t{1} << 63;
constexpr uint64_t kValue = (uint64_t{1} << kValueBits) - 1;
enum Item : uint64_t {
  kHeapCounter = 1,
  kHeapSize = 2,
  kHeapOffset = 3,
  kPayloadLength = 4,
  kData = 0x1000,  // the first name that is free for use
};

constexpr uint32_t kOurItems = 5;

std::byte* item_at(std::byte* p, uint64_t i) {
  return p + kItems.end() + i * kItemBytes;
}
const std::byte* item_at(const std::byte* p, uint64_t i) {
  return p + kItems.end() + i * kItemBytes;
}
uint64_t name_of_item(uint64_t item) {
  return (item & ~kImmediate) >> kValueBits;
}

std::vector<Field> fields(const Shape&) {
  return {kFields.begin(), kFields.end()};
}

uint32_t header_bytes(const Shape&) {
  return kItems.end() + kItemBytes * kOurItems;
}
uint32_t payload_bytes(const Shape& shape) {
  return shape.payload;
}

void check(const Shape& shape) {
  if (shape.heap_packets == 0 || shape.payload == 0) {
    throw bench::Failure{"a packet cannot be empty"};
  }
}

void write(const Shape& shape, uint32_t, uint64_t number, std::byte* p) {
  const uint64_t heap = number / shape.heap_packets;
  const uint64_t part = number % shape.heap_packets;
  const std::array<uint64_t, kOurItems> items{
      kImmediate | uint64_t{kHeapCounter} << kValueBits | (heap & kValue),
      kImmediate | uint64_t{kHeapSize} << kValueBits | uint64_t{shape.payload} * shape.heap_packets,
      kImmediate | uint64_t{kHeapOffset} << kValueBits | part * shape.payload,
      kImmediate | uint64_t{kPayloadLength} << kValueBits | shape.payload,
      // The data begin at offset 0 of the heap: an address, not an immediate value.
      uint64_t{kData} << kValueBits};
  kStart.put(p, kTheStart);
  kItems.put(p, items.size());
  for (uint64_t i = 0; i < items.size(); ++i) kItem.put(item_at(p, i), items[i]);
}

void advance(const Shape& shape, uint64_t by, std::byte* p) {
  for (uint64_t i = 0; i < kItems.get(p); ++i) {
    const uint64_t item = kItem.get(item_at(p, i));
    if (name_of_item(item) != kHeapCounter) continue;
    kItem.put(item_at(p, i), (item & ~kValue) | ((item + by / shape.heap_packets) & kValue));
  }
}

bool begins_well(const std::byte* p) {
  return kStart.get(p) - kItems.get(p) == kTheStart;
}

Header read(const Shape& shape, const std::byte* p) {
  if (!begins_well(p)) return {.verdict = Verdict::wrong_kind};
  if (kItems.get(p) != kOurItems) return {.verdict = Verdict::wrong_shape};
  std::optional<uint64_t> heap;
  std::optional<uint64_t> offset;
  for (uint64_t i = 0; i < kOurItems; ++i) {
    const uint64_t item = kItem.get(item_at(p, i));
    const uint64_t value = item & kValue;
    switch (name_of_item(item)) {
      case kHeapCounter:
        heap = value;
        break;
      case kHeapOffset:
        offset = value;
        break;
      case kPayloadLength:
        if (value != shape.payload) return {.verdict = Verdict::wrong_shape};
        break;
      default:
        break;
    }
  }
  if (!heap || !offset || *offset % shape.payload != 0) return {.verdict = Verdict::wrong_shape};
  const uint64_t part = *offset / shape.payload;
  if (part >= shape.heap_packets) return {.verdict = Verdict::wrong_shape};
  return {.verdict = Verdict::good, .number = *heap * shape.heap_packets + part, .origin = {}};
}

std::string explain(const Shape& shape, const std::byte* p) {
  if (!begins_well(p)) return "it does not begin as SPEAD-64-48 does";
  if (kItems.get(p) != kOurItems) {
    return fmt::format("{} items, not {}", kItems.get(p), kOurItems);
  }
  return fmt::format(
      "a part that is none of a heap of {} with {} bytes each (--heap-packets, --payload)",
      shape.heap_packets, shape.payload);
}

}  // namespace

constinit const FormatRules kSpead{.name = "spead",
                                   .unit = nullptr,
                                   .fields = fields,
                                   .header_bytes = header_bytes,
                                   .payload_bytes = payload_bytes,
                                   .check = check,
                                   .packets_per_second = station_pace,
                                   .read = read,
                                   .write = write,
                                   .advance = advance,
                                   .explain = explain};

}  // namespace weft::stream
