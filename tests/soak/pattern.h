// What a message of a link holds: every byte and its length follow from the link, the message's
// number and its kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::soak {

inline constexpr size_t kMostBytes = size_t{96} << 10;

enum class MessageKind : uint8_t { to_server, to_client, written };

inline uint64_t mix(uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15U;
  x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9U;
  x = (x ^ x >> 27) * 0x94d0'49bb'1331'11ebU;
  return x ^ x >> 31;
}

struct Pattern {
  uint64_t seed;
  Pattern(uint32_t link, MessageKind kind, uint64_t number)
      : seed(mix(mix(uint64_t{link} << 8 | static_cast<uint64_t>(kind)) + number)) {}

  // Half of all messages are small, few so large that they take several FPDUs; a message to the
  // client has at least a count.
  size_t length(MessageKind kind) const {
    const uint64_t r = mix(seed);
    const uint64_t size_class = r % 32;
    const size_t most = size_class < 16   ? 256
                        : size_class < 27 ? 4096
                        : size_class < 31 ? size_t{32} << 10
                                          : kMostBytes;
    const size_t n = static_cast<size_t>((r >> 8) % (most + 1));
    return kind == MessageKind::to_client && n < 8 ? 8 : n;
  }
  void fill(std::byte* to, size_t n) const {
    for (size_t i = 0; i < n; i += 8) {
      const uint64_t word = mix(seed + i);
      std::memcpy(to + i, &word, n - i < 8 ? n - i : 8);
    }
  }
  // Where the first wrong byte is; n when there is none.
  size_t check(const std::byte* from, size_t n, size_t begin = 0) const {
    for (size_t i = begin; i < n; i += 8) {
      const uint64_t word = mix(seed + i);
      const size_t some = n - i < 8 ? n - i : 8;
      if (std::memcmp(from + i, &word, some) != 0) return i;
    }
    return n;
  }
};

}  // namespace weft::soak
