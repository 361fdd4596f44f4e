// What packets of a stream look like, and the number that each one carries. docs/streams.md has the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace weft::stream {

using Packet = std::span<std::byte>;
using ConstPacket = std::span<const std::byte>;

enum class Format : uint8_t {
  rsp = 1,    // LOFAR's Remote Station Processing boards
  spead = 2,  // SPEAD-64-48, each packet a part of a heap
  raw = 3,    // a counter of 8 bytes, big-endian, and data
};
const char* name_of(Format format);

// The shape of a stream's packets, the same on both sides.
struct Shape {
  Format format = Format::rsp;
  // RSP: beamlets x slices x 2 polarisations x (real, imaginary) of so many bits.
  uint32_t beamlets = 61;
  uint32_t slices = 16;
  uint32_t bits = 16;
  // SPEAD and raw.
  uint32_t payload = 8192;
  uint32_t heap_packets = 1;  // SPEAD: packets of a heap

  uint32_t header_bytes() const;
  uint32_t payload_bytes() const;
  uint32_t packet_bytes() const { return header_bytes() + payload_bytes(); }
  // Throws bench::Failure for a shape that no packet has.
  void check() const;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// The station's sample clock, and the samples that its filter bank makes one time slice of.
inline constexpr uint64_t kSampleClock = 200'000'000;
inline constexpr uint64_t kSamplesPerSlice = 1024;
// Packets a second that a station sends.
double rsp_packets_per_second(const Shape& shape);

// Writes the header of packet `number` of a stream into its first header_bytes().
void write_header(const Shape& shape, uint32_t stream, uint64_t number, Packet packet);
// Makes a packet the one that comes `by` numbers later; a multiple of a heap's packets.
void advance(const Shape& shape, uint64_t by, Packet packet);
// The number in a packet's header. Nothing when it is no packet of this shape.
std::optional<uint64_t> number_of(const Shape& shape, ConstPacket packet);

}  // namespace weft::stream
