// The threads of a program that wait for one socket: one of them takes the events of its
// descriptor, and tells the others.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "abi/rsockets/deadline.h"
#include "abi/rsockets/link.h"
#include "abi/rsockets/sleeper.h"

namespace weft::rsockets {

class Waiting {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Any thread. What follows needs it, and so does all use of the link.
  Lock lock() { return Lock{lock_}; }

  // Until something of `link` may have changed. 0, or an errno value: EINTR for a signal whose
  // handler ends calls (no SA_RESTART), ETIMEDOUT. Gives the lock away meanwhile.
  int wait(Lock& lock, Link& link, const Deadline& until = {});
  // Something has changed: all look again.
  void announce();

  // A thread that waits for other descriptors, too.
  void add(const Sleeper& sleeper) { sleepers_.push_back(&sleeper); }
  void remove(const Sleeper& sleeper);
  // Whether a thread is in wait(): events are that thread's.
  bool is_watched() const { return watched_; }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool watched_ = false;
  std::vector<const Sleeper*> sleepers_;
};

}  // namespace weft::rsockets
