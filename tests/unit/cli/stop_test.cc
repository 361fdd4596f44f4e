// Each test runs a command of its own: a child process, which a signal asks to stop.
#include "cli/stop.h"
#include "tests/support/sanitizer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>

#ifdef WEFT_TSAN
// A second's sleep of ThreadSanitizer in each _exit() would be taken for a command that goes on.
// NOLINTNEXTLINE(bugprone-reserved-identifier): its own
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "atexit_sleep_ms=0";
}
#endif

namespace weft::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kByItself = 7;  // status of a command that the test lets end

struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe");
  }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void say(const std::string& words) const { (void)!::write(ends[1], words.data(), words.size()); }
  // Blocks while nobody says anything.
  bool hear() const {
    char c = 0;
    return ::read(ends[0], &c, 1) == 1;
  }
  std::array<int, 2> ends{};
};

// The wait status of a child that runs `command`.
int status_of(const std::function<void()>& command) {
  const pid_t child = ::fork();
  if (child == 0) {
    catch_stop_signals();
    command();
    ::_exit(kByItself);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool ended_by_itself(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kByItself;
}

TEST(Stop, TheFirstSignalOnlyAsks) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_TRUE(ended_by_itself(status_of([number] {
      if (stop_asked() || stop_signal() != 0) ::_exit(1);
      std::raise(number);
      if (!stop_asked() || stop_signal() != number) ::_exit(2);
      pollfd p{.fd = stop_descriptor(), .events = POLLIN, .revents = 0};
      if (::poll(&p, 1, -1) != 1) ::_exit(3);
    })));
  }
}

TEST(Stop, AWaitThatBeginsAfterTheSignalIsInterrupted) {
  EXPECT_TRUE(ended_by_itself(status_of([] {
    const Pipe silent;
    std::raise(SIGTERM);
    // No look at stop_asked() between the two.
    if (silent.hear()) ::_exit(1);
    if (!stop_asked()) ::_exit(2);
  })));
}

TEST(Stop, ACommandThatGoesOnIsCutOffByTheSignal) {
  for (const int number : {SIGINT, SIGTERM}) {
    const int status = status_of([number] {
      const Pipe silent;
      std::raise(number);
      while (stop_asked()) (void)silent.hear();
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
  }
}

// The second one ends it, not the first one after its time. On a busy machine the time may be over
// before the second signal comes: then it is tried again.
TEST(Stop, ASecondSignalEndsItAtOnce) {
  int status = 0;
  for (int i = 0; i < 20 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT); ++i) {
    status = status_of([] {
      std::raise(SIGTERM);
      (void)stop_asked();
      // What comes sooner is taken for the same request.
      for (const auto end = std::chrono::steady_clock::now() + 250ms;
           std::chrono::steady_clock::now() < end;) {
      }
      std::raise(SIGINT);
      for (;;) ::pause();
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(Stop, TimeInWhichItDoesNotRunDoesNotCount) {
  const pid_t child = ::fork();
  if (child == 0) {
    catch_stop_signals();
    std::raise(SIGTERM);
    if (!stop_asked()) ::_exit(1);
    std::raise(SIGSTOP);
    if (wait_until(INT64_MAX) < std::chrono::steady_clock::now().time_since_epoch() / 1ns) {
      ::_exit(2);
    }
    // The watch looks meanwhile.
    for (int i = 0; i < 20; ++i) ::poll(nullptr, 0, 10);
    ::_exit(kByItself);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  ::poll(nullptr, 0, 2 * static_cast<int>(kStopLimit / 1ms));
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(ended_by_itself(status)) << status;
}

TEST(Stop, ACommandThatIsCutOffSaysItsLastWords) {
  const Pipe heard;
  (void)status_of([&heard] {
    set_last_words([] { ::_exit(1); });
    set_last_words([&heard] { heard.say("w"); });
    std::raise(SIGTERM);
    for (;;) ::pause();
  });
  EXPECT_TRUE(heard.hear());
}

TEST(Stop, LastWordsThatNobodyTakesKeepNothingAlive) {
  const int status = status_of([] {
    const Pipe silent;
    set_last_words([&silent] { (void)silent.hear(); });
    std::raise(SIGTERM);
    for (;;) ::pause();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(Stop, WaitsAreShortAfterASignalAlone) {
  EXPECT_TRUE(ended_by_itself(status_of([] {
    if (wait_until(INT64_MAX) != INT64_MAX) ::_exit(1);
    std::raise(SIGINT);
    if (wait_until(INT64_MAX) == INT64_MAX) ::_exit(2);
    if (wait_until(5) != 5) ::_exit(3);
  })));
}

TEST(Stop, AChildThatHasNotExecutedItsProgramEndsAtOnce) {
#ifdef WEFT_TSAN
  GTEST_SKIP() << "ThreadSanitizer delivers no signals to a child of several threads";
#endif
  EXPECT_TRUE(ended_by_itself(status_of([] {
    const pid_t child = ::fork();
    if (child == 0) {
      std::raise(SIGINT);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) ::_exit(1);
    if (stop_asked()) ::_exit(2);
  })));
}

TEST(Stop, HangingUpIsIgnoredWhereItWasIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  EXPECT_TRUE(ended_by_itself(status_of([] {
    std::raise(SIGHUP);
    if (stop_asked()) ::_exit(1);
  })));
  std::signal(SIGHUP, before);
}

}  // namespace
}  // namespace weft::cli
