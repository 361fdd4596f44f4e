// Who has a connection that a thread waited for: the thread, or the loop that gave it up.
#include "sdp/sockets/awaited.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

namespace weft::sdp {
namespace {

void nothing(int /*signal*/) {}

TEST(Awaited, WhatWasTakenIsNotGivenUp) {
  const HoldHandlers hold;
  Awaited awaited;
  EXPECT_TRUE(awaited.put(nullptr, ECONNREFUSED));
  EXPECT_EQ(awaited.take({}).second, ECONNREFUSED);
  EXPECT_FALSE(awaited.give_up());
}

TEST(Awaited, WhatWasGivenUpIsNotTaken) {
  const HoldHandlers hold;
  Awaited awaited;
  EXPECT_TRUE(awaited.put(nullptr, 0));
  EXPECT_TRUE(awaited.give_up());
  EXPECT_FALSE(awaited.give_up());
  EXPECT_EQ(awaited.take({}).second, ETIMEDOUT);
}

TEST(Awaited, WhatWasTakenIsNotClosedByWhoPutIt) {
  const HoldHandlers hold;
  for (int i = 0; i < 100; ++i) {
    Awaited awaited;
    bool waits = false;
    std::thread loop{[&] { waits = awaited.put(nullptr, 0); }};
    EXPECT_EQ(awaited.take({}).second, 0);
    loop.join();
    EXPECT_TRUE(waits);
  }
}

TEST(Awaited, ALimitEndsTheWait) {
  const HoldHandlers hold;
  Awaited awaited;
  EXPECT_EQ(awaited.take({.limit = std::chrono::microseconds{1}}).second, EINPROGRESS);
  EXPECT_FALSE(awaited.put(nullptr, 0));
}

// `flags` of the handler of a signal that comes again and again until the wait ends, or `enough`
// of them have come.
int error_behind_signals(int flags, std::optional<std::chrono::microseconds> limit) {
  struct sigaction action {};
  action.sa_handler = nothing;
  action.sa_flags = flags;
  (void)Handlers::set_action(SIGUSR1, &action, nullptr);
  Awaited awaited;
  std::atomic<bool> back{false};
  int error = 0;
  std::thread waiting{[&] {
    const HoldHandlers hold;
    const Handlers::Ran ran;
    error = awaited.take({&ran, limit}).second;
    back = true;
  }};
  for (int i = 0; i < 200 && !back; ++i) {
    (void)::pthread_kill(waiting.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  (void)awaited.put(nullptr, 0);
  waiting.join();
  (void)Handlers::set(SIGUSR1, SIG_DFL);
  return error;
}

TEST(Awaited, AHandlerEndsTheWaitWhereItEndsCalls) {
  EXPECT_EQ(error_behind_signals(0, std::nullopt), EINTR);
  EXPECT_EQ(error_behind_signals(SA_RESTART, std::nullopt), 0);
  EXPECT_EQ(error_behind_signals(SA_RESTART, std::chrono::seconds{100}), EINTR);
}

}  // namespace
}  // namespace weft::sdp
