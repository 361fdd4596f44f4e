// One number in the header of a packet, as a row of its format's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::stream {

enum class ByteOrder : uint8_t { big, little };

struct Field {
  std::string_view name;
  uint32_t at = 0;     // of its first byte in the header
  uint32_t bytes = 1;  // 1 to 8, of the word that it is a part of
  ByteOrder order = ByteOrder::big;
  uint32_t shift = 0;  // of its lowest bit in that word
  uint32_t bits = 8;   // 1 to 64
  std::string_view meaning;

  constexpr uint32_t end() const { return at + bytes; }
  constexpr uint64_t most() const { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }
  // `header` has at least end() bytes.
  constexpr uint64_t get(const std::byte* header) const { return word(header) >> shift & most(); }
  // What does not fit into its bits is cut off; the rest of the word stays.
  constexpr void put(std::byte* header, uint64_t value) const {
    const uint64_t all = (word(header) & ~(most() << shift)) | (value & most()) << shift;
    for (uint32_t i = 0; i < bytes; ++i) {
      header[at + place(i)] = static_cast<std::byte>(all >> (8 * i));
    }
  }

 private:
  // Of the word's i-th byte from the lowest one.
  constexpr uint32_t place(uint32_t i) const {
    return order == ByteOrder::little ? i : bytes - 1 - i;
  }
  constexpr uint64_t word(const std::byte* header) const {
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; ++i) {
      value |= static_cast<uint64_t>(header[at + place(i)]) << (8 * i);
    }
    return value;
  }
};

}  // namespace weft::stream
