// How many objects of a kind an open device has, and that they are no more than it promises
// (ibv_query_device).
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::abi {

class ObjectCount {
 public:
  // `limit`: its name in ibv_device_attr, for messages.
  ObjectCount(uint32_t most, const char* limit) : most_(most), limit_(limit) {}
  ObjectCount(const ObjectCount&) = delete;
  ObjectCount& operator=(const ObjectCount&) = delete;

 private:
  friend class Counted;
  const uint32_t most_;
  const char* const limit_;
  std::atomic<uint32_t> count_{0};
};

// A member of each such object. Without a place for it there is as little room as without memory:
// std::bad_alloc, of which all calls that create something make ENOMEM. The log says which limit it
// is.
class Counted {
 public:
  explicit Counted(ObjectCount& of) : of_(of) {
    if (of_.count_.fetch_add(1, std::memory_order_relaxed) < of_.most_) return;
    leave();
    refuse();
  }
  ~Counted() { leave(); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  [[noreturn]] void refuse() const;
  void leave() { of_.count_.fetch_sub(1, std::memory_order_relaxed); }
  ObjectCount& of_;
};

}  // namespace weft::abi
