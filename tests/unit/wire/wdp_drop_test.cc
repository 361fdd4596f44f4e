#include "wire/wdp_drop.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace weft::wire {
namespace {

TEST(WdpDrop, EveryReasonHasANameAndASentenceOfItsOwn) {
  std::set<std::string> names;
  std::set<std::string> sentences;
  for (size_t i = 0; i < kWdpDropCount; ++i) {
    const auto why = static_cast<WdpDrop>(i);
    names.insert(counter_name(why));
    sentences.insert(to_string(why));
    EXPECT_EQ(std::strspn(counter_name(why), "abcdefghijklmnopqrstuvwxyz_"),
              std::strlen(counter_name(why)))
        << counter_name(why);
  }
  EXPECT_EQ(names.size(), kWdpDropCount);
  EXPECT_EQ(sentences.size(), kWdpDropCount);
  EXPECT_FALSE(names.contains("?") || sentences.contains("?"));
}

TEST(WdpDrop, NamesAreThoseOfTheReasons) {
  EXPECT_STREQ(counter_name(WdpDrop::too_short), "too_short");
  EXPECT_STREQ(counter_name(WdpDrop::bad_crc), "bad_crc");
  EXPECT_STREQ(to_string(WdpDrop::bad_crc), "CRC does not match");
  EXPECT_STREQ(counter_name(WdpDrop::read_queue_full), "read_queue_full");
}

TEST(WdpDrop, WhatIsNoReasonHasNoName) {
  for (const size_t i : {kWdpDropCount, size_t{255}}) {
    EXPECT_STREQ(counter_name(static_cast<WdpDrop>(i)), "?") << i;
    EXPECT_STREQ(to_string(static_cast<WdpDrop>(i)), "?") << i;
  }
}

}  // namespace
}  // namespace weft::wire
