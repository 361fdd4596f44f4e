#include "stream/packet.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"
#include "bench/failure.h"

namespace weft::stream {
namespace {

// --- LOFAR RSP, version 3; all fields little-endian
constexpr uint32_t kRspHeader = 16;
constexpr uint8_t kRspVersion = 3;
// Of the first byte of source information.
constexpr uint8_t kClock200MHz = 0x80;
constexpr uint8_t kSamplesNotValid = 0x40;
constexpr uint8_t kBoard = 0x1f;
constexpr uint32_t kUnsetTime = 0xffffffff;
constexpr uint32_t kUsualClock = 200;        // MHz
constexpr uint64_t kSamplesPerSlice = 1024;  // the filter bank makes one time slice of them
constexpr uint8_t kBitMode = 0x03;           // of the second one: 0 is 16 bit, 1 is 8 bit
constexpr uint32_t kBoards = 4;              // of a station, each with a stream of its own
constexpr uint32_t kParts = 4;               // of a sample: two polarisations, real and imaginary

// --- SPEAD-64-48; all fields big-endian
constexpr uint32_t kSpeadItems = 5;
constexpr uint32_t kSpeadHeader = 8 + 8 * kSpeadItems;
constexpr uint64_t kSpeadStart =
    0x5304'0206'0000'0000;  // magic, version 4, widths of 2 and 6 bytes
constexpr uint64_t kImmediate = uint64_t{1} << 63;
constexpr unsigned kValueBits = 48;
constexpr uint64_t kValue = (uint64_t{1} << kValueBits) - 1;
enum Item : uint64_t {
  kHeapCounter = 1,
  kHeapSize = 2,
  kHeapOffset = 3,
  kPayloadLength = 4,
  kData = 0x1000,  // the first identifier that is free for use
};

template <class T>
void put_little(std::byte* to, T value) {
  for (size_t i = 0; i < sizeof value; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}
template <class T>
T get_little(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value |= static_cast<T>(from[i]) << (8 * i);
  return value;
}
void put_big(std::byte* to, uint64_t value) {
  for (unsigned i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(value >> (56 - 8 * i));
}
uint64_t get_big(const std::byte* from) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) value = value << 8 | static_cast<uint64_t>(from[i]);
  return value;
}

uint8_t bit_mode(const Shape& shape) {
  return shape.bits == 16 ? 0 : 1;
}

uint64_t hertz(uint32_t megahertz) {
  return uint64_t{megahertz} * 1'000'000;
}
uint32_t clock_of(const Shape& shape) {
  return shape.clock != 0 ? shape.clock : kUsualClock;
}

// The slice that is the first to begin in second `second`, or later. A second has 195312.5 of them
// at 200 MHz, and 156250 at 160 MHz.
uint64_t first_slice_of(uint64_t second, uint32_t clock) {
  return (second * hertz(clock) + kSamplesPerSlice / 2) / kSamplesPerSlice;
}

uint32_t rsp_clock(const std::byte* p) {
  return (get_little<uint8_t>(p + 1) & kClock200MHz) != 0 ? 200 : 160;
}
void write_rsp_time(uint64_t slice, uint32_t clock, std::byte* p) {
  const uint64_t second = slice * kSamplesPerSlice / hertz(clock);
  put_little(p + 8, static_cast<uint32_t>(second));
  put_little(p + 12, static_cast<uint32_t>(slice - first_slice_of(second, clock)));
}
uint64_t rsp_slice(const std::byte* p) {
  return first_slice_of(get_little<uint32_t>(p + 8), rsp_clock(p)) + get_little<uint32_t>(p + 12);
}

void write_rsp(const Shape& shape, uint32_t stream, uint64_t number, std::byte* p) {
  const uint32_t clock = clock_of(shape);
  put_little(p, kRspVersion);
  put_little(p + 1, static_cast<uint8_t>((clock == 200 ? kClock200MHz : 0) | stream % kBoards));
  put_little(p + 2, bit_mode(shape));
  put_little(p + 3, uint8_t{0});
  put_little(p + 4, static_cast<uint16_t>(1 + stream / kBoards));
  put_little(p + 6, static_cast<uint8_t>(shape.beamlets));
  put_little(p + 7, static_cast<uint8_t>(shape.slices));
  write_rsp_time(number * shape.slices, clock, p);
}

Header read_rsp(const Shape& shape, const std::byte* p) {
  if (get_little<uint8_t>(p) != kRspVersion) return {.verdict = Verdict::wrong_kind};
  if ((get_little<uint8_t>(p + 2) & kBitMode) != bit_mode(shape) ||
      get_little<uint8_t>(p + 6) != shape.beamlets || get_little<uint8_t>(p + 7) != shape.slices) {
    return {.verdict = Verdict::wrong_shape};
  }
  const uint32_t clock = rsp_clock(p);
  const auto second = get_little<uint32_t>(p + 8);
  const uint64_t slices =
      first_slice_of(uint64_t{second} + 1, clock) - first_slice_of(second, clock);
  if (second == kUnsetTime || get_little<uint32_t>(p + 12) >= slices) {
    return {.verdict = Verdict::no_time};
  }
  const auto source = get_little<uint8_t>(p + 1);
  return {.verdict = (source & kSamplesNotValid) != 0 ? Verdict::flagged : Verdict::good,
          .number = rsp_slice(p) / shape.slices,
          .origin = {.station = get_little<uint16_t>(p + 4),
                     .board = static_cast<uint8_t>(source & kBoard),
                     .clock = clock}};
}

void write_spead(const Shape& shape, uint64_t number, std::byte* p) {
  const auto item = [p](unsigned i, uint64_t id, uint64_t value) {
    put_big(p + 8 + 8 * i, kImmediate | id << kValueBits | (value & kValue));
  };
  const uint64_t heap = number / shape.heap_packets;
  const uint64_t part = number % shape.heap_packets;
  put_big(p, kSpeadStart | kSpeadItems);
  item(0, kHeapCounter, heap);
  item(1, kHeapSize, uint64_t{shape.payload} * shape.heap_packets);
  item(2, kHeapOffset, part * shape.payload);
  item(3, kPayloadLength, shape.payload);
  // The data begin at offset 0 of the heap: an address, not an immediate value.
  put_big(p + 8 + 8 * 4, uint64_t{kData} << kValueBits);
}

void advance_spead(const Shape& shape, uint64_t by, std::byte* p) {
  for (unsigned i = 0; i < kSpeadItems; ++i) {
    const uint64_t item = get_big(p + 8 + 8 * i);
    if ((item & ~kImmediate) >> kValueBits != kHeapCounter) continue;
    put_big(p + 8 + 8 * i, (item & ~kValue) | ((item + by / shape.heap_packets) & kValue));
  }
}

Header read_spead(const Shape& shape, const std::byte* p) {
  const uint64_t start = get_big(p);
  if ((start & ~uint64_t{0xffff}) != kSpeadStart) return {.verdict = Verdict::wrong_kind};
  const uint64_t items = start & 0xffff;
  if (items != kSpeadItems) return {.verdict = Verdict::wrong_shape};
  std::optional<uint64_t> heap;
  std::optional<uint64_t> offset;
  for (uint64_t i = 0; i < items; ++i) {
    const uint64_t item = get_big(p + 8 + 8 * i);
    const uint64_t value = item & kValue;
    switch ((item & ~kImmediate) >> kValueBits) {
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

Header read_of_format(const Shape& shape, ConstPacket packet) {
  switch (shape.format) {
    case Format::rsp:
      return read_rsp(shape, packet.data());
    case Format::spead:
      return read_spead(shape, packet.data());
    case Format::raw:
      break;
  }
  return {.verdict = Verdict::good, .number = get_big(packet.data()), .origin = {}};
}

std::string explain_rsp(const Shape& shape, const std::byte* p) {
  const auto version = get_little<uint8_t>(p);
  if (version != kRspVersion) return fmt::format("version {}, not {}", version, kRspVersion);
  constexpr std::array<uint32_t, 4> kBits{16, 8, 4, 0};
  const uint32_t bits = kBits[get_little<uint8_t>(p + 2) & kBitMode];
  if (bits != shape.bits) return fmt::format("{} bits, not {} (--bits)", bits, shape.bits);
  const auto beamlets = get_little<uint8_t>(p + 6);
  if (beamlets != shape.beamlets) {
    return fmt::format("{} beamlets, not {} (--beamlets)", beamlets, shape.beamlets);
  }
  const auto slices = get_little<uint8_t>(p + 7);
  if (slices != shape.slices)
    return fmt::format("{} slices, not {} (--slices)", slices, shape.slices);
  return fmt::format("second {} and slice {}: its board has no time", get_little<uint32_t>(p + 8),
                     get_little<uint32_t>(p + 12));
}

std::string explain_spead(const Shape& shape, const std::byte* p) {
  const uint64_t start = get_big(p);
  if ((start & ~uint64_t{0xffff}) != kSpeadStart) return "it does not begin as SPEAD-64-48 does";
  const uint64_t items = start & 0xffff;
  if (items != kSpeadItems) return fmt::format("{} items, not {}", items, kSpeadItems);
  return fmt::format(
      "a part that is none of a heap of {} with {} bytes each (--heap-packets, --payload)",
      shape.heap_packets, shape.payload);
}

}  // namespace

const char* name_of(Format format) {
  switch (format) {
    case Format::rsp:
      return "rsp";
    case Format::spead:
      return "spead";
    case Format::raw:
      break;
  }
  return "raw";
}

uint32_t Shape::header_bytes() const {
  switch (format) {
    case Format::rsp:
      return kRspHeader;
    case Format::spead:
      return kSpeadHeader;
    case Format::raw:
      break;
  }
  return 8;
}

uint32_t Shape::payload_bytes() const {
  return format == Format::rsp ? beamlets * slices * kParts * (bits / 8) : payload;
}

void Shape::check() const {
  if (bits != 8 && bits != 16) throw bench::Failure{"samples have 8 or 16 bits"};
  if (clock != 0 && clock != 160 && clock != 200) {
    throw bench::Failure{"a station's clock has 160 or 200 MHz"};
  }
  if (beamlets == 0 || beamlets > 255 || slices == 0 || slices > 255) {
    throw bench::Failure{"a packet has 1 to 255 beamlets and 1 to 255 slices"};
  }
  if (heap_packets == 0 || payload == 0) throw bench::Failure{"a packet cannot be empty"};
  // What fits into a UDP datagram.
  if (packet_bytes() > 65'507) throw bench::Failure{"a packet has at most 65507 bytes"};
}

double rsp_packets_per_second(const Shape& shape) {
  return static_cast<double>(hertz(clock_of(shape))) / static_cast<double>(kSamplesPerSlice) /
         shape.slices;
}

void write_header(const Shape& shape, uint32_t stream, uint64_t number, Packet packet) {
  switch (shape.format) {
    case Format::rsp:
      write_rsp(shape, stream, number, packet.data());
      return;
    case Format::spead:
      write_spead(shape, number, packet.data());
      return;
    case Format::raw:
      put_big(packet.data(), number);
  }
}

void advance(const Shape& shape, uint64_t by, Packet packet) {
  switch (shape.format) {
    case Format::rsp:
      write_rsp_time(rsp_slice(packet.data()) + by * shape.slices, rsp_clock(packet.data()),
                     packet.data());
      return;
    case Format::spead:
      advance_spead(shape, by, packet.data());
      return;
    case Format::raw:
      put_big(packet.data(), get_big(packet.data()) + by);
  }
}

Header read_header(const Shape& shape, ConstPacket packet) {
  if (packet.size() != shape.packet_bytes()) return {.verdict = Verdict::wrong_size};
  Header header = read_of_format(shape, packet);
  if (header.has_number() && header.number >= kMostNumber) header.verdict = Verdict::no_time;
  return header;
}

std::optional<uint64_t> number_of(const Shape& shape, ConstPacket packet) {
  const Header header = read_header(shape, packet);
  return header.has_number() ? std::optional{header.number} : std::nullopt;
}

std::string explain(const Shape& shape, ConstPacket packet) {
  if (packet.size() != shape.packet_bytes()) {
    return fmt::format("{} bytes, not {}", packet.size(), shape.packet_bytes());
  }
  switch (shape.format) {
    case Format::rsp:
      return explain_rsp(shape, packet.data());
    case Format::spead:
      return explain_spead(shape, packet.data());
    case Format::raw:
      break;
  }
  return fmt::format("the number {}", get_big(packet.data()));
}

}  // namespace weft::stream
