#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

const std::vector<std::string> kOptions{"--streams", "--rate", "--first-stream", "--format"};

TEST(NearestWordTest, OneEditOfEachKindIsForgiven) {
  EXPECT_EQ(nearest_word("--streems", kOptions), "--streams");   // replaced
  EXPECT_EQ(nearest_word("--strems", kOptions), "--streams");    // left out
  EXPECT_EQ(nearest_word("--sstreams", kOptions), "--streams");  // added
  EXPECT_EQ(nearest_word("--raet", kOptions), "--rate");         // swapped
}

TEST(NearestWordTest, TheFewestEditsWin) {
  const std::vector<std::string> known{"stream", "stat", "start"};
  EXPECT_EQ(nearest_word("staat", known), "stat");
  EXPECT_EQ(nearest_word("strat", known), "stat") << "of equals the first";
}

TEST(NearestWordTest, AWordUnlikeAllOthersHasNone) {
  EXPECT_EQ(nearest_word("--polling", kOptions), "");
  EXPECT_EQ(nearest_word("", kOptions), "");
  EXPECT_EQ(nearest_word("--rate", {}), "");
}

TEST(NearestWordTest, AShortWordIsNotReplacedWhole) {
  const std::vector<std::string> known{"-o", "on", "4"};
  EXPECT_EQ(nearest_word("x", known), "");
}

}  // namespace
}  // namespace weft
