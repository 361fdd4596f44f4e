// FPDU geometry: RFC 5044 section 4 (spec/mpa 3.1, 3.4). The ULPDU is what stands between length
// and pad.
#pragma once

#include "base/bytes.h"

namespace weft::wire {

inline constexpr size_t kFpduLengthSize = 2;
inline constexpr size_t kFpduCrcSize = 4;
inline constexpr size_t kMaxUlpdu = 65535;

// RFC 5044 section 4.1: pad so that length field, ULPDU and pad together are a multiple of four.
constexpr size_t fpdu_pad(size_t ulpdu) {
  return (0U - (kFpduLengthSize + ulpdu)) & 3U;
}
constexpr size_t fpdu_size(size_t ulpdu) {
  return kFpduLengthSize + ulpdu + fpdu_pad(ulpdu) + kFpduCrcSize;
}
inline constexpr size_t kMaxFpdu = fpdu_size(kMaxUlpdu);

// A marker stands at every 512th byte of the stream, counted from the first byte after the start-up
// frame.
inline constexpr size_t kMarkerSpacing = 512;
inline constexpr size_t kMarkerSize = 4;

static_assert(fpdu_size(0) == 8 && fpdu_size(34) == 40 && fpdu_size(43) == 52);

}  // namespace weft::wire
