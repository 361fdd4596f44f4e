#include "engine/watch.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "config/options.h"
#include "engine/sockets.h"
#include "port/calls.h"

namespace weft::engine {
namespace {

// What the set tells.
enum : uint64_t { kTimerRang, kWoken, kSocketsMoved };

// Edges, so that neither needs to be read.
constexpr uint32_t kEdge = EPOLLIN | EPOLLET;
// The sockets are heard once for each time they are armed.
constexpr uint32_t kArmed = EPOLLIN | EPOLLONESHOT;

timespec to_timespec(int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

bool control(int set, int operation, int fd, uint32_t events, uint64_t what) {
  epoll_event e{};
  e.events = events;
  e.data.u64 = what;
  return ::epoll_ctl(set, operation, fd, &e) == 0;
}

}  // namespace

Result<Watch::Fds, port::SystemError> Watch::make_fds(int sockets) {
  using port::Fd;
  using port::SystemError;
  Fds fds;
  fds.set = port::raise(Fd{::epoll_create1(EPOLL_CLOEXEC)});
  if (!fds.set.valid()) return fail(SystemError{errno, "epoll_create1"});
  fds.timer = port::raise(Fd{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)});
  if (!fds.timer.valid()) return fail(SystemError{errno, "timerfd_create"});
  fds.wake = port::raise(Fd{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)});
  if (!fds.wake.valid()) return fail(SystemError{errno, "eventfd"});
  const int set = fds.set.get();
  if (!control(set, EPOLL_CTL_ADD, fds.timer.get(), kEdge, kTimerRang) ||
      !control(set, EPOLL_CTL_ADD, fds.wake.get(), kEdge, kWoken) ||
      !control(set, EPOLL_CTL_ADD, sockets, kArmed, kSocketsMoved)) {
    return fail(SystemError{errno, "epoll_ctl"});
  }
  return fds;
}

Watch::Watch(Fds fds, const Sockets& sockets, stats::EngineCounters& counters)
    : fds_(std::move(fds)),
      sockets_(sockets),
      counters_(counters),
      policy_(config::options().takeover),
      patience_(config::options().takeover) {}

// --- the program

// When the helper has heard the sockets it is deaf first, and looks then when the program had a
// turn; here the turn is told first, and then whether it is deaf.
void Watch::program_turn(Time now, Duration patience) {
  program_turn_.store(now.ns(), std::memory_order_seq_cst);
  if (!hears()) wake_up_.no_later_than(now + patience);
}

void Watch::program_polls(Time now, bool close, uint64_t unsolicited, Time deadline) {
  const Duration closely = patience_ = policy_.patience();
  if (policy_.at_most() && !close) {
    patience_ = steady_policy_.patience(now, unsolicited, closely);
    if (steady_policy_.put_off(now, closely)) {
      wake_up_.put_off(std::min(now + patience_, later_for_poller(deadline, now)));
    }
  }
  program_turn(now, patience_);
}

void Watch::no_later_than(Token& token, Duration patience) {
  if (wake_up_.stands_before(last_turn() + patience)) return;
  wake_up_.no_later_than(token.now() + patience);
}

// --- what the helper sleeps on

// Called by any thread.
void Watch::Timer::operator()(Time when) const {
  watch.counters_.timer_calls.add_shared();
  itimerspec spec{};
  spec.it_value = to_timespec(std::max<int64_t>(when.ns(), 1));
  (void)::timerfd_settime(watch.fds_.timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

bool Watch::hears() const {
  return !deaf_.load(std::memory_order_seq_cst) &&
         sockets_.all_are_heard(std::memory_order_relaxed);
}

void Watch::hear() {
  deaf_.store(false, std::memory_order_seq_cst);
  (void)control(fds_.set.get(), EPOLL_CTL_MOD, sockets_.set().fd(), kArmed, kSocketsMoved);
}

void Watch::wake() {
  // An eventfd takes a write of 1 as long as it is not at its limit of 2^64 - 2.
  (void)port::calls::write_word(fds_.wake.get(), 1);
}

// An epoll set knows its members by number and file: three that it takes for its own under their
// numbers are they. Being told of them once more does no harm.
bool Watch::intact() const {
  const int set = fds_.set.get();
  return control(set, EPOLL_CTL_MOD, fds_.timer.get(), kEdge, kTimerRang) &&
         control(set, EPOLL_CTL_MOD, fds_.wake.get(), kEdge, kWoken) &&
         control(set, EPOLL_CTL_MOD, sockets_.set().fd(), kArmed, kSocketsMoved);
}

void Watch::close() {
  fds_.set.reset();
  fds_.timer.reset();
  fds_.wake.reset();
}

int Watch::sleep(std::span<epoll_event> events) const {
  return ::epoll_wait(fds_.set.get(), events.data(), static_cast<int>(events.size()), -1);
}

bool Watch::woken_by(std::span<const epoll_event> events, Time now) {
  bool rang = false;
  for (const epoll_event& e : events) {
    rang |= e.data.u64 == kTimerRang;
    if (e.data.u64 == kSocketsMoved) deaf_.store(true, std::memory_order_seq_cst);
  }
  if (rang) wake_up_.rang(now);
  return rang;
}

}  // namespace weft::engine
