#include "stream/synthetic.h"

#include <algorithm>
#include <array>

namespace weft::stream {
namespace {

constexpr size_t kTable = 65'536;  // bytes; repeats after them
constexpr size_t kStep = 128;      // packets begin at multiples of this in the table
constexpr uint64_t kBegins = kTable / kStep;
constexpr uint64_t kPacketStep = 167;  // prime, so that neighbours in time and place differ
constexpr uint64_t kStreamStep = 59;

// A tone of 8 samples a turn: cosine and sine, times 64.
constexpr std::array<int, 8> kCosine{64, 45, 0, -45, -64, -45, 0, 45};
constexpr std::array<int, 8> kSine{0, 45, 64, 45, 0, -45, -64, -45};

// Two triangles' worth of noise from one hash: -30 to 30.
int noise(uint64_t part) {
  uint64_t x = (part + 1) * 0x9e3779b97f4a7c15;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 32;
  return static_cast<int>(x & 15) + static_cast<int>(x >> 8 & 15) + static_cast<int>(x >> 16 & 15) +
         static_cast<int>(x >> 24 & 15) - 30;
}

// Part i of the table: samples are X real, X imaginary, Y real, Y imaginary.
int part(uint64_t i) {
  const auto turn = static_cast<size_t>(i / 4 % 8);
  return noise(i) + (i % 2 == 0 ? kCosine[turn] : kSine[turn]);
}

}  // namespace

Synthetic::Synthetic(const Shape& shape) : payload_(shape.payload_bytes()) {
  // Samples of less than a byte are the bytes of 8 bits.
  const size_t bytes = std::max(shape.bits / 8, 1U);
  table_.resize(kTable + payload_);
  for (size_t at = 0; at < table_.size(); ++at) {
    const size_t in_turn = at % kTable;
    // Arithmetic shift: the high byte of a negative 16-bit number is 0xff.
    const int value = part(in_turn / bytes);
    table_[at] = static_cast<std::byte>(value >> (8 * (in_turn % bytes)));
  }
}

ConstPacket Synthetic::payload(uint32_t stream, uint64_t number) const {
  const uint64_t begin = (number * kPacketStep + stream * kStreamStep) % kBegins;
  return {table_.data() + begin * kStep, payload_};
}

}  // namespace weft::stream
