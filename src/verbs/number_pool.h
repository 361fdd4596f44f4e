// The queue pair numbers of an engine's ports that are free (spec/addressing 2.3). A number that a
// peer may know rests for two seconds when its queue pair is gone: what was under way to that one
// is not for another. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "base/types.h"

namespace weft::verbs {

class NumberPool {
 public:
  // Of a port: index 0 is the port itself, 255 multicast.
  static constexpr unsigned kOfAPort = 254;

  // The numbers of another port, which nobody knows yet. Throws std::bad_alloc, and has none of
  // them then.
  void add_port(uint16_t port);
  // One that may be used: of those that nobody knows the one that was free longest, else of those
  // that have rested.
  std::optional<Qpn> take(Time now);
  // The one that has rested longest, though it may not be long enough.
  std::optional<Qpn> take_resting();
  // `known`: a peer may know it. Needs no memory.
  void give_back(Qpn number, bool known, Time now);
  // How many rest, or have rested.
  size_t resting() const { return resting_.size(); }

 private:
  struct Free {
    Qpn number;
    Time since;
  };
  // A queue with room for all numbers.
  class Queue {
   public:
    void make_room(size_t count);
    void push(Free f) { slots_[(first_ + size_++) % room_] = f; }
    std::optional<Qpn> pop();
    size_t size() const { return size_; }
    const Free& front() const { return slots_[first_]; }

   private:
    std::unique_ptr<Free[]> slots_;
    size_t room_ = 0;
    size_t first_ = 0;
    size_t size_ = 0;
  };

  Queue unknown_;
  Queue resting_;
  size_t count_ = 0;  // of all numbers, used ones too
};

}  // namespace weft::verbs
