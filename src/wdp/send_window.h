// Keeps a sender from running away from a peer close by: buffers do not help against a sender that
// is faster, a window does (datapath.md 2). A KA behind what was sent asks how far the peer has
// come; its KAA says: that far. UC does not stop for what is lost, so a wait is short, and a path
// on which answers do not come is sent to without a window.
#pragma once

#include <algorithm>
#include <utility>

#include "base/time.h"
#include "wdp/limits.h"

namespace weft::wdp {

class SendWindow {
 public:
  // `size`: of the peer's socket buffer, as the kernel accounts for it; 0: no window.
  explicit SendWindow(uint64_t size) : size_(size) {}

  bool open() const { return size_ == 0 || under_way_ < size_; }
  void sent(size_t bytes, size_t datagrams) {
    if (size_ != 0) under_way_ += bytes + datagrams * kEach;
  }
  bool wants_to_ask(Time now) const {
    return asking_ ? now >= again_at_ : size_ != 0 && under_way_ >= size_ / 4;
  }
  void asked(Time now) {
    if (!std::exchange(asking_, true)) {
      asked_with_ = under_way_;
      give_up_at_ = now + kPatience;
      pause_ = kFirstPause;
    } else {
      pause_ *= 2;
    }
    again_at_ = now + pause_;
  }
  bool asking() const { return asking_; }
  // What was under way when it was asked is there.
  void answered() {
    close_question();
    misses_ = 0;
  }
  Time deadline() const { return std::min(again_at_, give_up_at_); }
  void tick(Time now) {
    if (now < give_up_at_) return;
    close_question();
    if (++misses_ == kMostMisses) size_ = 0;
  }

 private:
  // What a datagram takes in a buffer besides its bytes, about.
  static constexpr size_t kEach = 768;
  // A question that is lost is soon repeated; one that stays without an answer for long is about a
  // peer that does not run, and then what is sent now is lost.
  static constexpr Duration kFirstPause = 200us;
  static constexpr Duration kPatience = 100ms;
  static constexpr int kMostMisses = 4;

  void close_question() {
    asking_ = false;
    again_at_ = give_up_at_ = Time::never();
    under_way_ -= asked_with_;
  }

  uint64_t size_;
  uint64_t under_way_ = 0;
  uint64_t asked_with_ = 0;
  bool asking_ = false;
  int misses_ = 0;  // in a row
  Duration pause_{};
  Time again_at_ = Time::never();
  Time give_up_at_ = Time::never();
};

}  // namespace weft::wdp
