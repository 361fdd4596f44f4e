// Waiting for what comes soon, without the kernel: cheap where the other side runs on another
// processor, dear where it waits for this one. What the last waits were worth decides for how long.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>

#include "sdp/rdma/session.h"

namespace weft::sdp {

class LookTime {
 public:
  // Enough for an answer that the other side gives when it has been woken.
  static constexpr std::chrono::microseconds kMost{100};
  // `keep`: look for kMost. `yield`: the same, and let other threads have the processor in between.
  // Where somebody else has the other processor, the one who answers waits for this very one.
  enum class How : uint8_t { sleep, keep, yield };

  // What the next wait begins with.
  How next() {
    if (keeps_ >= kWorth) return How::keep;
    ++waits_;
    if (yields_ >= kWorth) return waits_ % kTrialOfYields == 0 ? How::keep : How::yield;
    if (waits_ % kTrial == 0) return How::keep;
    if (waits_ < next_yield_) return How::sleep;
    next_yield_ = waits_ + between_yields_;
    return How::yield;
  }
  // Whether what was looked for came in time, and no other thread wanted the processor for long.
  void result(How how, bool paid) {
    if (how == How::keep) {
      keeps_ += ((paid ? kBest : 0) - keeps_) / 8;
    } else if (paid) {
      yields_ += (kBest - yields_) / 8;
      between_yields_ = kTrial;
      next_yield_ = waits_;
    } else {
      // A thread that lets go of the processor may get it again much later.
      yields_ /= 2;
      between_yields_ = std::min(2 * between_yields_, kRarest);
    }
  }

 private:
  static constexpr int kBest = 1024;
  static constexpr int kWorth = 256;
  static constexpr unsigned kTrial = 32;           // of so many waits one tries again
  static constexpr unsigned kTrialOfYields = 128;  // where yielding pays
  static constexpr unsigned kRarest = 8192;

  int keeps_ = kBest / 2;
  int yields_ = 0;
  unsigned waits_ = 0;
  unsigned between_yields_ = kTrial;
  unsigned next_yield_ = kTrial + 1;
};

// Takes steps for `time` until one is true, and notes what that was worth.
template <class Step>
bool look_for(LookTime& look_time, LookTime::How how, std::chrono::microseconds time, Step step) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kInterrupted{200};
  auto now = Clock::now();
  for (const auto until = now + time; now < until;) {
    const bool came = step();
    const auto before = std::exchange(now, Clock::now());
    const bool interrupted = now - before > kInterrupted;
    if (came || interrupted) {
      look_time.result(how, came && !interrupted);
      return came;
    }
  }
  look_time.result(how, false);
  return false;
}

// Whether `ready` became true while it looked; `most` times as long as usual. The lock of the
// session is given up in between, so that other threads get on.
template <class Ready>
bool look(std::unique_lock<Session::Lock>& lock, Session& session, LookTime& look_time, Ready ready,
          unsigned most = 1) {
  session.poll();
  if (ready()) return true;
  const auto how = look_time.next();
  if (how == LookTime::How::sleep) return false;
  const auto looking = session.looking();
  return look_for(look_time, how, LookTime::kMost * most, [&] {
    lock.unlock();
    if (how == LookTime::How::yield) (void)::sched_yield();
    lock.lock();
    session.poll();
    return static_cast<bool>(ready());
  });
}

}  // namespace weft::sdp
