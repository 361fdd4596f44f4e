#include "wdp/psn_window.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

using wire::WdpDrop;

// What becomes of a datagram with this PSN: nothing, or why it is dropped.
std::optional<WdpDrop> take(PsnWindow& w, uint32_t psn) {
  if (const auto v = w.check(Psn{psn}); !v.ok()) return v.error();
  w.mark(Psn{psn});
  return {};
}

TEST(PsnWindow, TakesEachOnce) {
  PsnWindow w(Psn{100});
  for (const uint32_t psn : {100U, 101U, 105U, 103U, 102U, 104U}) {
    EXPECT_FALSE(take(w, psn));
    EXPECT_EQ(take(w, psn), WdpDrop::duplicate);
  }
  EXPECT_EQ(w.highest(), Psn{105});
  EXPECT_EQ(w.unique(), 6U);
  EXPECT_EQ(w.lost(), 0U);
}

TEST(PsnWindow, NothingComesBeforeTheFirstThatWasAnnounced) {
  PsnWindow w(Psn{100});
  EXPECT_EQ(take(w, 99), WdpDrop::duplicate);
  EXPECT_EQ(take(w, 100 - kPsnWindow - 1), WdpDrop::stale_psn);
  EXPECT_FALSE(take(w, 100));
  EXPECT_EQ(w.lost(), 0U);
}

TEST(PsnWindow, WithoutAnAnnouncementTheFirstBegins) {
  PsnWindow w({}, true);
  EXPECT_FALSE(w.started());
  EXPECT_FALSE(take(w, 500));
  // It may have been overtaken itself.
  EXPECT_FALSE(take(w, 498));
  EXPECT_FALSE(take(w, 501));
  EXPECT_EQ(take(w, 498), WdpDrop::duplicate);
}

TEST(PsnWindow, RemembersTheLast4096) {
  PsnWindow w(Psn{0});
  EXPECT_FALSE(take(w, 0));
  EXPECT_FALSE(take(w, 2500));
  EXPECT_FALSE(take(w, 5000));
  EXPECT_EQ(take(w, 5000 - kPsnWindow), WdpDrop::stale_psn);
  EXPECT_FALSE(take(w, 5000 - kPsnWindow + 1));
  EXPECT_EQ(take(w, 5000 - kPsnWindow + 1), WdpDrop::duplicate);
  // What was in the window before does not shine through.
  const uint32_t end = 5001 + 3 * kPsnWindow;
  for (uint32_t psn = 5001; psn < end; psn += 3) ASSERT_FALSE(take(w, psn));
  for (uint32_t psn = w.highest().value() - kPsnWindow + 1; psn < end; ++psn) {
    const bool came = (psn - 5001) % 3 == 0;
    ASSERT_EQ(take(w, psn), came ? std::optional{WdpDrop::duplicate} : std::nullopt) << psn;
  }
}

TEST(PsnWindow, Wraps) {
  PsnWindow w(Psn{0xfffffffeU});
  EXPECT_FALSE(take(w, 0xfffffffeU));
  EXPECT_FALSE(take(w, 1));
  EXPECT_FALSE(take(w, 0));
  EXPECT_FALSE(take(w, 0xffffffffU));
  EXPECT_EQ(take(w, 0), WdpDrop::duplicate);
  EXPECT_EQ(w.highest(), Psn{1});
  EXPECT_EQ(w.lost(), 0U);
}

TEST(PsnWindow, CountsWhatWasPassedOver) {
  PsnWindow w(Psn{10});
  take(w, 10);
  take(w, 20);
  EXPECT_EQ(w.lost(), 9U);
  take(w, 15);
  EXPECT_EQ(w.lost(), 8U);
  take(w, 20 + kPsnWindow);
  take(w, 20 + 2 * kPsnWindow);
  EXPECT_EQ(w.lost(), 8U + 2 * kPsnWindow - 2);
  // The peer sent three more, and we hear of it.
  w.peer_sent(Psn{23 + 2 * kPsnWindow});
  EXPECT_EQ(w.lost(), 8U + 2 * kPsnWindow + 1);
  EXPECT_EQ(w.highest(), Psn{20 + 2 * kPsnWindow});
  // A word that came late takes nothing back.
  w.peer_sent(Psn{10});
  EXPECT_EQ(w.lost(), 8U + 2 * kPsnWindow + 1);
}

// spec/wdp-uc 3.2.
TEST(PsnWindow, AFarJumpIsFollowedWhenItPersists) {
  PsnWindow w(Psn{0});
  take(w, 0);
  const uint32_t far = kMostPsnJump + 1;
  for (uint32_t i = 0; i + 1 < kResyncAfter; ++i) {
    EXPECT_EQ(take(w, far + i), WdpDrop::psn_jump) << i;
    EXPECT_FALSE(w.took_jump());
  }
  EXPECT_FALSE(take(w, far + 15));
  EXPECT_TRUE(w.took_jump());
  // Those of the new place that were overtaken may still come.
  EXPECT_FALSE(take(w, far + 3));
  EXPECT_FALSE(w.took_jump());
  EXPECT_EQ(take(w, far + 3), WdpDrop::duplicate);
  EXPECT_EQ(take(w, 1), WdpDrop::stale_psn);
}

