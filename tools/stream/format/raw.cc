// A counter and data.
#include <fmt/format.h>

#include <array>

#include "bench/failure.h"
#include "stream/format/format.h"

namespace weft::stream {
namespace {

constexpr Field kNumber{"number", 0, 8, ByteOrder::big, 0, 64, "of the packet"};
constexpr std::array kFields{kNumber};

uint32_t header_bytes(const Shape&) {
  return kNumber.end();
}
uint32_t payload_bytes(const Shape& shape) {
  return shape.payload;
}
void check(const Shape& shape) {
  if (shape.payload == 0) throw bench::Failure{"a packet cannot be empty"};
}
void write(const Shape&, uint32_t, uint64_t number, std::byte* p) {
  kNumber.put(p, number);
}
void advance(const Shape&, uint64_t by, std::byte* p) {
  kNumber.put(p, kNumber.get(p) + by);
}
Header read(const Shape&, const std::byte* p) {
  return {.verdict = Verdict::good, .number = kNumber.get(p), .origin = {}};
}
std::string explain(const Shape&, const std::byte* p) {
  return fmt::format("the number {}", kNumber.get(p));
}

}  // namespace

constinit const FormatRules kRaw{.name = "raw",
                                 .unit = nullptr,
                                 .fields = kFields,
                                 .header_bytes = header_bytes,
                                 .payload_bytes = payload_bytes,
                                 .check = check,
                                 .packets_per_second = station_pace,
                                 .read = read,
                                 .write = write,
                                 .advance = advance,
                                 .explain = explain};

}  // namespace weft::stream
