// What happens when: actions ordered by virtual time, those of one time in the order in which they
// were scheduled.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "base/time.h"
#include "sim/clock.h"

namespace weft::sim {

// Owns the actions until they have run or are cancelled. One thread.
// Invariants: the clock never moves back; no action runs before its time or while another one runs.
class Scheduler {
 public:
  using Action = std::function<void()>;

  // Names one scheduled action; may be kept after it has run.
  struct EventId {
    Time at = Time::never();
    uint64_t order = 0;
    friend constexpr auto operator<=>(const EventId&, const EventId&) = default;
  };

  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const Clock& clock() const { return clock_; }
  Time now() const { return clock_.now(); }

  // A time that has passed means now. Time::never() schedules nothing.
  EventId at(Time when, Action action);
  EventId after(Duration d, Action action) { return at(now() + d, std::move(action)); }
  // False when there was nothing to cancel: it ran, runs right now, or was cancelled.
  bool cancel(EventId id) { return events_.erase(id) != 0; }

  size_t pending() const { return events_.size(); }
  // Of the next action; never when there is none.
  Time next() const { return events_.empty() ? Time::never() : events_.begin()->first.at; }

  // Moves the clock to the next action and runs it. False when there is none. Throws
  // std::runtime_error when kLivelock actions have run without the clock moving: two actions then
  // wake each other for ever.
  static constexpr uint64_t kLivelock = 1'000'000;
  bool step();

  // Runs actions until `done()`, asked before the first and after each. False when the clock
  // reached now + `limit` first, or nothing is left to happen before that; the clock then stands at
  // the limit.
  template <class Predicate>
  bool run_until(Predicate&& done, Duration limit) {
    const Time end = now() + limit;
    while (!done()) {
      if (events_.empty() || next() > end) {
        if (!end.is_never()) clock_.now_ = end;
        return false;
      }
      step();
    }
    return true;
  }
  // Runs all that happens within `d`.
  void run_for(Duration d) {
    run_until([] { return false; }, d);
  }
  // Runs until nothing is left to happen; false when that took more than `limit`.
  bool run_until_idle(Duration limit) {
    return run_until([this] { return events_.empty(); }, limit);
  }

 private:
  Clock clock_;
  std::map<EventId, Action> events_;
  uint64_t scheduled_ = 0;
  uint64_t ran_at_now_ = 0;
};

// One action that is due at one time or not at all; setting it anew moves it. Cancels itself when
// it dies.
class Alarm {
 public:
  Alarm(Scheduler& scheduler, Scheduler::Action action)
      : scheduler_(scheduler), action_(std::move(action)) {}
  ~Alarm() { cancel(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Time::never() cancels.
  void set(Time when);
  void cancel();
  // Time::never() when it is not set.
  Time due() const { return due_; }
  bool is_set() const { return !due_.is_never(); }

 private:
  Scheduler& scheduler_;
  Scheduler::Action action_;
  Scheduler::EventId event_;
  Time due_ = Time::never();
};

}  // namespace weft::sim
