// What this side owes its peer in Delivered messages (spec/rdmap 4.1): how far the peer's requests
// are placed, accepted and consumed without a gap, and whether the peer waits to hear of it.
#pragma once

#include <cstdint>

namespace weft::rdmap {

class Delivery {
 public:
  enum class Due : uint8_t {
    nothing,
    soon,  // may wait for other output
    now,
  };

  // The next request of the peer is done: the run grows.
  void accepted(bool ack_wanted) {
    ++run_;
    if (ack_wanted) want(Due::soon);
  }
  void accepted(uint64_t messages, bool ack_wanted) {
    run_ += messages;
    if (ack_wanted) want(Due::soon);
  }
  // Message run() + 1 found no receive: the sender must hear of it at once. Or it found one at
  // last.
  void waiting(bool waits) {
    waiting_ = waits;
    want(Due::now);
  }

  void want(Due due) {
    if (due > due_) due_ = due;
  }
  Due due() const { return due_; }
  uint64_t run() const { return run_; }
  bool is_waiting() const { return waiting_; }
  // Has the run grown since the peer last heard of it? Before a FIN it is told, asked for or not:
  // later it cannot learn of it.
  bool untold() const { return run_ != told_; }
  void sent() {
    due_ = Due::nothing;
    told_ = run_;
  }

 private:
  uint64_t run_ = 0;
  uint64_t told_ = 0;
  bool waiting_ = false;
  Due due_ = Due::nothing;
};

}  // namespace weft::rdmap
