// Output that waits a moment for company: what a program posts in small pieces is gathered until it
// polls, and what can be said later is deferred until nothing else happens.
#pragma once

#include <chrono>

#include "engine/event_handler.h"

namespace weft::engine {

// Engine holder only.
class PendingOutput {
 public:
  // The program polls: what it posts from now on may gather for a while.
  void polled(Time now) { since_ = now; }
  // True: `handler` is called with the others when it is flushed. False: the program has not polled
  // lately, or its burst has become long; send now.
  bool gather(EventHandler& handler, Time now) {
    ListHook<GatheringTag>& hook = handler;
    if (now - since_ > kPollsWithin) {
      // In the middle of a burst: what has gathered goes out now, and what follows gathers again.
      if (hook.linked()) since_ = now;
      hook.unlink();
      return false;
    }
    gathered_.push_back(handler);
    return true;
  }
  void defer(EventHandler& handler, Time now) {
    if (deferred_.empty()) deferred_until_ = now + kDeferMost;
    deferred_.push_back(handler);
  }

  bool has_gathered() const { return !gathered_.empty(); }
  bool has_deferred() const { return !deferred_.empty(); }
  // Is it time for what was deferred? `idle`: nothing came in in this turn.
  bool deferred_is_due(Time now, bool idle) const {
    return has_deferred() && now >= (idle ? deferred_until_ - kDeferIdle : deferred_until_);
  }
  // call(handler) for each.
  template <class Call>
  void flush_gathered(Call&& call) {
    while (EventHandler* h = gathered_.pop_front()) call(*h);
  }
  template <class Call>
  void flush_deferred(Call&& call) {
    while (EventHandler* h = deferred_.pop_front()) call(*h);
    deferred_until_ = Time::never();
  }

 private:
  static constexpr Duration kDeferMost = std::chrono::microseconds{50};  // spec/rdmap 4.3
  // Less, as soon as nothing else comes in.
  static constexpr Duration kDeferIdle = std::chrono::microseconds{45};
  // Between two polls of a program that polls.
  static constexpr Duration kPollsWithin = std::chrono::microseconds{50};

  IntrusiveList<EventHandler, GatheringTag> gathered_;
  Time since_;  // the program's last poll, or when a long burst went out
  IntrusiveList<EventHandler, DeferredTag> deferred_;
  Time deferred_until_ = Time::never();
};

}  // namespace weft::engine
