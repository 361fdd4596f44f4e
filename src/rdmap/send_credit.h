// How much Send payload is on its way without being covered by the peer (spec/rdmap 4.6). Kept
// apart from the send queue, whose slots may be free again long before.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fixed_ring.h"

namespace weft::rdmap {

// Counts at the messages that carry AW alone: those are the ones that the peer reports. Between two
// reports it may think that more is uncovered than there is, never less.
class SendCredit {
 public:
  void sent(uint32_t bytes) { sent_ += bytes; }
  // Message number `message` asks to be covered.
  void asked(uint64_t message) {
    // A ring that is full makes its newest entry stand for both: covered a little later, and none
    // is lost.
    if (marks_.full()) {
      marks_.back() = {message, sent_};
    } else {
      marks_.push_back({message, sent_});
    }
  }
  // The peer covers the first `run` messages.
  void covered(uint64_t run) {
    for (; !marks_.empty() && marks_.front().message <= run; marks_.pop_front()) {
      covered_ = marks_.front().sent;
    }
  }
  void trim() { marks_.trim(); }
  uint64_t used() const { return sent_ - covered_; }

 private:
  static constexpr size_t kMarks = 128;
  struct Mark {
    uint64_t message = 0;
    uint64_t sent = 0;  // bytes of Sends up to and with it
  };
  FixedRing<Mark> marks_{kMarks};
  uint64_t sent_ = 0;
  uint64_t covered_ = 0;
};

}  // namespace weft::rdmap
