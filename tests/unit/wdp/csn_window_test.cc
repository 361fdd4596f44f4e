#include "wdp/csn_window.h"

#include <gtest/gtest.h>

#include "base/draw.h"

namespace weft::wdp {
namespace {

using Seen = CsnWindow::Seen;

TEST(CsnWindow, InOrder) {
  CsnWindow w(Csn{10});
  for (uint32_t i = 10; i < 20; ++i) {
    EXPECT_EQ(w.look(Csn{i}), Seen::first_time);
    w.take(Csn{i});
    EXPECT_EQ(w.look(Csn{i}), Seen::before);
    EXPECT_EQ(w.cum(), Csn{i + 1});
    EXPECT_FALSE(w.gaps());
  }
}

// spec/wdp-rd 4.1: the bitmap says what is held beyond CUM.
TEST(CsnWindow, AGapIsTold) {
  CsnWindow w(Csn{0xfffffffe});  // numbers wrap
  w.take(Csn{0});
  w.take(Csn{1});
  EXPECT_TRUE(w.gaps());
  wire::WdpAck ack;
  w.tell(ack);
  EXPECT_EQ(ack.cum, Csn{0xfffffffe});
  EXPECT_EQ(ack.words, 1);
  EXPECT_FALSE(ack.holds(Csn{0xffffffff}));
  EXPECT_TRUE(ack.holds(Csn{0}) && ack.holds(Csn{1}));
  EXPECT_FALSE(ack.holds(Csn{2}));
  w.take(Csn{0xfffffffe});
  EXPECT_EQ(w.cum(), Csn{0xffffffff});
  w.take(Csn{0xffffffff});
  EXPECT_EQ(w.cum(), Csn{2});
  EXPECT_FALSE(w.gaps());
}

TEST(CsnWindow, WhatIsTooFarAhead) {
  CsnWindow w(Csn{5});
  EXPECT_EQ(w.look(Csn{5 + kCsnWindow - 1}), Seen::first_time);
  EXPECT_EQ(w.look(Csn{5 + kCsnWindow}), Seen::too_far);
  EXPECT_EQ(w.look(Csn{4}), Seen::before);
}

// The bitmap ends at 1024; what lies further on is told of when CUM has come closer.
TEST(CsnWindow, TheBitmapHasAnEnd) {
  CsnWindow w(Csn{0});
  w.take(Csn{1024});
  w.take(Csn{1025});
  wire::WdpAck ack;
  w.tell(ack);
  EXPECT_EQ(ack.words, 32);
  EXPECT_TRUE(ack.holds(Csn{1024}));
  EXPECT_FALSE(ack.holds(Csn{1025}));
}

// Any order, with copies: each for the first time once, and CUM at last behind them all.
TEST(CsnWindow, AnyOrder) {
  SeededRandom random{7};
  CsnWindow w(Csn{0});
  std::vector<bool> there(50'000);
  uint32_t cum = 0;
  while (cum < 20'000) {
    const uint32_t i = cum + static_cast<uint32_t>(draw_below(random, 300));
    const auto seen = w.look(Csn{i});
    ASSERT_EQ(seen, there[i] ? Seen::before : Seen::first_time);
    if (!there[i]) w.take(Csn{i});
    there[i] = true;
    if (draw_chance(random, 0.5) && w.look(Csn{cum}) == Seen::first_time) {
      w.take(Csn{cum});
      there[cum] = true;
    }
    while (there[cum]) ++cum;
    ASSERT_EQ(w.cum(), Csn{cum});
  }
}

}  // namespace
}  // namespace weft::wdp
