// The helper thread of an engine, and the threads of the program that fall asleep on it: who hears
// the sockets when nobody polls.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>

#include "engine/engine.h"

namespace weft::engine {
namespace {

// What the helper's epoll set tells it.
enum : uint64_t { kTimerRang, kWoken, kSocketsMoved };

using namespace std::chrono_literals;
constexpr int kTakeOverTurns = 16;  // before the helper lets others have the engine

timespec to_timespec(int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

bool add(int set, int fd, uint32_t events, uint64_t what) {
  epoll_event e{};
  e.events = events;
  e.data.u64 = what;
  return ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0;
}

}  // namespace

Result<Ok, port::SystemError> make_engine_fds(EngineFds& fds) {
  using port::Fd;
  using port::SystemError;
  fds.inner = port::raise(Fd{::epoll_create1(EPOLL_CLOEXEC)});
  fds.outer = port::raise(Fd{::epoll_create1(EPOLL_CLOEXEC)});
  if (!fds.inner.valid() || !fds.outer.valid()) return fail(SystemError{errno, "epoll_create1"});
  fds.timer = port::raise(Fd{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)});
  if (!fds.timer.valid()) return fail(SystemError{errno, "timerfd_create"});
  fds.wake = port::raise(Fd{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)});
  if (!fds.wake.valid()) return fail(SystemError{errno, "eventfd"});
  // Edges, so that neither needs to be read. The sockets are heard once for each time they are
  // armed.
  if (!add(fds.outer.get(), fds.timer.get(), EPOLLIN | EPOLLET, kTimerRang) ||
      !add(fds.outer.get(), fds.wake.get(), EPOLLIN | EPOLLET, kWoken) ||
      !add(fds.outer.get(), fds.inner.get(), EPOLLIN | EPOLLONESHOT, kSocketsMoved)) {
    return fail(SystemError{errno, "epoll_ctl"});
  }
  return Ok{};
}

void Engine::start_helper() {
  // Signals are the program's: none of them is ever delivered to this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  helper_ = std::thread([this] { helper_main(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Engine::~Engine() {
  stop_.store(true);
  const uint64_t one = 1;
  // An eventfd takes a write of 1 as long as it is not at its limit of 2^64 - 2.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  if (helper_.joinable()) helper_.join();
  {
    Hold h = hold();
    sources_.for_each([&](Source& s) { graveyard_.push_back(take(h.token(), s)); });
  }
}

void Engine::flush_at_exit() {
  for (int i = 0; i < 100'000; ++i) {
    if (auto h = try_hold()) {
      turn(h->token());
      flush_deferred(h->token());
      return;
    }
    cpu_relax();
  }
}

void Engine::abandon_in_child() {
  sources_.for_each([](Source& s) { s.abandon_in_child(); });
  inner_.reset();
  outer_.reset();
  timer_.reset();
  wake_.reset();
  // The thread does not exist here. The engine is never destroyed in the child, so nobody waits for
  // it.
}

