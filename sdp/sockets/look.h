// Waiting for what comes soon, without the kernel: cheap where the other side runs on another
// processor, dear where it waits for this one. What the last waits were worth decides for how long.
#pragma once

#include <chrono>
#include <mutex>
#include <utility>

#include "sdp/rdma/session.h"

namespace weft::sdp {

class LookTime {
 public:
  // Enough for an answer that the other side gives when it has been woken.
  static constexpr std::chrono::microseconds kMost{100};

  // How long to look now; 0: sleep at once.
  std::chrono::microseconds next() {
    if (score_ >= kWorth || ++skipped_ % kTrial == 0) return kMost;
    return std::chrono::microseconds{0};
  }
  // Whether what was looked for came in time, and no other thread wanted the processor.
  void result(bool paid) { score_ += ((paid ? kBest : 0) - score_) / 8; }

 private:
  static constexpr int kBest = 1024;
  static constexpr int kWorth = 256;
  static constexpr unsigned kTrial = 32;  // of so many waits one tries again

  int score_ = kBest / 2;
  unsigned skipped_ = 0;
};

// Takes steps for `time` until one is true, and notes what that was worth.
template <class Step>
bool look_for(LookTime& look_time, std::chrono::microseconds time, Step step) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kInterrupted{200};
  auto now = Clock::now();
  for (const auto until = now + time; now < until;) {
    const bool came = step();
    const auto before = std::exchange(now, Clock::now());
    const bool interrupted = now - before > kInterrupted;
    if (came || interrupted) {
      look_time.result(came && !interrupted);
      return came;
    }
  }
  look_time.result(false);
  return false;
}

// Whether `ready` became true while it looked; `most` times as long as usual. The lock of the
// session is given up in between, so that other threads get on.
template <class Ready>
bool look(std::unique_lock<Session::Lock>& lock, Session& session, LookTime& look_time, Ready ready,
          unsigned most = 1) {
  session.poll();
  if (ready()) return true;
  const auto time = look_time.next() * most;
  if (time.count() == 0) return false;
  const auto looking = session.looking();
  return look_for(look_time, time, [&] {
    lock.unlock();
    lock.lock();
    session.poll();
    return static_cast<bool>(ready());
  });
}

}  // namespace weft::sdp
