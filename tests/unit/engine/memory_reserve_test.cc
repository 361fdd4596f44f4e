// A handler that finds no memory in the middle of something is told so and can end; the engine, its
// other handlers and the process go on.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

#include "engine/engine.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

enum class Call : uint8_t { ready, deadline, doorbell, gathered, idle };

class Poor final : public EventHandler {
 public:
  explicit Poor(int event) : fd(event) {}
  void on_ready(Token&, bool, bool) override {
    uint64_t n = 0;
    EXPECT_EQ(::read(fd, &n, sizeof n), static_cast<ssize_t>(sizeof n));
    spend(Call::ready);
  }
  void on_deadline(Token&) override { spend(Call::deadline); }
  void on_doorbell(Token&) override { spend(Call::doorbell); }
  void on_gathered(Token&) override { spend(Call::gathered); }
  void on_idle(Token&) override { spend(Call::idle); }
  void on_no_memory(Token& token) override {
    ++told;
    if (poor_to_the_end) throw std::bad_alloc{};
    if (leaves) token.runtime().remove(token, *this);
  }
  void abandon_in_child() override {}

  const int fd;
  std::atomic<Call> poor_in{Call::ready};
  std::atomic<bool> poor{false};
  std::atomic<bool> poor_to_the_end{false};
  std::atomic<bool> leaves{false};
  std::atomic<int> told{0};
  std::atomic<int> done{0};

 private:
  void spend(Call call) {
    if (poor && poor_in == call) throw std::bad_alloc{};
    ++done;
  }
};

class NoMemory : public ::testing::Test {
 protected:
  NoMemory() {
    auto made = Engine::create(0);
    EXPECT_TRUE(made.ok());
    engine = std::move(*made);
    fd = ::eventfd(0, EFD_CLOEXEC);
    auto owned = std::make_unique<Poor>(fd);
    handler = owned.get();
    Hold h = engine->hold();
    engine->add(h.token(), std::move(owned), fd, true, false);
  }
  ~NoMemory() override {
    engine.reset();
    ::close(fd);
  }
  void ring() const {
    const uint64_t one = 1;
    EXPECT_EQ(::write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  // The program polls, or the helper is quicker.
  void until(const std::function<bool()>& true_now) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!true_now()) {
      engine->progress(Engine::Ask::all);
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
  }
  void cause(Call call) {
    switch (call) {
      case Call::ready:
        ring();
        return;
      case Call::doorbell:
        engine->ring(*handler);
        return;
      case Call::deadline: {
        Hold h = engine->hold();
        engine->set_deadline(h.token(), *handler, h.token().now());
        return;
      }
      case Call::gathered:
        // Only while the program polls.
        for (bool gathers = false; !gathers;) {
          engine->progress();
          Hold h = engine->hold();
          gathers = engine->gather(h.token(), *handler);
        }
        return;
      case Call::idle: {
        Hold h = engine->hold();
        engine->defer(h.token(), *handler);
        return;
      }
    }
  }

  std::unique_ptr<Engine> engine;
  int fd = -1;
  Poor* handler = nullptr;
};

TEST_F(NoMemory, IsToldToTheSourceWhateverItWasDoing) {
  for (const Call call :
       {Call::ready, Call::deadline, Call::doorbell, Call::gathered, Call::idle}) {
    SCOPED_TRACE(static_cast<int>(call));
    const int before = handler->told;
    handler->poor_in = call;
    handler->poor = true;
    cause(call);
    until([&] { return handler->told > before; });
    handler->poor = false;
    const int done = handler->done;
    cause(call);
    until([&] { return handler->done > done; });
  }
  EXPECT_GE(engine->counters().out_of_memory.value(), 5U);
}

TEST_F(NoMemory, LetsTheSourceLeave) {
  handler->poor = true;
  handler->leaves = true;
  ring();
  until([&] { return engine->counters().out_of_memory.value() == 1; });
  // Its descriptor is not watched any more, and nothing of it is touched (AddressSanitizer).
  ring();
  for (int i = 0; i < 1000; ++i) engine->progress(Engine::Ask::all);
  EXPECT_EQ(engine->counters().out_of_memory.value(), 1U);
}

TEST_F(NoMemory, NotEvenForTheEndLeavesTheProcessAlive) {
  handler->poor = true;
  handler->poor_to_the_end = true;
  for (int i = 1; i <= 20; ++i) {
    ring();
    until([&] { return handler->told >= i; });
  }
  handler->poor = handler->poor_to_the_end = false;
  ring();
  until([&] { return handler->done > 0; });
}

}  // namespace
}  // namespace weft::engine
