// The header of a VDIF frame ("VLBI Data Interchange Format (VDIF) Specification", release 1.1.1,
// 2014): words of 4 bytes. Of its table a legacy header has the first four rows of words.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "stream/format/field.h"

namespace weft::stream::vdif {

constexpr Field row(std::string_view name, uint32_t at, uint32_t shift, uint32_t bits,
                    std::string_view meaning) {
  return {name, at, 4, ByteOrder::little, shift, bits, meaning};
}
inline constexpr Field kInvalid = row("invalid", 0, 31, 1, "1: the samples are not valid");
inline constexpr Field kLegacy = row("legacy", 0, 30, 1, "1: a header of 16 bytes");
inline constexpr Field kSecond = row("second", 0, 0, 30, "since the epoch");
inline constexpr Field kUnassigned = row("unassigned", 4, 30, 2, "");
inline constexpr Field kEpoch = row("epoch", 4, 24, 6, "half years since 2000");
inline constexpr Field kFrame = row("frame", 4, 0, 24, "within the second");
inline constexpr Field kVersion = row("version", 8, 29, 3, "");
inline constexpr Field kChannels = row("channels_log2", 8, 24, 5, "");
inline constexpr Field kLength = row("length", 8, 0, 24, "of the frame, 8 bytes each");
inline constexpr Field kComplex = row("complex", 12, 31, 1, "");
inline constexpr Field kBits = row("bits_minus_1", 12, 26, 5, "of a sample");
inline constexpr Field kThread = row("thread", 12, 16, 10, "");
inline constexpr Field kStation = row("station", 12, 0, 16, "");
inline constexpr std::array kFields{kInvalid, kLegacy,  kSecond,   kUnassigned, kEpoch,
                                    kFrame,   kVersion, kChannels, kLength,     kComplex,
                                    kBits,    kThread,  kStation};
// Of VTP, before the frame ("VTP: VDIF Transport Protocol", release 1.0.0, 2013).
inline constexpr Field kSequence{
    "sequence", 0, 8, ByteOrder::little, 0, 64, "VTP's, of the datagram"};

inline constexpr uint32_t kHeader = 32;  // bytes
inline constexpr uint32_t kLegacyHeader = 16;
inline constexpr uint32_t kLengthUnit = 8;  // bytes

// When the first epoch begins: seconds since 1970.
inline constexpr int64_t kBegins = 946'684'800;
// Seconds from that to each epoch.
inline constexpr auto kEpochs = [] {
  using namespace std::chrono;
  std::array<uint64_t, 64> begins{};
  constexpr sys_days kFirst{January / 1 / 2000};
  for (unsigned i = 0; i < begins.size(); ++i) {
    const sys_days day{year{2000 + static_cast<int>(i / 2)} / (i % 2 == 0 ? January : July) / 1};
    begins[i] = static_cast<uint64_t>(seconds{day - kFirst}.count());
  }
  return begins;
}();
// The last one that has begun, so many seconds after kBegins.
constexpr uint64_t epoch_at(uint64_t second) {
  const auto later = std::upper_bound(kEpochs.begin(), kEpochs.end(), second);
  return static_cast<uint64_t>(later - kEpochs.begin()) - 1;
}

}  // namespace weft::stream::vdif
