#include "doctor/probe.h"

#include <algorithm>
#include <cstring>

namespace weft::doctor {
namespace {

constexpr uint32_t kMagic = 0x57464452;  // "WFDR"
constexpr uint8_t kVersion = 1;

template <class T>
void put(std::span<std::byte> bytes, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}
template <class T>
T get(std::span<const std::byte> bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8 | std::to_integer<T>(bytes[at + i]));
  }
  return value;
}

std::byte filling(size_t at) {
  return static_cast<std::byte>(at * 31 + (at >> 8));
}

}  // namespace

std::vector<std::byte> Probe::encode(size_t size) const {
  std::vector<std::byte> bytes(std::max(size, kProbeHeader));
  put(bytes, 0, kMagic);
  put(bytes, 4, kVersion);
  put(bytes, 5, static_cast<uint8_t>(kind));
  put(bytes, 8, token);
  put(bytes, 16, cookie);
  put(bytes, 24, round);
  put(bytes, 28, id);
  put(bytes, 32, static_cast<uint32_t>(bytes.size()));
  std::memcpy(&bytes[36], seen.raw.data(), seen.raw.size());
  put(bytes, 52, seen_port);
  for (size_t i = kProbeHeader; i < bytes.size(); ++i) bytes[i] = filling(i);
  return bytes;
}

std::optional<Probe> Probe::parse(std::span<const std::byte> datagram) {
  if (datagram.size() < kProbeHeader || get<uint32_t>(datagram, 0) != kMagic ||
      get<uint8_t>(datagram, 4) != kVersion || get<uint32_t>(datagram, 32) != datagram.size()) {
    return std::nullopt;
  }
  const auto kind = get<uint8_t>(datagram, 5);
  if (kind < static_cast<uint8_t>(Kind::ping) || kind > static_cast<uint8_t>(Kind::probe)) {
    return std::nullopt;
  }
  for (size_t i = kProbeHeader; i < datagram.size(); ++i) {
    if (datagram[i] != filling(i)) return std::nullopt;
  }
  Probe p{.kind = static_cast<Kind>(kind),
          .token = get<uint64_t>(datagram, 8),
          .cookie = get<uint64_t>(datagram, 16),
          .round = get<uint32_t>(datagram, 24),
          .id = get<uint32_t>(datagram, 28),
          .seen = {},
          .seen_port = get<uint16_t>(datagram, 52)};
  std::memcpy(p.seen.raw.data(), &datagram[36], p.seen.raw.size());
  return p;
}

}  // namespace weft::doctor
