#include "wire/fpdu.h"

#include <gtest/gtest.h>

namespace weft::wire {
namespace {

TEST(Fpdu, PadAndSizeOfUlpdusFromTheExamples) {
  struct Row {
    size_t ulpdu, pad, size;
  };
  // spec/mpa 3.1 and docs/spec/examples.md: RTR kind B, E3, E4, E5, E7, E8, E9, E10; siw's full
  // segment.
  const Row rows[] = {{0, 2, 8},   {34, 0, 40}, {46, 0, 52},    {78, 0, 84}, {43, 3, 52},
                      {42, 0, 48}, {22, 0, 28}, {26, 0, 32},    {70, 0, 76}, {30, 0, 36},
                      {14, 0, 20}, {18, 0, 24}, {1442, 0, 1448}};
  for (const Row& r : rows) {
    EXPECT_EQ(fpdu_pad(r.ulpdu), r.pad) << r.ulpdu;
    EXPECT_EQ(fpdu_size(r.ulpdu), r.size) << r.ulpdu;
  }
}

TEST(Fpdu, PadMakesAMultipleOfFourWithTheLeastBytes) {
  for (size_t n = 0; n <= kMaxUlpdu; ++n) {
    ASSERT_LT(fpdu_pad(n), 4U) << n;
    ASSERT_EQ((kFpduLengthSize + n + fpdu_pad(n)) % 4, 0U) << n;
    ASSERT_EQ(fpdu_size(n), 2 + n + fpdu_pad(n) + 4) << n;
  }
}

TEST(Fpdu, BoundForAReceiver) {
  // spec/mpa 3.3: 65535 + 9.
  EXPECT_EQ(fpdu_size(kMaxUlpdu), 65535U + 9U);
  for (size_t n = 65532; n <= kMaxUlpdu; ++n) EXPECT_LE(fpdu_size(n), fpdu_size(kMaxUlpdu));
}

// spec/same-host 3.5.
TEST(Fpdu, InMemoryLengthAndUlpduAreAll) {
  constexpr FpduForm kMemory = FpduForm::of_memory();
  EXPECT_EQ(kMemory.size(0), 4U);
  EXPECT_EQ(kMemory.size(43), 47U);
  EXPECT_EQ(kMemory.trailer(43), 0U);
  EXPECT_EQ(kMemory.most(), 1024U * 1024 + 64);
  const std::byte length[] = {std::byte{0}, std::byte{0x10}, std::byte{0}, std::byte{1}};
  EXPECT_EQ(kMemory.ulpdu(length), 0x100001U);
  constexpr FpduForm kTcp = FpduForm::of_tcp();
  for (const size_t n : {0U, 1U, 43U, 65535U}) EXPECT_EQ(kTcp.size(n), fpdu_size(n));
  EXPECT_EQ(kTcp.ulpdu(length), 0x10U);
}

TEST(Fpdu, MarkerGeometry) {
  // RFC 5044 section 4.3; spec/mpa 3.4.
  EXPECT_EQ(kMarkerSpacing, 512U);
  EXPECT_EQ(kMarkerSize, 4U);
}

}  // namespace
}  // namespace weft::wire
