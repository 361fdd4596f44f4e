#include "port/signals.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace weft::port {
namespace {

// Installs a handler for one signal and puts back what was there.
class Handler {
 public:
  Handler(int signal, void (*handler)(int), int flags) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    EXPECT_EQ(::sigaction(signal, &action, &before_), 0);
  }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  ~Handler() { ::sigaction(signal_, &before_, nullptr); }

 private:
  const int signal_;
  struct sigaction before_ {};
};

void nothing(int) {}

// signal(7): a read(2) of a device goes on after handlers with SA_RESTART.
TEST(Signals, OneHandlerThatEndsCallsIsEnough) {
  EXPECT_TRUE(signals_restart_calls()) << "none is caught";
  const Handler restarts{SIGUSR1, nothing, SA_RESTART};
  EXPECT_TRUE(signals_restart_calls());
  {
    const Handler ends{SIGRTMAX, nothing, 0};
    EXPECT_FALSE(signals_restart_calls());
  }
  EXPECT_TRUE(signals_restart_calls());
}

// Its callers pass on what a wait ended with.
TEST(Signals, ErrnoStays) {
  const Handler ends{SIGRTMAX, nothing, 0};
  errno = EINTR;
  EXPECT_FALSE(signals_restart_calls());
  EXPECT_EQ(errno, EINTR);
}

TEST(Signals, IgnoredOnesDoNotCount) {
  const Handler ignored{SIGUSR2, SIG_IGN, 0};
  EXPECT_TRUE(signals_restart_calls());
}

TEST(Signals, HandlersForFaultsDoNotCount) {
  const Handler reporter{SIGSEGV, nothing, 0};
  EXPECT_TRUE(signals_restart_calls());
}

TEST(Signals, OnesThatThisThreadBlocksDoNotCount) {
  const Handler ends{SIGUSR2, nothing, 0};
  sigset_t set;
  sigset_t before;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
  EXPECT_TRUE(signals_restart_calls());
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_FALSE(signals_restart_calls());
}

}  // namespace
}  // namespace weft::port
