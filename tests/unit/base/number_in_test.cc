#include "base/number_in.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace weft {
namespace {

TEST(NumberIn, AllOfTheTextCounts) {
  EXPECT_EQ(number_in<uint32_t>("42"), 42U);
  EXPECT_EQ(number_in<int>("-42"), -42);
  EXPECT_EQ(number_in<uint32_t>("ff", 16), 255U);
  EXPECT_EQ(number_in<uint32_t>(""), std::nullopt);
  EXPECT_EQ(number_in<uint32_t>("42 "), std::nullopt);
  EXPECT_EQ(number_in<uint32_t>(" 42"), std::nullopt);
  EXPECT_EQ(number_in<uint32_t>("4x2"), std::nullopt);
  EXPECT_EQ(number_in<uint32_t>("0xff", 16), std::nullopt);
}

TEST(NumberIn, WhatItsTypeCannotHoldIsNone) {
  EXPECT_EQ(number_in<uint16_t>("65535"), 65535);
  EXPECT_EQ(number_in<uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(number_in<uint32_t>("-1"), std::nullopt);
}

}  // namespace
}  // namespace weft
