// The deadlines of an engine's sources: a binary heap that knows where each source stands, so that
// a change costs log n and allocates nothing but the heap's own growth. Not thread-safe.
#pragma once

#include <vector>

#include "engine/source.h"

namespace weft::engine {

class Deadlines {
 public:
  Deadlines() { heap_.reserve(kFirst); }
  // Time::never() takes the source out.
  void set(Source& s, Time when);
  Time earliest() const { return heap_.empty() ? Time::never() : heap_.front()->deadline_; }
  // Takes out and returns one source whose time has come, or nullptr.
  Source* expire(Time now);
  size_t size() const { return heap_.size(); }

 private:
  static constexpr size_t kFirst = 64;

  void grow_early();
  void place(size_t slot, Source* s);
  void up(size_t slot);
  void down(size_t slot);

  std::vector<Source*> heap_;
};

}  // namespace weft::engine