// Never later than it stands: the program's threads and the helper both set it, and each relies on
// being woken by then.
void Engine::arm_timer(Time when) {
  const std::lock_guard guard{timer_lock_};
  if (when.ns() >= timer_at_.load(std::memory_order_relaxed)) return;
  timer_at_.store(when.ns(), std::memory_order_relaxed);
  itimerspec spec{};
  spec.it_value = to_timespec(std::max<int64_t>(when.ns(), 1));
  (void)::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Engine::timer_rang() {
  const std::lock_guard guard{timer_lock_};
  // It may have been set anew meanwhile.
  if (timer_at_.load(std::memory_order_relaxed) <= clock().ns()) {
    timer_at_.store(INT64_MAX, std::memory_order_relaxed);
  }
}

void Engine::arm_inner() {
  epoll_event e{};
  e.events = EPOLLIN | EPOLLONESHOT;
  e.data.u64 = kSocketsMoved;
  (void)::epoll_ctl(outer_.get(), EPOLL_CTL_MOD, inner_.get(), &e);
}

// The program has a turn: should it not come back, the helper will notice. At most one system call
// per patience.
void Engine::watch_program(Time now) {
  program_turn_.store(now.ns(), std::memory_order_relaxed);
  const Time latest = now + policy_.patience();
  if (timer_at_.load(std::memory_order_relaxed) > latest.ns()) arm_timer(latest);
}

void Engine::expect_sleeper() {
  if (expected_sleepers_.fetch_add(1, std::memory_order_relaxed) == 0) arm_inner();
}

void Engine::helper_main() {
  char name[16];
  std::snprintf(name, sizeof name, "weft/%u", number_);
  (void)::prctl(PR_SET_NAME, name);
  (void)::prctl(PR_SET_TIMERSLACK, 1UL);
  while (!stop_.load()) {
    epoll_event events[3];
    const int n = ::epoll_wait(outer_.get(), events, 3, -1);
    if (n < 0 && errno != EINTR) return;  // the set is gone: abandoned after a fork
    for (int i = 0; i < n; ++i) {
      if (events[i].data.u64 == kTimerRang) timer_rang();
    }
    if (n > 0) helper_turn();
  }
}

void Engine::helper_turn() {
  const Time now = clock();
  const Time polled = Time::from_ns(program_turn_.load(std::memory_order_relaxed));
  const bool sleep_expected = expected_sleepers_.load(std::memory_order_relaxed) > 0;
  const bool active = !sleep_expected && now - polled < policy_.patience();
  auto h = try_hold();
  if (!h) {
    // Somebody is at it right now; come back when his patience is over.
    arm_timer(now + policy_.patience());
    if (sleep_expected) arm_inner();
    return;
  }
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    run_deadlines(h->token());
    if (sleep_expected) arm_inner();
    return;
  }
  if (active) {
    policy_.program_was_active();
    run_deadlines(h->token());
    arm_timer(now + policy_.patience());
    return;
  }
  take_over(h->token());
  arm_inner();
}

void Engine::take_over(Token& token) {
  bool found = false;
  for (int i = 0; i < kTakeOverTurns; ++i) {
    token.now_ = clock();
    doorbells_.drain([&](Source& s) { s.on_doorbell(token); });
    if (!turn(token) && !linger(token)) break;
    found = true;
  }
  flush_deferred(token);
  policy_.took_over(found);
}

// Where small messages follow each other closely, falling asleep between two of them costs both
// sides more than looking for a few microseconds longer. Only as long as that pays: an idle engine,
// or one whose messages are far apart, does not spin.
bool Engine::linger(Token& token) {
  const Duration most = linger_policy_.spin();
  if (most <= Duration{0}) return false;
  for (const Time until = clock() + most; token.now_ < until;) {
    token.now_ = clock();
    if (turn(token) || doorbells_.any()) {
      linger_policy_.result(true);
      return true;
    }
  }
  linger_policy_.result(false);
  return false;
}

// --- program threads that wait

bool Engine::spin(const std::function<bool()>& ready) {
  const Duration most = spin_policy_.spin();
  if (most <= Duration{0}) return false;
  for (const Time until = clock() + most; clock() < until;) {
    progress();
    if (ready()) {
      spin_policy_.result(true);
      return true;
    }
  }
  spin_policy_.result(false);
  return false;
}

int Engine::wait(int fd, const std::function<bool()>& ready, Duration timeout) {
  const bool bounded = timeout >= Duration{0};
  const Time until = bounded ? clock() + timeout : Time::never();
  progress();
  for (;;) {
    if (ready() || spin(ready)) return 0;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    {
      Hold h = hold();
      flush_deferred(h.token());
    }
    int ms = -1;
    if (bounded) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock());
      ms = left.count() > 0 ? static_cast<int>(left.count()) : 0;
    }
    pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = inner_.get(), .events = POLLIN}};
    int n = 0;
    int error = 0;
    if (!ready()) {
      n = ::poll(fds, 2, ms);
      error = n < 0 ? errno : 0;
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    watch_program(clock());
    if (n < 0) return error;
    progress();
    if (ready()) return 0;
    if (bounded && clock() >= until) return ETIMEDOUT;
  }
}

}  // namespace weft::engine
