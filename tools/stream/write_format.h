// What a sender of RDMA Writes says beside the packets: the immediate of each Write, and the
// trailers of packets that share one. docs/streams-reference.md has it for those who build a
// sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::stream {

// --- the immediate: the packets of the Write
inline constexpr unsigned kMarkBits = 24;
inline constexpr uint32_t kMostInWrite = 256;

struct Mark {
  uint32_t number;   // the low 24 bits of the first packet's
  uint32_t packets;  // 1 to 256, all of one block
};
constexpr uint32_t immediate_of(const Mark& mark) {
  return (mark.number & ((1U << kMarkBits) - 1)) << 8 | ((mark.packets - 1) & 0xff);
}
constexpr Mark mark_of(uint32_t immediate) {
  return {.number = immediate >> 8, .packets = (immediate & 0xff) + 1};
}

// --- the last bytes of a slot, in Writes of more than one packet; little-endian
struct Trailer {
  uint64_t number;  // of the packet
  uint32_t crc;     // CRC32C of its bytes
  uint32_t zero;
};
static_assert(sizeof(Trailer) == 16);

inline Trailer read_trailer(const std::byte* from) {
  Trailer t;
  std::memcpy(&t, from, sizeof t);
  return t;
}
inline void write_trailer(std::byte* to, const Trailer& trailer) {
  std::memcpy(to, &trailer, sizeof trailer);
}

// The slot of a packet, with room for a trailer.
constexpr uint32_t slot_bytes_for(uint32_t packet_bytes) {
  return (packet_bytes + 15) / 16 * 16 + static_cast<uint32_t>(sizeof(Trailer));
}

}  // namespace weft::stream
