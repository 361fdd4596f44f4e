#include "wdp/send_window.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace weft::wdp {
namespace {

constexpr uint64_t kSize = 1 << 20;

struct SendWindowTest : ::testing::Test {
  // As UcSession does; how much went out.
  size_t send(size_t most) {
    size_t sent = 0;
    for (; sent < most && window->open(); sent += 8192) {
      window->sent(8192, 1);
      ask();
    }
    return sent;
  }
  void ask() {
    if (!window->wants_to_ask(me, now)) return;
    asked.push_back(now - start);
    window->asked(me, now);
  }
  void later(Duration d) {
    now = now + d;
    window->tick(now);
    ask();
  }
  // Runs to each deadline until `end`.
  void run_until(Duration end) {
    while (window->deadline(me) <= start + end) later(window->deadline(me) - now);
    now = start + end;
  }
  void answer_after(Duration d) {
    now = now + d;
    window->answered(d);
  }

  struct Session final : SendWindow::Waiter {
    int calls = 0;
    void window_opened() override { ++calls; }
  };
  Session me;
  std::optional<SendWindow> window{std::in_place, kSize, true};
  const Time start = Time::from_ns(1'000'000'000);
  Time now = start;
  std::vector<Duration> asked;
};

TEST_F(SendWindowTest, ItClosesWhenItIsFullAndAnAnswerOpensIt) {
  const size_t first = send(2 * kSize);
  EXPECT_LE(first, kSize);
  EXPECT_GT(first, kSize / 2);
  ASSERT_EQ(asked.size(), 1U);  // when half was under way
  answer_after(100us);
  EXPECT_TRUE(window->open());
  // What was sent behind the question is under way yet.
  const size_t second = send(2 * kSize);
  EXPECT_GT(second, kSize / 8);
  EXPECT_LT(second, kSize / 2);
}

TEST_F(SendWindowTest, AQuestionIsRepeatedWithGrowingPauses) {
  send(kSize);
  run_until(20ms);
  EXPECT_EQ(asked, (std::vector<Duration>{0ms, 2ms, 6ms, 14ms}));
}

TEST_F(SendWindowTest, WhoHasNeverAnsweredIsWaitedForShortly) {
  send(kSize);
  run_until(99ms);
  EXPECT_FALSE(window->open());
  run_until(100ms);
  EXPECT_TRUE(window->open());
}

TEST_F(SendWindowTest, WhoHasAnsweredIsWaitedForLonger) {
  send(kSize);
  answer_after(100us);
  send(kSize);
  const Duration since = asked.back();
  run_until(since + 999ms);
  EXPECT_FALSE(window->open());
  // Often enough to be heard soon when it runs again.
  EXPECT_GE(asked.size(), 20U);
  answer_after(100us);
  EXPECT_TRUE(window->open());
}

// ... but one question now and then, and the first answer brings it back.
TEST_F(SendWindowTest, WithoutAnswersThereIsNoWindow) {
  for (int i = 0; i < 4; ++i) {
    send(kSize);
    EXPECT_FALSE(window->open());
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
  window.emplace(kSize, false);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(send(2 * kSize), 2 * kSize);
    answer_after(kCloseBy);
  }
  EXPECT_EQ(asked.size(), 10U);
}

// The handshake found this program, or the peer, without a processor.
TEST_F(SendWindowTest, WhatLookedFarAwayMayBeCloseBy) {
  window.emplace(kSize, false);
  EXPECT_EQ(send(2 * kSize), 2 * kSize);
  answer_after(kCloseBy / 2);
  EXPECT_LE(send(4 * kSize), kSize);
}

// Whoever asked first, and whoever asked again: any answer is one to the same question, until there
// is one; then it is none any more.
TEST_F(SendWindowTest, AQuestionHasANumber) {
  window->sent(kSize, 1);
  const uint32_t first = window->asked(me, now);
  EXPECT_TRUE(window->is_open_question(first));
  now = now + 2ms;
  EXPECT_EQ(window->asked(me, now), first);
  window->answered(2ms);
  EXPECT_FALSE(window->is_open_question(first));
  window->sent(kSize, 1);
  const uint32_t second = window->asked(me, now);
  EXPECT_NE(second, first);
  EXPECT_FALSE(window->is_open_question(first));
  EXPECT_TRUE(window->is_open_question(second));
}

TEST_F(SendWindowTest, WhoWaitsIsCalledOnceWhenItOpens) {
  Session one, two;
  {
    struct Short final : SendWindow::Waiter {
      void window_opened() override { ADD_FAILURE() << "it is gone"; }
    } s;
    window->wait(s);
  }
  send(kSize);
  EXPECT_FALSE(window->open());
  for (Session* w : {&one, &two, &one}) window->wait(*w);
  EXPECT_EQ(one.calls + two.calls, 0);
  answer_after(100us);
  EXPECT_EQ(one.calls, 1);
  EXPECT_EQ(two.calls, 1);
  // Given up is opened, too.
  send(kSize);
  window->wait(two);
  run_until(now - start + 1s);
  EXPECT_EQ(one.calls, 1);
  EXPECT_EQ(two.calls, 2);
}

// What was sent behind the question may fill it by itself: then the answer opens nothing.
TEST_F(SendWindowTest, WhoWaitsIsNotCalledWhileItStaysClosed) {
  Session w;
  window->sent(kSize / 2, 1);
  ask();
  window->sent(kSize, 1);
  window->wait(w);
  answer_after(100us);
  EXPECT_FALSE(window->open());
  EXPECT_EQ(w.calls, 0);
  ask();
  answer_after(100us);
  EXPECT_EQ(w.calls, 1);
}

// The other end of the one that asked may be gone.
TEST_F(SendWindowTest, WhoeverElseWaitsRepeatsTheQuestion) {
  Session other;
  window->sent(kSize, 1);
  window->asked(me, now);
  window->wait(me);
  now = now + 2ms;
  EXPECT_TRUE(window->wants_to_ask(me, now)) << "nobody else waits";
  window->wait(other);
  EXPECT_FALSE(window->wants_to_ask(me, now));
  EXPECT_TRUE(window->wants_to_ask(other, now));
  EXPECT_LE(window->deadline(other), now);
  EXPECT_GT(window->deadline(me), now) << "it would be called again and again";
  window->asked(other, now);
  now = now + 4ms;
  EXPECT_TRUE(window->wants_to_ask(me, now));
  EXPECT_FALSE(window->wants_to_ask(other, now));
}

TEST_F(SendWindowTest, NoneIsNone) {
  window.emplace(0, true);
  EXPECT_EQ(send(64 * kSize), 64 * kSize);
  EXPECT_TRUE(asked.empty());
  EXPECT_TRUE(window->deadline(me).is_never());
}

}  // namespace
}  // namespace weft::wdp
