#include "abi/rsockets/wire.h"

#include <algorithm>
#include <bit>

namespace weft::rsockets {
namespace {

constexpr std::byte kVersion{1};
constexpr std::byte kBigEndian{1};
constexpr std::byte kMapsMemory{2};

constexpr uint32_t kScaled = 0x80;  // above, the other seven bits count pieces of kScale
constexpr uint32_t kScale = 256;

uint8_t scaled(uint32_t slots) {
  if (slots <= kScaled) return static_cast<uint8_t>(slots);
  return static_cast<uint8_t>(kScaled | std::min((slots + kScale - 1) / kScale, kScaled - 1));
}

uint32_t unscaled(uint8_t byte) {
  return byte > kScaled ? (byte & ~kScaled) * kScale : byte;
}

void store(std::byte* p, const Target& t) {
  store_be(p, t.address);
  store_be(p + 8, t.key);
  store_be(p + 12, t.length);
}

Target load(const std::byte* p) {
  return {load_be<uint64_t>(p), load_be<uint32_t>(p + 8), load_be<uint32_t>(p + 12)};
}

}  // namespace

uint32_t sayable_slots(uint32_t slots) {
  return unscaled(scaled(slots));
}

std::optional<ConnectData> ConnectData::parse(Bytes private_data) {
  if (private_data.size() < kSize || private_data[0] != kVersion) return std::nullopt;
  const std::byte flags = private_data[1];
  if (((flags & kBigEndian) != std::byte{0}) != (std::endian::native == std::endian::big))
    return std::nullopt;
  const std::byte* p = private_data.data();
  ConnectData d;
  d.credits = load_be<uint16_t>(p + 2);
  if ((flags & kMapsMemory) != std::byte{0}) d.mapped_slots = unscaled(static_cast<uint8_t>(p[7]));
  d.list = load(p + 8);
  d.buffer = load(p + 24);
  if (d.list.length == 0) return std::nullopt;
  return d;
}

std::array<std::byte, ConnectData::kSize> ConnectData::encode() const {
  std::array<std::byte, kSize> bytes{};
  bytes[0] = kVersion;
  bytes[1] = std::endian::native == std::endian::big ? kMapsMemory | kBigEndian : kMapsMemory;
  store_be(&bytes[2], credits);
  bytes[7] = std::byte{scaled(mapped_slots)};
  store(&bytes[8], list);
  store(&bytes[24], buffer);
  return bytes;
}

}  // namespace weft::rsockets
