#include "kit/json_lines.h"

#include <gtest/gtest.h>

#include "kit/failure.h"

namespace weft::kit {
namespace {

TEST(JsonLines, DocumentsComeInPiecesAndSeveralAtOnce) {
  JsonLines lines{100};
  EXPECT_TRUE(lines.empty());
  lines.add("{\"a\"");
  EXPECT_EQ(lines.next(), std::nullopt);
  lines.add(": 1}\n[2]\n3");
  EXPECT_EQ(lines.next(), (nlohmann::json{{"a", 1}}));
  EXPECT_EQ(lines.next(), nlohmann::json::array({2}));
  EXPECT_EQ(lines.next(), std::nullopt);
  EXPECT_FALSE(lines.empty());
  EXPECT_EQ(lines.take_rest(), "3");
  EXPECT_TRUE(lines.empty());
}

TEST(JsonLines, WhatOneSaysTheOtherUnderstands) {
  JsonLines lines{100};
  const nlohmann::json document{{"text", "a\nb"}};
  lines.add(line_of(document));
  EXPECT_EQ(lines.next(), document);
}

TEST(JsonLines, ALineIsNoLongerThanItMayBe) {
  JsonLines lines{10};
  lines.add("1234567890");
  EXPECT_FALSE(lines.full());
  EXPECT_EQ(lines.next(), std::nullopt);
  lines.add("\n");
  EXPECT_TRUE(lines.full());
  EXPECT_EQ(lines.next(), 1234567890);
  lines.add("12345678901");
  EXPECT_THROW((void)lines.next(), Failure);
  lines.take_rest();
  lines.add("12345678901\n");
  EXPECT_THROW((void)lines.next(), Failure);
}

TEST(JsonLines, WhatIsNoJsonIsRefused) {
  JsonLines lines{100};
  lines.add("{nothing\n1\n");
  EXPECT_THROW((void)lines.next(), Failure);
  EXPECT_EQ(lines.next(), 1);
}

// nlohmann's copies and prints of a document this deep overflow the stack.
TEST(JsonLines, DeeplyNestedValuesAreRefused) {
  constexpr size_t kDepth = 1'000'000;
  JsonLines lines{4 * kDepth};
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\":", "}"}}) {
    std::string deep;
    for (size_t i = 0; i < kDepth / 2; ++i) deep += open;
    deep += "1";
    for (size_t i = 0; i < kDepth / 2; ++i) deep += close;
    lines.add(deep + "\n[[[2]]]\n");
    EXPECT_THROW((void)lines.next(), Failure);
    // What is behind it comes as ever.
    EXPECT_EQ(lines.next(), nlohmann::json::parse("[[[2]]]"));
  }
}

}  // namespace
}  // namespace weft::kit
