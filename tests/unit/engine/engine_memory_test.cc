// Handlers whose input is in memory, while no thread of the program polls.
#include <atomic>

#include "engine_fixture.h"

namespace weft::engine {
namespace {

// Has something each time that it is asked, so many times.
class InMemory final : public EventHandler {
 public:
  static constexpr int kTimes = 100;
  struct Seen {
    std::atomic<int> asked{0};
    std::atomic<int> silent_from{-1};  // how often it was asked before its descriptor was silent
    std::atomic<int> told_from{-1};    // and before that was over
  };
  InMemory(Seen& seen, int fd) : seen_(seen), fd_(fd) {}
  void on_ready(Token&, bool, bool) override {
    char byte;
    while (::recv(fd_, &byte, 1, MSG_DONTWAIT) == 1) {
    }
  }
  bool try_receive(Token&) override {
    const int before = seen_.asked.fetch_add(1);
    seen_.asked.notify_all();
    return before < kTimes;
  }
  bool tries_receive() const override { return false; }
  void use_descriptor(Token&, bool on) override {
    int none = -1;
    (on ? seen_.told_from : seen_.silent_from).compare_exchange_strong(none, seen_.asked.load());
    if (on) seen_.told_from.notify_all();
  }
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  Seen& seen_;
  const int fd_;
};

class EngineMemoryTest : public EngineTest {
 protected:
  void add(InMemory::Seen& seen) {
    Hold h = engine->hold();
    auto made = std::make_unique<InMemory>(seen, sockets[0]);
    InMemory& handler = *made;
    engine->add(h.token(), std::move(made), sockets[0], true, false);
    engine->ask_memory(h.token(), handler);
  }
};

TEST_F(EngineMemoryTest, TheHelperAsksMemoryUntilItSleeps) {
  InMemory::Seen seen;
  add(seen);
  write_byte();
  seen.told_from.wait(-1);
  engine.reset();
  EXPECT_EQ(seen.silent_from, 0) << "while it looks nobody needs to wake it";
  EXPECT_GT(seen.told_from, InMemory::kTimes) << "as long as there is something";
}

TEST_F(EngineMemoryTest, WhereSomebodySleepsMemoryIsTold) {
  InMemory::Seen seen;
  engine->expect_sleeper();
  add(seen);
  write_byte();
  seen.asked.wait(0);
  (void)engine->hold();  // the helper's turn is over
  EXPECT_EQ(seen.silent_from, -1);
  engine->forget_sleeper();
  engine.reset();
}

// As UCX does, which leaves a queue armed for good: its messages would be a system call each.
TEST_F(EngineMemoryTest, WhoPollsOnBesideAnArmedQueueOnlyAsks) {
  InMemory::Seen seen;
  engine->expect_sleeper();
  add(seen);
  for (int i = 0; i < 200; ++i) engine->progress();
  EXPECT_EQ(seen.silent_from, -1) << "it may be about to sleep";
  while (seen.silent_from == -1) engine->progress();
  EXPECT_EQ(seen.told_from, -1);
  engine->expect_sleeper();
  EXPECT_NE(seen.told_from, -1) << "another one may sleep at once";
  engine->forget_sleeper();
  engine->forget_sleeper();
  engine.reset();
}

TEST_F(EngineMemoryTest, WhereItStopsPollingTheHelperHearsForWhoSleeps) {
  InMemory::Seen seen;
  engine->expect_sleeper();
  add(seen);
  while (seen.silent_from == -1) engine->progress();
  seen.told_from.wait(-1);
  engine->forget_sleeper();
  engine.reset();
}

}  // namespace
}  // namespace weft::engine