TEST(PsnWindow, OneForgedDatagramMovesNothing) {
  PsnWindow w(Psn{0});
  take(w, 0);
  uint32_t psn = 1;
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(take(w, 0x7000'0000), WdpDrop::psn_jump);
    EXPECT_FALSE(take(w, psn++));
  }
  // Nor do some that do not agree with each other.
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(take(w, 0x1000'0000 + i * 2 * kPsnWindow), WdpDrop::psn_jump);
  }
  EXPECT_FALSE(take(w, psn));
}

TEST(PsnWindow, ANearJumpIsFollowedAtOnce) {
  PsnWindow w(Psn{0});
  take(w, 0);
  EXPECT_FALSE(take(w, kPsnWindow));
  EXPECT_FALSE(w.took_jump());
  EXPECT_EQ(w.lost(), uint64_t{kPsnWindow} - 1);
}

// What is further ahead than the window would make all that is good too old, for up to a million
// datagrams.
TEST(PsnWindow, OneForgedDatagramThatIsNotSoFarAheadMovesNothingEither) {
  for (const uint32_t far : {kPsnWindow + 200, uint32_t{1'000'000}}) {
    PsnWindow w(Psn{0});
    take(w, 0);
    for (uint32_t psn = 1; psn < 100; ++psn) {
      EXPECT_EQ(take(w, far + psn), WdpDrop::psn_jump);
      EXPECT_FALSE(take(w, psn));
    }
    EXPECT_EQ(w.lost(), 0U);
  }
}

// An outage: the numbers go on, and what is between is lost.
TEST(PsnWindow, AnOutageIsBelievedWhenItPersistsAndIsCounted) {
  PsnWindow w(Psn{0});
  take(w, 0);
  constexpr uint32_t kLost = 100'000;
  for (uint32_t i = 0; i + 1 < kResyncAfter; ++i) {
    EXPECT_EQ(take(w, 1 + kLost + i), WdpDrop::psn_jump);
  }
  EXPECT_FALSE(take(w, 1 + kLost + 15));
  EXPECT_TRUE(w.took_jump());
  EXPECT_EQ(w.lost(), kLost);
  EXPECT_EQ(w.highest(), Psn{1 + kLost + 15});
  EXPECT_FALSE(take(w, 1 + kLost + 16));
  EXPECT_FALSE(w.took_jump());
}

TEST(PsnWindow, ACircuitMayBeginAnewFarBehind) {
  PsnWindow session(Psn{0x20'0000});
  PsnWindow circuit(Psn{0x20'0000}, true);
  take(session, 0x20'0000);
  take(circuit, 0x20'0000);
  for (uint32_t i = 0; i + 1 < kResyncAfter; ++i) {
    EXPECT_EQ(take(session, i), WdpDrop::stale_psn);
    EXPECT_EQ(take(circuit, i), WdpDrop::stale_psn);
  }
  EXPECT_EQ(take(session, 15), WdpDrop::stale_psn);
  EXPECT_FALSE(take(circuit, 15));
  EXPECT_TRUE(circuit.took_jump());
  // Late copies are near, and never followed.
  for (uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(take(session, 0x20'0000 - kPsnWindow - i), WdpDrop::stale_psn);
  }
}

// A circuit's first datagrams may be overtaken, and lost.
TEST(PsnWindow, WhereAStaticSessionBeganIsFoundOutLate) {
  PsnWindow w({}, true);
  take(w, 500);
  EXPECT_EQ(w.lost(), 0U);
  take(w, 497);
  EXPECT_EQ(w.unique(), 2U);
  EXPECT_EQ(w.lost(), 2U);
  take(w, 498);
  take(w, 499);
  EXPECT_EQ(w.lost(), 0U);
  take(w, 510);
  EXPECT_EQ(w.lost(), 9U);
}

// As far away as can be: no number may overflow.
TEST(PsnWindow, HalfWayRoundIsFar) {
  for (const bool restarts : {false, true}) {
    PsnWindow w(Psn{0x8000'0000U}, restarts);
    take(w, 0x8000'0000U);
    for (uint32_t i = 0; i < 40; ++i) {
      EXPECT_TRUE(take(w, i % 2 * 0x8000'0000U)) << i;
      EXPECT_TRUE(take(w, 0x7fff'ffffU + i % 2)) << i;
    }
    EXPECT_EQ(w.highest(), Psn{0x8000'0000U});
  }
}

TEST(PsnWindow, SeenMeansCameOrTooOldToAsk) {
  PsnWindow w(Psn{10});
  take(w, 10);
  take(w, 12);
  EXPECT_TRUE(w.seen(Psn{10}));
  EXPECT_FALSE(w.seen(Psn{11}));
  EXPECT_TRUE(w.seen(Psn{12}));
  EXPECT_FALSE(w.seen(Psn{13}));
  take(w, 12 + kPsnWindow);
  EXPECT_TRUE(w.seen(Psn{11}));
}

}  // namespace
}  // namespace weft::wdp
