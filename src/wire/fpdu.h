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

// In memory that both ends share an FPDU is a length of four bytes and the ULPDU, which may be as
// long as kMostInMemory (spec/same-host 3.5). On TCP it is as above.
class FpduForm {
 public:
  static constexpr size_t kMostInMemory = (1U << 20) + 64;
  static constexpr FpduForm of_tcp() { return FpduForm{false}; }
  static constexpr FpduForm of_memory() { return FpduForm{true}; }

  constexpr size_t length_size() const { return in_memory_ ? sizeof(uint32_t) : kFpduLengthSize; }
  constexpr size_t most() const { return in_memory_ ? kMostInMemory : kMaxUlpdu; }
  // What stands behind the ULPDU: pad and CRC.
  constexpr size_t trailer(size_t ulpdu) const {
    return in_memory_ ? 0 : fpdu_pad(ulpdu) + kFpduCrcSize;
  }
  constexpr size_t size(size_t ulpdu) const { return length_size() + ulpdu + trailer(ulpdu); }
  // Of the FPDU that begins at `p`; length_size() bytes are there.
  size_t ulpdu(const std::byte* p) const {
    return in_memory_ ? load_be<uint32_t>(p) : load_be<uint16_t>(p);
  }
  // What ulpdu() reads. Returns its end.
  std::byte* put_length(std::byte* p, size_t ulpdu) const {
    if (in_memory_) {
      store_be(p, static_cast<uint32_t>(ulpdu));
    } else {
      store_be(p, static_cast<uint16_t>(ulpdu));
    }
    return p + length_size();
  }

 private:
  constexpr explicit FpduForm(bool in_memory) : in_memory_(in_memory) {}
  bool in_memory_;
};

// A marker stands at every 512th byte of the stream, counted from the first byte after the start-up
// frame.
inline constexpr size_t kMarkerSpacing = 512;
inline constexpr size_t kMarkerSize = 4;

static_assert(fpdu_size(0) == 8 && fpdu_size(34) == 40 && fpdu_size(43) == 52);

}  // namespace weft::wire
