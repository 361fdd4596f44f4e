// Whoever waits for the engine waits for the end of a turn, so a turn ends soon.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/scheduling.h"
#include "tests/unit/engine/engine_fixture.h"

namespace weft::engine {
namespace {

class TurnLength : public EngineTest {};

// Counts by turns: each has a time of its own.
class Sleeper final : public EventHandler {
 public:
  using Count = std::map<int64_t, size_t>;
  explicit Sleeper(Count& count) : count_(count) {}
  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token& token) override { ++count_[token.now().ns()]; }
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  Count& count_;
};

TEST_F(TurnLength, ManyDeadlinesAtOnceAreSeveralTurns) {
  constexpr size_t kMany = 500;
  Sleeper::Count count;  // the holder's
  {
    Hold h = engine->hold();
    for (size_t i = 0; i < kMany; ++i) {
      auto s = std::make_unique<Sleeper>(count);
      EventHandler& handler = *s;
      engine->add(h.token(), std::move(s), -1, false, false);
      engine->set_deadline(h.token(), handler, h.token().now());
    }
  }
  const auto done = [&] {
    const Hold h = engine->hold();
    size_t sum = 0;
    for (const auto& [turn, n] : count) sum += n;
    return sum == kMany;
  };
  EXPECT_TRUE(test::comes_true(done));
  engine.reset();
  for (const auto& [turn, n] : count) EXPECT_LE(n, 64U);
}

// Waits for an answer, and not for ever.
class Asker final : public EventHandler {
 public:
  Asker(int fd, std::vector<std::string>& calls) : fd_(fd), calls_(calls) {}
  void on_ready(Token& token, bool, bool) override {
    char byte = 0;
    if (::read(fd_, &byte, 1) != 1) return;
    calls_.emplace_back("answer");
    token.runtime().set_deadline(token, *this, Time::never());
  }
  void on_deadline(Token&) override { calls_.emplace_back("deadline"); }
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  int fd_;
  std::vector<std::string>& calls_;
};

// As it is where this process had no processor for long.
TEST_F(TurnLength, AnAnswerThatHasComeIsInTime) {
  int answers[2];
  ASSERT_EQ(::pipe2(answers, O_NONBLOCK | O_CLOEXEC), 0);
  std::vector<std::string> calls;  // the holder's
  {
    Hold h = engine->hold();
    auto asker = std::make_unique<Asker>(answers[0], calls);
    EventHandler& handler = *asker;
    engine->add(h.token(), std::move(asker), answers[0], true, false);
    engine->set_deadline(h.token(), handler, h.token().now());
    ASSERT_EQ(::write(answers[1], "x", 1), 1);
  }
  EXPECT_TRUE(test::comes_true([&] {
    engine->progress();
    const Hold h = engine->hold();
    return !calls.empty();
  }));
  engine.reset();
  EXPECT_EQ(calls, std::vector<std::string>{"answer"});
  for (const int fd : answers) ::close(fd);
}

// Has always more, and tells how often it was asked.
class Fountain final : public EventHandler {
 public:
  explicit Fountain(std::function<void(int)> asked) : asked_(std::move(asked)) {}
  void on_ready(Token&, bool, bool) override { asked_(++times_); }
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  std::function<void(int)> asked_;
  int times_ = 0;
};

TEST_F(TurnLength, TheHelperLetsWaitersInBetweenItsTurns) {
  std::atomic<pid_t> waiter{0};
  std::atomic<bool> starts{false};
  std::atomic<bool> has_it{false};
  std::atomic<int> asked_before{0};
  int asked = 0;
  // In the middle of the helper's first turn somebody begins to wait.
  auto fountain = std::make_unique<Fountain>([&](int times) {
    asked = times;
    if (times > 1) return;
    starts = true;
    EXPECT_TRUE(test::comes_true([&] { return waiter != 0 && test::sleeps(waiter); }));
  });
  std::thread thread([&] {
    while (!starts) std::this_thread::sleep_for(1ms);
    waiter = test::this_thread_id();
    const Hold h = engine->hold();
    asked_before = asked;
    has_it = true;
  });
  {
    Hold h = engine->hold();
    engine->add(h.token(), std::move(fountain), sockets[0], true, false);
  }
  write_byte();
  thread.join();
  EXPECT_TRUE(has_it);
  EXPECT_EQ(asked_before, 1);
  engine.reset();  // it asks on until then
}

}  // namespace
}  // namespace weft::engine
