// How many objects of a kind an open device has, and that they are no more than it promises
// (ibv_query_device).
#pragma once

#include <atomic>
#include <cstdint>
#include <new>

namespace weft::abi {

class ObjectCount {
 public:
  explicit ObjectCount(uint32_t most) : most_(most) {}
  ObjectCount(const ObjectCount&) = delete;
  ObjectCount& operator=(const ObjectCount&) = delete;

 private:
  friend class Counted;
  const uint32_t most_;
  std::atomic<uint32_t> count_{0};
};

// A member of each such object. Without a place for it there is as little room as without memory:
// std::bad_alloc, of which all calls that create something make ENOMEM.
class Counted {
 public:
  explicit Counted(ObjectCount& of) : of_(of) {
    if (of_.count_.fetch_add(1, std::memory_order_relaxed) < of_.most_) return;
    leave();
    throw std::bad_alloc{};
  }
  ~Counted() { leave(); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  void leave() { of_.count_.fetch_sub(1, std::memory_order_relaxed); }
  ObjectCount& of_;
};

}  // namespace weft::abi
