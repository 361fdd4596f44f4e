#include "cli/stop.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace weft::cli {
namespace {

constexpr std::array kStopping = {SIGINT, SIGTERM, SIGHUP};
// Its handler does nothing: the signal only interrupts a system call. Ignored by default.
constexpr int kNudge = SIGURG;
constexpr int kNudgeMs = 5;
constexpr int64_t kTurnNs = 20'000'000;  // what a turn of the watch counts at most
// timeout(1) signals its command and then the group of the command. A wrapper passes on a signal
// that the terminal has sent to its command, too. Each of these pairs is one request.
constexpr int64_t kSameRequestNs = 200'000'000;
constexpr int64_t kLimitNs = std::chrono::nanoseconds{kStopLimit}.count();
constexpr int64_t kAccountNs = 300'000'000;  // of the limit, for what follows the last wait
constexpr int kLastWordsMs = 100;

std::atomic<int> asked_by{0};      // the first signal
std::atomic<int64_t> asked_ns{0};  // set after it; 0: no signal yet
std::atomic<int64_t> turn_ns{0};   // when the watch last looked
std::atomic<int64_t> lost_ns{0};   // since the signal, in which this process did not run
std::atomic<bool> main_knows{false};
int wake_watch = -1;
pthread_t main_thread{};
pid_t owner = 0;

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// Ends this process. Any thread, and a signal handler.
void die_by(int number) {
  std::signal(number, SIG_DFL);
  sigset_t it;
  sigemptyset(&it);
  sigaddset(&it, number);
  std::raise(number);
  pthread_sigmask(SIG_UNBLOCK, &it, nullptr);
}

void on_stop(int number) {
  const int error = errno;
  const int64_t now = now_ns();
  // A child that has not executed its program yet has nobody who looks at stop_asked().
  if (::getpid() != owner) die_by(number);
  int none = 0;
  if (asked_by.compare_exchange_strong(none, number)) {
    turn_ns = now;
    asked_ns = now;
    const uint64_t one = 1;
    (void)!::write(wake_watch, &one, sizeof one);
  } else if (asked_ns != 0 && now - asked_ns > kSameRequestNs) {
    die_by(number);
  }
  errno = error;
}

// What would be lost if the watch looked now.
int64_t lost_by(int64_t now) {
  return lost_ns + std::max<int64_t>(now - turn_ns - kTurnNs, 0);
}

class LastWords {
 public:
  void set(std::function<void()> words) {
    const std::lock_guard lock{mutex_};
    words_ = std::move(words);
  }
  void say() {
    const std::lock_guard lock{mutex_};
    if (words_) words_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> words_;
};
LastWords& last_words() {
  // Never destroyed: the watch may need it while the process exits.
  static auto& words = *new LastWords;
  return words;
}

// Sleeps until a signal has come, then sees to it that the process ends. A process that was
// stopped, or got no processor, has its time afterwards.
void watch() {
  pollfd p{.fd = wake_watch, .events = POLLIN, .revents = 0};
  while (::poll(&p, 1, -1) <= 0) {
  }
  for (int64_t now = asked_ns; now - asked_ns - lost_by(now) < kLimitNs; now = now_ns()) {
    lost_ns = lost_by(now);
    turn_ns = now;
    if (!main_knows) pthread_kill(main_thread, kNudge);
    ::poll(nullptr, 0, kNudgeMs);
  }
  // A thread of their own: they may wait for a lock that is held, or for a pipe that nobody reads.
  std::thread{[] { last_words().say(); }}.detach();
  ::poll(nullptr, 0, kLastWordsMs);
  die_by(asked_by);
}

void start_watch() {
  main_thread = pthread_self();
  owner = ::getpid();
  wake_watch = ::eventfd(0, EFD_CLOEXEC);
  if (wake_watch < 0) throw std::runtime_error("eventfd: no descriptor is left; raise ulimit -n");
  // Signals are for the main thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread{watch}.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void catch_stop_signals() {
  if (wake_watch >= 0) return;
  start_watch();
  struct sigaction action {};
  action.sa_handler = [](int) {};
  sigaction(kNudge, &action, nullptr);
  action.sa_handler = on_stop;
  for (const int number : kStopping) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    // nohup(1). A shell's background jobs ignore SIGINT, but whoever sends it to one means it.
    if (number == SIGHUP && before.sa_handler == SIG_IGN) continue;
    sigaction(number, &action, nullptr);
  }
}

bool stop_asked() {
  if (asked_ns == 0) return false;
  if (pthread_equal(pthread_self(), main_thread) != 0) main_knows = true;
  return true;
}

int stop_signal() {
  return stop_asked() ? asked_by.load() : 0;
}

int stop_descriptor() {
  return wake_watch;
}

int64_t wait_until(int64_t usual_ns) {
  if (!stop_asked()) return usual_ns;
  return std::min(usual_ns, asked_ns + kLimitNs - kAccountNs + lost_by(now_ns()));
}

void set_last_words(std::function<void()> words) {
  last_words().set(std::move(words));
}

}  // namespace weft::cli
