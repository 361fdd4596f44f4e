// Shared by the tests of StreamLink.
#pragma once

#include <gtest/gtest.h>

#include "sim/stream_link.h"
#include "tests/support/hex.h"

namespace weft::sim {

inline constexpr Segmentation kAll[] = {Segmentation::whole, Segmentation::bytewise,
                                        Segmentation::random, Segmentation::mss};

inline size_t write(StreamEnd& end, Bytes bytes) {
  return end.write(std::span{&bytes, 1});
}

inline test::Buffer read_all(StreamEnd& end) {
  test::Buffer b(end.readable());
  MutableBytes piece{b};
  EXPECT_EQ(end.read(std::span{&piece, 1}), b.size());
  return b;
}

}  // namespace weft::sim
