// How far the peer has come with what it was sent (spec/rdmap 4): messages sent, asked for, and
// covered by its Delivered messages.
#pragma once

#include <cstdint>

#include "rdmap/limits.h"
#include "rdmap/send_credit.h"

namespace weft::rdmap {

// Messages are counted from 1, and those of no work request count as well.
class Coverage {
 public:
  // `possible`: the peer knows Delivered. `awaited`: a request is complete when it is covered, so
  // that a queue of `capacity` requests must not fill up with uncovered ones.
  Coverage(bool possible, bool awaited, uint32_t capacity)
      : possible_(possible), awaited_(awaited), capacity_(capacity) {}

  bool awaited() const { return awaited_; }
  uint64_t messages() const { return messages_; }
  uint64_t covered() const { return covered_; }
  uint64_t asked() const { return asked_; }
  // Is there one that the peer was not asked about?
  bool unasked() const { return possible_ && asked_ < messages_; }

  // Shall the message that goes out next ask to be covered (AW)? `send_bytes`: of a Send. Signaled
  // requests wait for it. Of the others enough ask that neither the queue nor the credit runs dry
  // unheard.
  bool asks(bool signaled, uint32_t send_bytes) const {
    if (!possible_) return false;
    const uint64_t unasked = messages_ + 1 - asked_;
    const bool for_queue =
        awaited_ && (signaled || unasked * 2 >= capacity_ || unasked_bytes_ >= kSendCredit / 2);
    return for_queue || credit_.used() + send_bytes >= kSendCredit / 2;
  }
  void sent_payload(uint32_t bytes) { unasked_bytes_ += bytes; }
  // It is out. `asks`: with AW.
  void sent_message(bool asks, uint32_t send_bytes = 0) {
    ++messages_;
    if (send_bytes > 0) credit_.sent(send_bytes);
    if (asks) asked_for_all();
  }

  // May a Send of so many bytes follow? At most the credit beyond what is covered, or one message
  // where it is larger (spec/rdmap 4.6).
  bool has_credit(uint32_t bytes) const {
    return !possible_ || credit_.used() == 0 || credit_.used() + bytes <= kSendCredit;
  }

  // The peer covers the first `run`. False when it did already.
  bool cover(uint64_t run) {
    if (run <= covered_) return false;
    covered_ = run;
    credit_.covered(run);
    return true;
  }

  void trim() { credit_.trim(); }

 private:
  // For few messages: a call of its own keeps sent_message() small.
  [[gnu::noinline]] void asked_for_all() {
    asked_ = messages_;
    unasked_bytes_ = 0;
    credit_.asked(messages_);
  }

  const bool possible_;
  const bool awaited_;
  const uint32_t capacity_;
  uint64_t messages_ = 0;
  uint64_t covered_ = 0;
  uint64_t asked_ = 0;          // the last message that carried AW
  uint64_t unasked_bytes_ = 0;  // sent behind it
  SendCredit credit_;
};

}  // namespace weft::rdmap
