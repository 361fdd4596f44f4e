// The deadlines of an engine's handlers: a binary heap that knows where each handler stands, so
// that a change costs log n and allocates nothing but the heap's own growth. Not thread-safe.
#pragma once

#include <vector>

#include "engine/event_handler.h"

namespace weft::engine {

class Deadlines {
 public:
  Deadlines() { heap_.reserve(kFirst); }
  // Time::never() takes the handler out.
  void set(EventHandler& s, Time when);
  Time earliest() const { return heap_.empty() ? Time::never() : heap_.front()->deadline_; }
  // Takes out and returns one handler whose time has come, or nullptr.
  EventHandler* expire(Time now);
  size_t size() const { return heap_.size(); }

 private:
  static constexpr size_t kFirst = 64;

  void grow_early();
  void place(size_t slot, EventHandler* s);
  void up(size_t slot);
  void down(size_t slot);

  std::vector<EventHandler*> heap_;
};

}  // namespace weft::engine
