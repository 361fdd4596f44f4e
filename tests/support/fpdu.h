// An FPDU taken apart and put together by hand, as spec/mpa 3.1 describes it, for tests that look
// at single bytes.
#pragma once

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "tests/support/hex.h"
#include "wire/fpdu.h"

namespace weft::test {

struct SplitFpdu {
  Bytes ulpdu;
  Bytes pad;
  uint32_t crc_field;
  uint32_t crc;  // computed over length, ULPDU and pad
};

// `frame` is exactly one FPDU; anything else is a test failure and comes back empty.
inline SplitFpdu split_fpdu(Bytes frame) {
  if (frame.size() < wire::fpdu_size(0)) {
    ADD_FAILURE() << "no FPDU in " << frame.size() << " bytes";
    return {};
  }
  const size_t n = load_be<uint16_t>(frame.data());
  if (frame.size() != wire::fpdu_size(n)) {
    ADD_FAILURE() << "ULPDU_Length " << n << " makes " << wire::fpdu_size(n) << " bytes, not "
                  << frame.size();
    return {};
  }
  const Bytes covered = frame.first(frame.size() - wire::kFpduCrcSize);
  return {covered.subspan(wire::kFpduLengthSize, n), covered.subspan(wire::kFpduLengthSize + n),
          load_le32(frame.data() + covered.size()), crc32c(covered)};
}

// `pad` replaces the zeros that weft would send.
inline Buffer make_fpdu(Bytes ulpdu, Bytes pad = {}) {
  Buffer frame(wire::fpdu_size(ulpdu.size()));
  store_be(frame.data(), static_cast<uint16_t>(ulpdu.size()));
  std::copy(ulpdu.begin(), ulpdu.end(), frame.begin() + wire::kFpduLengthSize);
  EXPECT_TRUE(pad.empty() || pad.size() == wire::fpdu_pad(ulpdu.size()));
  std::copy(pad.begin(), pad.end(),
            frame.begin() + static_cast<ptrdiff_t>(wire::kFpduLengthSize + ulpdu.size()));
  const size_t covered = frame.size() - wire::kFpduCrcSize;
  store_le32(frame.data() + covered, crc32c(Bytes{frame}.first(covered)));
  return frame;
}

}  // namespace weft::test
