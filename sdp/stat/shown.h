// A connection as `weft stat` shows it, from when it is made until it is gone.
#pragma once

#include "sdp/stat/layout.h"

namespace weft::sdp {

struct ShownConnection {
  Transport transport = Transport::sdp;
  bool server = false;
  Fallback fallback = Fallback::none;  // of TCP
  StatName own;
  StatName peer;
};

// Any thread may make and destroy one; its numbers are for whoever has the connection's lock.
class Shown {
 public:
  // Counts for itself alone.
  Shown() = default;
  // In the memory file of this process, which the first one makes. Counts for itself where that
  // cannot be had, or is full.
  explicit Shown(const ShownConnection& connection);
  Shown(Shown&& other) noexcept;
  Shown& operator=(Shown&& other) noexcept;
  ~Shown();

  Traffic& traffic() { return slot_ != nullptr ? slot_->traffic : own_; }
  void relayed() {
    if (slot_ != nullptr) slot_->relayed.store(true, std::memory_order_relaxed);
  }

  // In a child of fork(2): the parent's memory is not touched any more.
  static void forget_in_child();

 private:
  StatSlot* slot_ = nullptr;
  Traffic own_;
};

}  // namespace weft::sdp
