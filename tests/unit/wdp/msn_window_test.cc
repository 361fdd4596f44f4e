#include "wdp/msn_window.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

using wire::WdpDrop;

std::optional<WdpDrop> why(MsnWindow& w, uint32_t msn, bool newest_psn = true) {
  const auto v = w.check(Msn{msn}, newest_psn);
  return v.ok() ? std::optional<WdpDrop>{} : v.error();
}

TEST(MsnWindow, KnowsTheNewest) {
  MsnWindow w;
  EXPECT_FALSE(why(w, 77));
  EXPECT_TRUE(w.note(Msn{77}));
  EXPECT_FALSE(w.note(Msn{77}));
  EXPECT_FALSE(w.note(Msn{70}));
  EXPECT_TRUE(w.note(Msn{80}));
  EXPECT_EQ(w.highest(), Msn{80});
}

// spec/wdp-uc 3.4: MSN <= max-1024 is stale.
TEST(MsnWindow, OlderThan1024IsStale) {
  MsnWindow w;
  w.note(Msn{5000});
  EXPECT_EQ(why(w, 5000 - 1024), WdpDrop::stale_msn);
  EXPECT_FALSE(why(w, 5000 - 1023));
  EXPECT_FALSE(w.near(Msn{5000 - 1024}));
  EXPECT_TRUE(w.near(Msn{5000 - 1023}));
}

TEST(MsnWindow, WhatIsOverStaysOver) {
  MsnWindow w;
  w.note(Msn{0xfffffff0U});
  for (uint32_t i = 0; i < 40; i += 2) {
    w.note(Msn{0xfffffff0U + i});
    w.close(Msn{0xfffffff0U + i});
  }
  for (uint32_t i = 0; i < 39; ++i) EXPECT_EQ(w.closed(Msn{0xfffffff0U + i}), i % 2 == 0) << i;
  // Another round of the same bits.
  w.note(Msn{0xfffffff0U + 1024 + 20});
  EXPECT_FALSE(w.closed(Msn{0xfffffff0U + 1024}));
  EXPECT_TRUE(w.closed(Msn{0xfffffff0U + 38}));
  w.note(Msn{0xfffffff0U + 100'000});
  EXPECT_FALSE(w.closed(Msn{0xfffffff0U + 100'000 - 1023}));
}

TEST(MsnWindow, AForgedJumpMovesNothingUnlessItPersists) {
  MsnWindow w;
  w.note(Msn{1});
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(why(w, 0x7000'0000), WdpDrop::msn_jump);
    EXPECT_FALSE(why(w, 2 + i));
  }
  for (uint32_t i = 0; i + 1 < kResyncAfter; ++i) EXPECT_EQ(why(w, 0x7000'0000), WdpDrop::msn_jump);
  EXPECT_FALSE(why(w, 0x7000'0000));
}

TEST(MsnWindow, MessagesMayBeAsFarApartAsDatagrams) {
  MsnWindow w;
  w.note(Msn{1});
  EXPECT_FALSE(why(w, 1 + kPsnWindow));
  EXPECT_EQ(why(w, 2 + kPsnWindow), WdpDrop::msn_jump);
}

TEST(MsnWindow, ForgetsAllWhenThePeerBeginsAnew) {
  MsnWindow w;
  w.note(Msn{50'000});
  w.close(Msn{50'000});
  w.restart();
  EXPECT_FALSE(why(w, 1));
  EXPECT_TRUE(w.note(Msn{1}));
  EXPECT_FALSE(w.closed(Msn{1}));
}

}  // namespace
}  // namespace weft::wdp
