// How a thread's wait on an engine ends, other than by what it waits for: signals,
// pthread_cancel(3).

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <future>
#include <thread>

#include "engine/engine.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

class EngineWait : public ::testing::Test {
 protected:
  EngineWait() : engine(std::move(*Engine::create(0))) {}
  void publish() const {
    const uint64_t one = 1;
    EXPECT_EQ(::write(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  std::unique_ptr<Engine> engine;
  const port::Fd event{::eventfd(0, EFD_CLOEXEC)};
};

// Tells when its socket turns readable.
class Ear final : public EventHandler {
 public:
  explicit Ear(std::promise<void>& heard) : heard_(heard) {}
  void on_ready(Token& token, bool, bool) override {
    token.runtime().want_read(token, *this, false);
    heard_.set_value();
  }
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  std::promise<void>& heard_;
};

// Nobody waits any more, so that the helper has to listen again.
TEST_F(EngineWait, ACanceledThreadCountsNoMore) {
  std::atomic<int> looks{0};
  std::thread waiter([&] {
    engine->wait(event.get(), [&] {
      ++looks;
      return false;
    });
  });
  while (looks.load() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);  // most likely it sleeps by now
  ASSERT_EQ(pthread_cancel(waiter.native_handle()), 0);
  waiter.join();
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  std::promise<void> heard;
  {
    Hold h = engine->hold();
    engine->add(h.token(), std::make_unique<Ear>(heard), sockets[0], true, false);
  }
  ASSERT_EQ(::send(sockets[1], "x", 1, 0), 1);
  EXPECT_EQ(heard.get_future().wait_for(20s), std::future_status::ready);
  engine.reset();
  ::close(sockets[0]);
  ::close(sockets[1]);
}

// Answers each byte, but puts the answer off until its engine falls idle.
class Deferrer final : public EventHandler {
 public:
  explicit Deferrer(int socket) : socket_(socket) {}
  void on_ready(Token& token, bool, bool) override {
    char byte = 0;
    if (::recv(socket_, &byte, 1, MSG_DONTWAIT) != 1) return;
    ++owed_;
    token.runtime().defer(token, *this);
  }
  void on_idle(Token&) override {
    for (; owed_ > 0; --owed_) (void)::send(socket_, "y", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  const int socket_;
  int owed_ = 0;
};

// One thread sleeps on the engine, and another queue announces a sleeper of its own, so that the
// helper listens as well. Whichever of the two hears a byte, the answer goes out: a connection
// whose peer waits for it would otherwise stand still for ever.
TEST_F(EngineWait, WhatIsPutOffGoesOutWhoeverListens) {
  constexpr int kRounds = 3000;
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  timeval patience{.tv_sec = 10, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(sockets[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  {
    Hold h = engine->hold();
    engine->add(h.token(), std::make_unique<Deferrer>(sockets[0]), sockets[0], true, false);
  }
  engine->expect_sleeper();
  std::atomic<bool> stop{false};
  std::thread waiter([&] { engine->wait(event.get(), [&] { return stop.load(); }); });
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    char byte = 0;
    EXPECT_EQ(::send(sockets[1], "x", 1, 0), 1);
    EXPECT_EQ(::recv(sockets[1], &byte, 1, 0), 1) << "no answer in round " << round;
  }
  stop = true;
  publish();
  waiter.join();
  engine->forget_sleeper();
  engine.reset();
  ::close(sockets[0]);
  ::close(sockets[1]);
}

// Answers each byte at once, and publishes an event for '!'.
class Answerer final : public EventHandler {
 public:
  Answerer(int socket, const port::Fd& event, std::atomic<bool>& published)
      : socket_(socket), event_(event), published_(published) {}
  void on_ready(Token&, bool, bool) override {
    char byte = 0;
    if (::recv(socket_, &byte, 1, MSG_DONTWAIT) != 1) return;
    const uint64_t one = 1;
    if (byte == '!') {
      published_ = true;
      EXPECT_EQ(::write(event_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    }
    (void)::send(socket_, "y", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}

 private:
  const int socket_;
  const port::Fd& event_;
  std::atomic<bool>& published_;
};

// A peer that writes to memory does not wake up the thread that waits for completions each time;
// what it waits for wakes it all the same.
TEST_F(EngineWait, AThreadIsNotWokenForEverForWhatIsNotForIt) {
  constexpr int kRounds = 500;
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  timeval patience{.tv_sec = 10, .tv_usec = 0};
  ASSERT_EQ(::setsockopt(sockets[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  std::atomic<bool> published{false};
  {
    Hold h = engine->hold();
    engine->add(h.token(), std::make_unique<Answerer>(sockets[0], event, published), sockets[0],
                true, false);
  }
  int error = -1;
  std::thread waiter([&] { error = engine->wait(event.get(), [&] { return published.load(); }); });
  for (int round = 0; round <= kRounds && !HasFailure(); ++round) {
    char byte = 0;
    EXPECT_EQ(::send(sockets[1], round < kRounds ? "x" : "!", 1, 0), 1);
    EXPECT_EQ(::recv(sockets[1], &byte, 1, 0), 1) << "no answer in round " << round;
  }
  if (HasFailure()) {
    published = true;
    publish();
  }
  waiter.join();
  EXPECT_EQ(error, 0);
  EXPECT_LE(engine->counters().sleeps.value(), 16U);
  engine.reset();
  ::close(sockets[0]);
  ::close(sockets[1]);
}

// Each look of the helper takes a processor from the thread that holds the engine, which may have
// much to send before it sleeps. But what came in meanwhile is not forgotten. (The bound is far
// from both: every 50 us would be a thousand times in 50 ms.)
TEST_F(EngineWait, WhoHoldsTheEngineForLongIsNotLookedAtAllTheTime) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  std::promise<void> heard;
  {
    Hold h = engine->hold();
    engine->add(h.token(), std::make_unique<Ear>(heard), sockets[0], true, false);
  }
  engine->expect_sleeper();
  engine->progress();
  const auto wakeups = [&] { return engine->counters().helper_wakeups.value(); };
  {
    const Hold h = engine->hold();
    const auto before = static_cast<int64_t>(wakeups());
    const Time begun = Engine::clock();
    std::this_thread::sleep_for(50ms);
    EXPECT_LT(static_cast<int64_t>(wakeups()) - before, (Engine::clock() - begun) / 150us);
  }
  {
    const Hold h = engine->hold();
    const auto before = static_cast<int64_t>(wakeups());
    const Time begun = Engine::clock();
    ASSERT_EQ(::send(sockets[1], "x", 1, 0), 1);
    std::this_thread::sleep_for(50ms);
    EXPECT_LT(static_cast<int64_t>(wakeups()) - before, (Engine::clock() - begun) / 150us);
  }
  EXPECT_EQ(heard.get_future().wait_for(20s), std::future_status::ready);
  engine->forget_sleeper();
  engine.reset();
  ::close(sockets[0]);
  ::close(sockets[1]);
}

// signal(7): what read(2) of a device does, which the program believes this to be.
class EngineSignals : public EngineWait {
 protected:
  // Waits in a thread, under fire of a signal, until it ends or has had twenty; then publishes.
  int wait_under_fire(int flags) {
    static std::atomic<int> caught;
    caught = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { ++caught; };
    action.sa_flags = flags;
    struct sigaction before {};
    EXPECT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    std::atomic<bool> published{false};
    std::atomic<bool> done{false};
    int error = -1;
    std::thread waiter([&] {
      error = engine->wait(event.get(), [&] { return published.load(); });
      done.store(true);
    });
    // Paced, so that it sleeps between them.
    while (!done.load() && (flags == 0 || caught.load() < 20)) {
      pthread_kill(waiter.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(2ms);
    }
    published.store(true);
    publish();
    waiter.join();
    ::sigaction(SIGUSR1, &before, nullptr);
    return error;
  }
};

TEST_F(EngineSignals, EndAWait) {
  EXPECT_EQ(wait_under_fire(0), EINTR);
}

TEST_F(EngineSignals, ThatRestartCallsDoNot) {
  EXPECT_EQ(wait_under_fire(SA_RESTART), 0);
}

}  // namespace
}  // namespace weft::engine
