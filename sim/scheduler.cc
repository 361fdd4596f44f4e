#include "sim/scheduler.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace weft::sim {

Scheduler::EventId Scheduler::at(Time when, Action action) {
  if (when.is_never()) return {};
  const EventId id{std::max(when, now()), ++scheduled_};
  events_.emplace(id, std::move(action));
  return id;
}

bool Scheduler::step() {
  if (events_.empty()) return false;
  // Out of the map before it runs: it may schedule, cancel and throw.
  const auto event = events_.extract(events_.begin());
  if (event.key().at > now()) {
    clock_.now_ = event.key().at;
    ran_at_now_ = 0;
  }
  if (++ran_at_now_ > kLivelock) {
    throw std::runtime_error("simulation stands still: " + std::to_string(kLivelock) +
                             " actions at " + std::to_string(now().ns()) + " ns");
  }
  event.mapped()();
  return true;
}

void Alarm::set(Time when) {
  cancel();
  due_ = when;
  event_ = scheduler_.at(when, [this] {
    due_ = Time::never();
    action_();
  });
}

void Alarm::cancel() {
  if (!is_set()) return;
  scheduler_.cancel(event_);
  due_ = Time::never();
}

}  // namespace weft::sim
