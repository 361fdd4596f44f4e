// Who hears the sockets of an engine: what its helper thread sleeps on, and when that thread takes
// over from a program that polls (docs/design/02).
//
// At any time when a socket may turn readable, at least one of these is true, so that it is heard:
//   (a) a program thread sleeps on the engine's epoll set (Sleepers::wait()),
//   (b) the helper is armed on it,
//   (c) the timer runs: the program polls, and the helper looks after it when it stops; it is deaf
//       then, so that packets do not wake it,
//   (d) the helper rests, for some microseconds, and arms itself then,
//   (e) the helper holds the engine, and looks.
// Only under (c) and (e) may a busy socket be out of the epoll set, and handlers of memory be only
// asked. For one that the kernel does not take back the timer runs as well (SocketSet::put_back()).
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <span>

#include "base/result.h"
#include "engine/event_handler.h"
#include "engine/helper_policy.h"
#include "engine/wake_up_time.h"
#include "port/fd.h"
#include "port/system_error.h"
#include "stats/blocks.h"

namespace weft::engine {

class Sockets;

class Watch {
 public:
  // What the helper sleeps on.
  struct Fds {
    port::Fd set;  // epoll: the sockets' set, the timer, wake
    port::Fd timer;
    port::Fd wake;
  };
  // `sockets`: a descriptor of epoll_create1(2).
  static Result<Fds, port::SystemError> make_fds(int sockets);
  Watch(Fds fds, const Sockets& sockets, stats::EngineCounters& counters);

  // --- by threads of the program; engine holder
  // The program has a turn: should it not come back, the helper notices. At most one system call
  // per patience, and none while the helper hears the sockets.
  void program_turn(Time now, Duration patience);
  // It polls. `close`: as closely as can be, for a thread may be about to sleep. `unsolicited` as
  // Runtime counts it, `deadline`: the earliest of all handlers.
  void program_polls(Time now, bool close, uint64_t unsolicited, Time deadline);
  // Its handlers are next due at `deadline`. A program that polls for long sees to them itself, and
  // would be disturbed by a timer that rings for each: the helper comes when it has stopped.
  void due_at(Time deadline, bool sleep_expected) {
    wake_up_.no_later_than(sleep_expected ? deadline : later_for_poller(deadline, last_turn()));
  }
  // It posts, and does not look at its sockets by that. The clock is asked only where the program's
  // last turn leaves it open whether the helper wakes up in time.
  void program_posts(Token& token) {
    if (!hears()) no_later_than(token, patience_);
  }
  // The helper wakes up when the patience that began with the program's last turn is over, or from
  // now on: no socket tells of output that waits.
  void no_later_than(Token& token, Duration patience);

  // --- any thread
  void wake_up_no_later_than(Time when) { wake_up_.no_later_than(when); }
  // From now on the helper is told of the sockets.
  void hear();
  // Is it? Then nobody needs the timer in order to be heard.
  bool hears() const;
  // Wakes the helper at once.
  void wake();
  // Are the descriptors its own? Programs close those that they have not opened, as daemons do
  // (closefrom(3)), and the numbers may be other files by now.
  bool intact() const;
  void close();

  // --- the helper alone
  // Sleeps; a cancellation point. The number of `events`, or -1 and errno: anything but EINTR means
  // that the set is gone, because the program has closed it.
  int sleep(std::span<epoll_event> events) const;
  // What has woken it up. True: the timer.
  bool woken_by(std::span<const epoll_event> events, Time now);
  bool deaf() const { return deaf_.load(std::memory_order_seq_cst); }

  // When a thread of the program last had a turn.
  Time last_turn(std::memory_order order = std::memory_order_relaxed) const {
    return Time::from_ns(program_turn_.load(order));
  }
  // How long a program that has polled as it did last may stay away. Engine holder.
  Duration patience() const { return patience_; }
  void use_policy() { patience_ = policy_.patience(); }
  HelperPolicy& policy() { return policy_; }

 private:
  Time later_for_poller(Time deadline, Time polled) const {
    return policy_.at_most() ? std::max(deadline, polled + policy_.patience()) : deadline;
  }
  struct Timer {
    void operator()(Time when) const;
    Watch& watch;
  };
  Fds fds_;
  const Sockets& sockets_;
  stats::EngineCounters& counters_;
  std::atomic<int64_t> program_turn_{0};  // ns
  WakeUpTime<Timer> wake_up_{Timer{*this}};
  std::atomic<bool> deaf_{false};  // the helper was told of the sockets, and is not told again yet
  HelperPolicy policy_;
  SteadyPolicy steady_policy_;  // holder's
  Duration patience_;           // holder's
};

}  // namespace weft::engine
