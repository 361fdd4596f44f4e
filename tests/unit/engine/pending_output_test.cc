// What waits a moment for company.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/engine/engine_fixture.h"

namespace weft::engine {
namespace {

TEST_F(EngineTest, WhatWasPutOffIsSaidSoonOrBeforeASleep) {
  Listener& s = add(false);
  {
    Hold h = engine->hold();
    engine->defer(h.token(), s);
    engine->defer(h.token(), s);
  }
  // A program that polls pays 50 us for it at most; one that does not leaves it to the helper.
  for (const Time end = Engine::clock() + 20s; diary.now().idle == 0 && Engine::clock() < end;) {
    engine->progress();
  }
  EXPECT_EQ(diary.now().idle, 1);
}

// Small requests wait for company only where the program comes back to send them.
TEST_F(EngineTest, GatheringNeedsAProgramThatPolls) {
  Listener& s = add(false);
  {
    Hold h = engine->hold();
    EXPECT_FALSE(engine->gather(h.token(), s)) << "it has not polled yet";
  }
  const auto gather_after_a_poll = [&] {
    engine->progress();
    Hold h = engine->hold();
    return engine->gather(h.token(), s);
  };
  while (!gather_after_a_poll()) {
  }
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.gathered > 0; }))
      << "the helper sees to it otherwise";
  engine->expect_sleeper();
  engine->may_sleep();
  EXPECT_FALSE(gather_after_a_poll());
  engine->forget_sleeper();
}

// UCX leaves a completion queue armed for good, and polls.
TEST_F(EngineTest, WhoPollsOnIsNotAboutToSleep) {
  Listener& s = add(false);
  const auto gather_after_a_poll = [&] {
    engine->progress();
    Hold h = engine->hold();
    return engine->gather(h.token(), s);
  };
  engine->expect_sleeper();
  engine->may_sleep();
  EXPECT_FALSE(gather_after_a_poll());
  while (!gather_after_a_poll()) {
  }
  engine->may_sleep();
  EXPECT_FALSE(gather_after_a_poll()) << "it says so again";
  std::thread([&] { engine->may_sleep(); }).join();
  while (!gather_after_a_poll()) {
  }
  engine->forget_sleeper();
}

// The thread that polls may be the one that sleeps.
TEST_F(EngineTest, WhoPostsBesideAnArmedQueueHasToPollItself) {
  Listener& s = add(false);
  engine->expect_sleeper();
  std::atomic<uint64_t> polls{0};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (; !stop.load(); ++polls) engine->progress();
  });
  while (polls.load() == 0) {
  }
  int gathered = 0;
  for (int i = 0; i < 20'000; ++i) {
    Hold h = engine->hold();
    if (engine->gather(h.token(), s)) ++gathered;
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(gathered, 0);
  engine->forget_sleeper();
}

// The second request of a burst waits for more, and so does the one behind those that went out
// because they had waited long enough.
TEST_F(EngineTest, ALongBurstGathersAgainAndAgain) {
  Listener& s = add(false);
  const auto gather = [&] {
    Hold h = engine->hold();
    return engine->gather(h.token(), s);
  };
  const auto burst = [&] {
    engine->progress();
    if (!gather()) return false;
    const Time begun = Engine::clock();
    while (Engine::clock() - begun < 60us) {
    }
    // Unless the helper was quicker.
    return !gather() && gather();
  };
  bool seen = false;
  for (int i = 0; i < 10'000 && !seen; ++i) seen = burst();
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace weft::engine
