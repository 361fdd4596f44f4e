// When the helper thread takes over, and how long a thread spins before it sleeps: small
// controllers that learn from what came of their last decisions (design/02, design/15).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/time.h"

namespace weft::engine {

// Patience: how long after the program's last turn it still counts as polling. A program that polls
// keeps its sockets to itself and the helper asleep; one that spins on its memory between rare
// polls pays the patience in every round trip, so the helper learns to be quick with it.
//
// Quickness is what it has learned; patience grows from there while the program goes on polling,
// and falls back when it stops. Without the second number two programs that wait for each other's
// helpers would keep each other's patience up. Used by the helper alone; read by others.
class HelperPolicy {
 public:
  explicit HelperPolicy(Duration most)
      : most_(std::max(most, kLeast)), quickness_(most_), patience_(most_.count()) {}

  // It has no more patience than now: the program polls for long.
  bool at_most() const { return patience() == most_; }
  Duration patience() const { return Duration{patience_.load(std::memory_order_relaxed)}; }
  // The helper came and the program was at it.
  void program_was_active() {
    store(patience() * 2);
    if (patience() == most_) quickness_ = most_;  // it polls for long
  }
  // The helper took over. `found_work`: something had been waiting for it.
  void took_over(bool found_work) {
    if (found_work) quickness_ = std::max(quickness_ / 4, kLeast);
    store(quickness_);
  }

 private:
  static constexpr Duration kLeast = std::chrono::microseconds{4};
  void store(Duration d) {
    patience_.store(std::clamp(d, kLeast, most_).count(), std::memory_order_relaxed);
  }
  const Duration most_;
  Duration quickness_;
  std::atomic<int64_t> patience_;
};

// How closely a program is watched that polls. One that polls and polls does what the helper would.
// To be woken up in vain costs the processor, which is the program's or its peer's; so does each
// call that sets the timer where a hypervisor has to set it: 16 us, a thousand times a second
// (docs/performance-notes.md). But what comes in after the last poll has to find room in its
// socket: where much comes, and where patience is long by itself, it is as always. Engine holder
// only.
class SteadyPolicy {
 public:
  // All the room of a socket, in the parts that it is counted in.
  static constexpr uint64_t kRoom = 1 << 20;

  // The program polls, for the first time since this was last called. `taken`: what has come in
  // uncalled for since the engine was made, as room that it took. `patience`: with a program that
  // polls now and then.
  Duration patience(Time now, uint64_t taken, Duration patience) {
    const bool pause = now - std::exchange(last_, now) > patience;
    if (pause || taken - taken_ > kMuch) since_ = now;
    if (now - counted_ >= kCount || since_ == now) {
      counted_ = now;
      taken_ = taken;
    }
    const bool steady = now - since_ >= kSteady;
    longer_ = steady ? std::max(patience, std::min(kTimes * patience, kMost)) : patience;
    return longer_;
  }
  // Is the timer to be put off to the end of that patience?
  bool put_off(Time now, Duration patience) {
    if (longer_ == patience || now < again_) return false;
    again_ = now + (longer_ - patience);
    return true;
  }

 private:
  static constexpr Duration kSteady = std::chrono::milliseconds{50};
  static constexpr int kTimes = 4;
  static constexpr Duration kMost = std::chrono::milliseconds{4};
  static constexpr Duration kCount = std::chrono::milliseconds{1};
  static constexpr uint64_t kMuch = kRoom / 8;  // in kCount: half of it in kMost
  Duration longer_{};
  Time last_;
  Time since_;  // it polls without a pause, and little comes in
  Time counted_;
  uint64_t taken_ = 0;
  Time again_;
};

// When to look again at an engine that a thread of the program holds which is about to sleep. That
// may be at the end of its turn, and then nobody but the helper hears the sockets. But it may also
// have much to send first, and each look takes its processor from it. Used by the helper alone.
class HeldPolicy {
 public:
  Duration found_held() { return std::exchange(pause_, std::min(pause_ * 2, kMost)); }
  void found_free() { pause_ = kLeast; }

 private:
  static constexpr Duration kLeast = std::chrono::microseconds{50};
  static constexpr Duration kMost = 16 * kLeast;
  Duration pause_ = kLeast;
};

// While much comes in, in pieces that follow each other closely, and the program has no part in it,
// the helper rests between its turns: each wake-up costs the sender and the receiver some
// microseconds, and what gathers meanwhile comes for one. A NIC does the same with its interrupts
// (ethtool(8), --coalesce). Used by the helper alone.
class RestPolicy {
 public:
  explicit RestPolicy(Duration rest)
      : rest_(rest), close_(std::max<Duration>(std::chrono::milliseconds{1}, 2 * rest)) {}

  // A turn of the helper has ended that moved so many bytes. `program`: when the program last had
  // one; a program that takes turns between is likely to wait for what comes.
  Duration after(size_t bytes, Time now, Time program) {
    const bool alone = std::exchange(program_, program) == program;
    if (bytes < kMuch) return Duration{0};
    const bool steady = now - std::exchange(last_much_, now) < close_;
    return steady && alone ? rest_ : Duration{0};
  }

 private:
  static constexpr size_t kMuch = size_t{32} << 10;
  const Duration rest_;
  const Duration close_;
  Time last_much_;
  Time program_;
};

// Spinning before a sleep pays when what is waited for comes within the spin. Keeps the share of
// spins that paid, and probes now and then when it is low. Any thread; races cost a wrong guess at
// most.
class SpinPolicy {
 public:
  explicit SpinPolicy(Duration most) : most_(most) {}

  Duration spin() {
    if (score_.load(std::memory_order_relaxed) >= kWorth) return most_;
    // One in 64 waits tries again.
    return (waits_.fetch_add(1, std::memory_order_relaxed) % 64) == 0 ? most_ : Duration{0};
  }
  void result(bool paid) {
    const int score = score_.load(std::memory_order_relaxed);
    score_.store(score + ((paid ? kMost : 0) - score) / 8, std::memory_order_relaxed);
  }

 private:
  static constexpr int kMost = 1024;
  static constexpr int kWorth = 256;
  const Duration most_;
  std::atomic<int> score_{kMost / 2};
  std::atomic<unsigned> waits_{0};
};

}  // namespace weft::engine
