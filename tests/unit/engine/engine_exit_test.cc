// What an engine still does when the process exits.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "engine/engine.h"
#include "engine/exit_hold.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

// Has something to say at a time, after which the process may end.
class Parting final : public EventHandler {
 public:
  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token&) override { said = true; }
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}
  std::atomic<bool> said{false};
};

class EngineExit : public ::testing::Test {
 protected:
  EngineExit() : engine(std::move(*Engine::create(0))) {}
  ~EngineExit() override {
    Hold h = engine->hold();
    for (Parting& p : all) engine->forget(h.token(), p);
  }
  std::unique_ptr<Engine> engine;
  std::array<Parting, 5> all;
};

// Also by a process whose helper does not come to it: a child of fork(2) has none at all.
TEST_F(EngineExit, WhatIsDueBeforeTheEndIsDone) {
  pid_t child = -1;
  {
    Hold h = engine->hold();
    Time when = h.token().now();
    for (Parting& p : all) {
      when = when + 10ms;
      engine->set_deadline(h.token(), p, when);
      engine->closes_at(h.token(), when);
    }
    child = fork();
  }
  ASSERT_GE(child, 0);
  if (child == 0) {
    engine->flush_at_exit();
    _exit(std::all_of(all.begin(), all.end(), [](const Parting& p) { return p.said.load(); }) ? 0
                                                                                              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  engine->flush_at_exit();
  for (const Parting& p : all) EXPECT_TRUE(p.said);
}

// The handler of a signal may call exit(3) in the middle of a turn.
TEST_F(EngineExit, AHolderThatNeverLetsGoIsNotWaitedFor) {
  Hold h = engine->hold();
  const Time now = h.token().now();
  engine->set_deadline(h.token(), all[0], now);
  engine->closes_at(h.token(), now + 60s);
  engine->flush_at_exit();
  EXPECT_FALSE(all[0].said);
  EXPECT_FALSE(hold_at_exit(*engine));
}

}  // namespace
}  // namespace weft::engine
