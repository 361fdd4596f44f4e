// Which connection alone is busy. Its socket is asked without epoll, one system call instead of
// two; others are not kept waiting for it, because all are asked every few polls and as soon as it
// pauses. One that stays busy leaves the epoll set (docs/design/19).
#pragma once

#include <chrono>

#include "engine/event_handler.h"

namespace weft::engine {

// Engine holder only.
class BusySocket {
 public:
  EventHandler* handler() const { return handler_; }
  void clear() { handler_ = nullptr; }

  // What a poll does while there is one. `outside`: it is not in the epoll set.
  struct Poll {
    bool ask;     // it, directly
    bool others;  // and all through epoll
    bool paused;  // nothing has come for so long that it is busy no more
  };
  Poll next(Time now, bool outside) {
    const Duration pause = now - moved_at_;
    const bool others = ++polls_ >= (outside ? kPollsOutside : kPolls) || pause >= kPause;
    return {.ask = outside || !others, .others = others, .paused = pause >= kLongPause};
  }
  // It had something when it was asked directly.
  void moved(Time now) {
    moved_at_ = now;
    ++hits_;
  }
  void others_asked() { polls_ = 0; }
  // epoll told of this one and of nobody else.
  void told_of(EventHandler& handler, Time now) {
    if (handler_ != &handler) hits_ = 0;
    handler_ = &handler;
    moved_at_ = now;
  }
  // Has it been busy for so long that leaving the epoll set pays?
  bool should_leave_set() const { return handler_ != nullptr && hits_ >= kHitsOutside; }

 private:
  static constexpr unsigned kPolls = 16;  // of it, before all are asked again
  static constexpr unsigned kPollsOutside = 64;
  static constexpr Duration kPause = std::chrono::microseconds{50};
  static constexpr Duration kLongPause = std::chrono::milliseconds{1};
  static constexpr unsigned kHitsOutside = 64;

  EventHandler* handler_ = nullptr;
  Time moved_at_;
  unsigned polls_ = 0;  // since all were asked
  unsigned hits_ = 0;   // times that it moved while it was busy
};

}  // namespace weft::engine
