#include "stream/sample_time.h"

#include <cstring>

namespace weft::stream {
namespace {

// RSP's header: little-endian words with the second and the slice within it.
constexpr size_t kSecond = 8;
constexpr size_t kSlice = 12;
constexpr uint64_t kSamplesPerSlice = 1024;

uint32_t word(ConstPacket packet, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<uint32_t>(packet[at + i]) << (8 * i);
  }
  return value;
}

int64_t slice_ns(uint32_t clock) {
  return static_cast<int64_t>(kSamplesPerSlice) * 1000 / clock;
}

}  // namespace

bool tells_time(const Shape& shape) {
  return shape.format == Format::rsp;
}

int64_t packet_ns(const Shape& shape, uint32_t clock) {
  return slice_ns(clock) * shape.slices;
}

std::optional<int64_t> sample_time_ns(const Shape& shape, ConstPacket packet) {
  const Header header = read_header(shape, packet);
  if (!tells_time(shape) || !header.has_number()) return std::nullopt;
  const uint64_t hertz = uint64_t{header.origin.clock} * 1'000'000;
  // Slices go on across seconds: one that begins in the middle of the second's first slice counts
  // from the next one.
  const uint64_t first =
      (uint64_t{word(packet, kSecond)} * hertz + kSamplesPerSlice / 2) / kSamplesPerSlice;
  return static_cast<int64_t>(first + word(packet, kSlice)) * slice_ns(header.origin.clock);
}

std::optional<int64_t> sample_time_ns(const Shape& shape, ConstPacket packet, uint64_t by) {
  const auto time = sample_time_ns(shape, packet);
  if (!time) return std::nullopt;
  const uint32_t clock = read_header(shape, packet).origin.clock;
  return *time + static_cast<int64_t>(by) * packet_ns(shape, clock);
}

}  // namespace weft::stream
