#include "drive/look_ahead.h"

#include <gtest/gtest.h>

namespace weft::drive {
namespace {

int looks(LookAhead& look, int datagrams, bool large) {
  int n = 0;
  for (int i = 0; i < datagrams; ++i) {
    n += look.pays() ? 1 : 0;
    look.came(large);
  }
  return n;
}

TEST(LookAhead, PaysBehindALargeDatagramForAWhile) {
  LookAhead look;
  EXPECT_EQ(looks(look, 100, false), 0) << "small ones alone";
  look.came(true);
  EXPECT_EQ(looks(look, 100, false), 4) << "small ones behind a large one";
  look.came(true);
  EXPECT_EQ(looks(look, 100, true), 100);
}

TEST(LookAhead, RestsWhenItWasInVain) {
  LookAhead look;
  look.came(true);
  for (int i = 0; i < 3; ++i) look.in_vain();
  look.in_place();
  for (int i = 0; i < 3; ++i) look.in_vain();
  EXPECT_EQ(looks(look, 10, true), 10) << "three in a row are the beginnings of Sends";
  look.in_vain();
  EXPECT_EQ(looks(look, 63, true), 0);
  EXPECT_EQ(looks(look, 10, true), 10) << "then it tries again";
}

}  // namespace
}  // namespace weft::drive
