// Keeps a sender from running away from a peer close by: buffers do not help against a sender that
// is faster, a window does (design/11). A KA behind what was sent asks how far the peer has
// come; its KAA says: that far. UC does not stop for what is lost, so a wait is short, and a path
// on which answers do not come, or take long, is sent to without a window. Then a question now and
// then finds out whether that is still so: the peer, or this program, may only have had no
// processor for a while.
//
// All sessions from one socket to one socket share a window, for what they send shares that
// socket's buffer, and is read from it in the order in which it came: who learns how far the peer
// has come with one session knows that it has come as far with all.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/intrusive_list.h"
#include "base/time.h"
#include "wdp/endpoint.h"
#include "wdp/limits.h"

namespace weft::wdp {

class SendWindow {
 public:
  // Who waits for it to open. Called once for each wait(), from inside a call of another session's.
  class Waiter : public ListHook<struct WaitingForWindowTag> {
   public:
    virtual void window_opened() = 0;

   protected:
    ~Waiter() = default;
  };

  // `size`: of the peer's socket buffer, as the kernel accounts for it; 0: no window, nor questions
  // about it. `close_by`: as far as the handshake shows.
  SendWindow(uint64_t size, bool close_by) : size_(size), close_by_(close_by) {}

  SendWindow(const SendWindow&) = delete;
  SendWindow& operator=(const SendWindow&) = delete;

  bool open() const { return size_ == 0 || !close_by_ || under_way_ < size_; }
  void wait(Waiter& w) { waiting_.push_back(w); }
  // Another handshake found the peer close by.
  void seen_close_by() {
    close_by_ = true;
    misses_ = 0;
  }
  void sent(size_t bytes, size_t datagrams) {
    if (size_ != 0) under_way_ += bytes + datagrams * kEach;
  }
  bool wants_to_ask(const Waiter& who, Time now) const {
    return asking_ ? now >= again_at_ && may_repeat(who) : size_ != 0 && under_way_ >= size_ / 2;
  }
  // Which question it was: for is_open_question(). One that is repeated stays the same, whoever
  // repeats it.
  uint32_t asked(const Waiter& who, Time now) {
    last_asker_ = &who;
    if (!std::exchange(asking_, true)) {
      ++question_;
      asked_with_ = under_way_;
      give_up_at_ = now + (close_by_ && answers_ ? kPatience : kFirstPatience);
      pause_ = kFirstPause;
    } else {
      pause_ = std::min(pause_ * 2, kMostPause);
    }
    // Of a path without a window nobody waits for the answer.
    again_at_ = close_by_ ? now + pause_ : Time::never();
    return question_;
  }
  bool is_open_question(uint32_t question) const { return asking_ && question == question_; }
  // What was under way when it was asked is there. `took`: of whichever KA was answered.
  void answered(Duration took) {
    misses_ = 0;
    answers_ = true;
    if (is_close_by(took)) close_by_ = true;
    close_question();
  }
  // Of one that waits or has asked.
  Time deadline(const Waiter& who) const {
    return may_repeat(who) ? std::min(again_at_, give_up_at_) : give_up_at_;
  }
  void tick(Time now) {
    if (now < give_up_at_) return;
    if (++misses_ >= kMostMisses) close_by_ = false;
    close_question();
  }

 private:
  // What a datagram takes in a buffer besides its bytes, about.
  static constexpr size_t kEach = 768;
  // A question that is lost is soon repeated.
  static constexpr Duration kFirstPause = 2ms;
  static constexpr Duration kMostPause = 50ms;
  // One that stays without an answer for long is about a peer that does not run, and what is sent
  // to it beyond its buffer is lost. One that answered before is stopped or starved; of others
  // it is not known whether they answer at all.
  static constexpr Duration kFirstPatience = 100ms;
  static constexpr Duration kPatience = 1s;
  static constexpr int kMostMisses = 4;

  // The other end of one session may be gone without a word: then another one's is to be asked.
  bool may_repeat(const Waiter& who) const {
    return last_asker_ != &who || !waiting_.has_other_than(who);
  }
  void close_question() {
    asking_ = false;
    again_at_ = give_up_at_ = Time::never();
    under_way_ -= asked_with_;
    if (!open()) return;
    while (Waiter* w = waiting_.pop_front()) w->window_opened();
  }

  uint64_t size_;
  bool close_by_;
  bool answers_ = false;
  uint64_t under_way_ = 0;
  uint64_t asked_with_ = 0;
  bool asking_ = false;
  uint32_t question_ = 0;
  const Waiter* last_asker_ = nullptr;  // may be gone
  int misses_ = 0;                      // in a row
  Duration pause_{};
  Time again_at_ = Time::never();
  Time give_up_at_ = Time::never();
  IntrusiveList<Waiter, WaitingForWindowTag> waiting_;
};

// The windows of one socket.
class SendWindows {
 public:
  // The one that all share who send to `peer`. It lives as long as any of them. `size` is the same
  // for all; 0: one that holds nobody back, and is nobody else's.
  std::shared_ptr<SendWindow> to(const Endpoint& peer, uint64_t size, bool close_by) {
    if (size == 0) return std::make_shared<SendWindow>(0, close_by);
    if (windows_.size() >= tidy_at_) {
      std::erase_if(windows_, [](const auto& w) { return w.second.expired(); });
      tidy_at_ = 2 * windows_.size() + 16;
    }
    std::weak_ptr<SendWindow>& known = windows_[peer];
    auto w = known.lock();
    if (w == nullptr) {
      known = w = std::make_shared<SendWindow>(size, close_by);
    } else if (close_by) {
      w->seen_close_by();
    }
    return w;
  }

 private:
  std::map<Endpoint, std::weak_ptr<SendWindow>> windows_;
  size_t tidy_at_ = 16;
};

}  // namespace weft::wdp
