#include "wdp/send_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::wdp {
namespace {

constexpr uint64_t kSize = 1 << 20;

struct SendWindowTest : ::testing::Test {
  // As UcSession does; how much went out.
  size_t send(size_t most) {
    size_t sent = 0;
    for (; sent < most && window.open(); sent += 8192) {
      window.sent(8192, 1);
      ask();
    }
    return sent;
  }
  void ask() {
    if (!window.wants_to_ask(now)) return;
    asked.push_back(now - start);
    window.asked(now);
  }
  void later(Duration d) {
    now = now + d;
    window.tick(now);
    ask();
  }
  // Runs to each deadline until `end`.
  void run_until(Duration end) {
    while (window.deadline() <= start + end) later(window.deadline() - now);
    now = start + end;
  }
  void answer_after(Duration d) {
    now = now + d;
    window.answered(now);
  }

  SendWindow window{kSize, true};
  const Time start = Time::from_ns(1'000'000'000);
  Time now = start;
  std::vector<Duration> asked;
};

TEST_F(SendWindowTest, ItClosesWhenItIsFullAndAnAnswerOpensIt) {
  const size_t first = send(2 * kSize);
  EXPECT_LE(first, kSize);
  EXPECT_GT(first, kSize / 2);
  ASSERT_EQ(asked.size(), 1U);  // when a quarter was under way
  answer_after(100us);
  EXPECT_TRUE(window.open());
  // What was sent behind the question is under way yet.
  const size_t second = send(2 * kSize);
  EXPECT_GT(second, kSize / 8);
  EXPECT_LT(second, kSize / 2);
}

TEST_F(SendWindowTest, AQuestionIsRepeatedWithGrowingPauses) {
  send(kSize);
  run_until(20ms);
  EXPECT_EQ(asked, (std::vector<Duration>{0us, 200us, 600us, 1400us, 3ms, 6200us, 12'600us}));
}

TEST_F(SendWindowTest, WhoHasNeverAnsweredIsWaitedForShortly) {
  send(kSize);
  run_until(99ms);
  EXPECT_FALSE(window.open());
  run_until(100ms);
  EXPECT_TRUE(window.open());
}

TEST_F(SendWindowTest, WhoHasAnsweredIsWaitedForLonger) {
  send(kSize);
  answer_after(100us);
  send(kSize);
  const Duration since = asked.back();
  run_until(since + 999ms);
  EXPECT_FALSE(window.open());
  // Often enough to be heard soon when it runs again.
  EXPECT_GE(asked.size(), 20U);
  answer_after(100us);
  EXPECT_TRUE(window.open());
}

// ... but one question now and then, and the first answer brings it back.
TEST_F(SendWindowTest, WithoutAnswersThereIsNoWindow) {
  for (int i = 0; i < 4; ++i) {
    send(kSize);
    EXPECT_FALSE(window.open());
    run_until(now - start + 100ms);
  }
  run_until(now - start + 200ms);
  asked.clear();
  EXPECT_EQ(send(4 * kSize), 4 * kSize);
  run_until(now - start + 99ms);
  EXPECT_EQ(asked.size(), 1U);
  run_until(now - start + 1ms);
  EXPECT_EQ(asked.size(), 2U);
  answer_after(100us);
  EXPECT_LE(send(4 * kSize), kSize);
}

TEST_F(SendWindowTest, FarAwayThereIsNoWindow) {
  window = SendWindow{kSize, false};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(send(2 * kSize), 2 * kSize);
    answer_after(kCloseBy);
  }
  EXPECT_EQ(asked.size(), 10U);
}

// The handshake found this program, or the peer, without a processor.
TEST_F(SendWindowTest, WhatLookedFarAwayMayBeCloseBy) {
  window = SendWindow{kSize, false};
  EXPECT_EQ(send(2 * kSize), 2 * kSize);
  answer_after(kCloseBy / 2);
  EXPECT_LE(send(4 * kSize), kSize);
}

TEST_F(SendWindowTest, NoneIsNone) {
  window = SendWindow{0, true};
  EXPECT_EQ(send(64 * kSize), 64 * kSize);
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(window.deadline().is_never());
}

}  // namespace
}  // namespace weft::wdp
