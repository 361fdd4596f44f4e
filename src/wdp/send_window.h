// Keeps a sender from running away from a peer close by: buffers do not help against a sender that
// is faster, a window does (datapath.md 2). A KA behind what was sent asks how far the peer has
// come; its KAA says: that far. UC does not stop for what is lost, so a wait is short, and a path
// on which answers do not come, or take long, is sent to without a window. Then a question now and
// then finds out whether that is still so: the peer, or this program, may only have had no
// processor for a while.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "wdp/limits.h"

namespace weft::wdp {

class SendWindow {
 public:
  // `size`: of the peer's socket buffer, as the kernel accounts for it; 0: no window, nor questions
  // about it. `close_by`: as far as the handshake shows.
  SendWindow(uint64_t size, bool close_by) : size_(size), close_by_(close_by) {}

  bool open() const { return size_ == 0 || !close_by_ || under_way_ < size_; }
  void sent(size_t bytes, size_t datagrams) {
    if (size_ != 0) under_way_ += bytes + datagrams * kEach;
  }
  bool wants_to_ask(Time now) const {
    return asking_ ? now >= again_at_ : size_ != 0 && under_way_ >= size_ / 4;
  }
  void asked(Time now) {
    if (!std::exchange(asking_, true)) {
      asked_with_ = under_way_;
      give_up_at_ = now + (close_by_ && answers_ ? kPatience : kFirstPatience);
      pause_ = kFirstPause;
    } else {
      pause_ = std::min(pause_ * 2, kMostPause);
    }
    asked_at_ = now;
    // Of a path without a window nobody waits for the answer.
    again_at_ = close_by_ ? now + pause_ : Time::never();
  }
  bool asking() const { return asking_; }
  // What was under way when it was asked is there. It is the answer to the last asked().
  void answered(Time now) {
    close_question();
    misses_ = 0;
    answers_ = true;
    if (now - asked_at_ < kCloseBy) close_by_ = true;
  }
  Time deadline() const { return std::min(again_at_, give_up_at_); }
  void tick(Time now) {
    if (now < give_up_at_) return;
    close_question();
    if (++misses_ >= kMostMisses) close_by_ = false;
  }

 private:
  // What a datagram takes in a buffer besides its bytes, about.
  static constexpr size_t kEach = 768;
  // A question that is lost is soon repeated.
  static constexpr Duration kFirstPause = 200us;
  static constexpr Duration kMostPause = 50ms;
  // One that stays without an answer for long is about a peer that does not run, and what is sent
  // to it beyond its buffer is lost. One that answered before is stopped or starved; of others
  // it is not known whether they answer at all.
  static constexpr Duration kFirstPatience = 100ms;
  static constexpr Duration kPatience = 1s;
  static constexpr int kMostMisses = 4;

  void close_question() {
    asking_ = false;
    again_at_ = give_up_at_ = Time::never();
    under_way_ -= asked_with_;
  }

  uint64_t size_;
  bool close_by_;
  bool answers_ = false;
  uint64_t under_way_ = 0;
  uint64_t asked_with_ = 0;
  bool asking_ = false;
  int misses_ = 0;  // in a row
  Duration pause_{};
  Time asked_at_;
  Time again_at_ = Time::never();
  Time give_up_at_ = Time::never();
};

}  // namespace weft::wdp
