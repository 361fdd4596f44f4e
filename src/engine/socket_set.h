// The epoll set of an engine: which sockets are watched for its handlers, and for what.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <span>

#include "engine/event_handler.h"
#include "port/fd.h"
#include "stats/blocks.h"

namespace weft::engine {

// Engine holder only, but for outside() and fd().
class SocketSet {
 public:
  // `set`: a descriptor of epoll_create1(2).
  SocketSet(port::Fd set, stats::EngineCounters& counters)
      : set_(std::move(set)), counters_(counters) {}

  // Watches `fd` for the handler, and no longer what was watched for it; -1: nothing. Throws
  // std::bad_alloc where the kernel has no room for it, and nothing is watched then.
  void watch(EventHandler& handler, int fd, bool read, bool write);
  void update(EventHandler& handler, bool read, bool write);
  // What is ready now: the first `events.size()` - 1 sockets, and the one that is left out. epoll
  // goes round, so that the others are told of next.
  int poll(std::span<epoll_event> events);
  static EventHandler& handler_of(const epoll_event& event) {
    return *static_cast<EventHandler*>(event.data.ptr);
  }
  static bool watched(const EventHandler& handler) { return handler.fd_ >= 0; }
  static bool wants_write(const EventHandler& handler) { return handler.wants_write_; }

  // A socket in the set has the kernel call back for every packet: time that a program which polls
  // the socket itself has no use for. One may be outside of it meanwhile. False where it has to
  // stay, which `may_leave` says once outside() shows it; any thread that looks at outside() after
  // that knows.
  template <class MayLeave>
  bool take_out(EventHandler& handler, MayLeave&& may_leave) {
    if (outside() != nullptr || refused_ || handler.wants_write_ || !handler.wants_read_) {
      return false;
    }
    counters_.epoll_ctl_calls.add();
    outside_.store(&handler, std::memory_order_seq_cst);
    if (may_leave() && ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, handler.fd_, nullptr) == 0) {
      return true;
    }
    outside_.store(nullptr, std::memory_order_relaxed);
    return false;
  }
  // One that is readable by then is told of at once. Where the kernel has no room for it in the set
  // it is left out: poll() asks it by itself, until a later call finds room.
  void put_back();
  EventHandler* outside(std::memory_order order = std::memory_order_relaxed) const {
    return outside_.load(order);
  }

  // To sleep on. Any thread.
  int fd() const { return set_.get(); }
  void close() { set_.reset(); }

 private:
  static uint32_t interest(const EventHandler& handler);
  bool control(int operation, EventHandler& handler);

  port::Fd set_;
  stats::EngineCounters& counters_;
  std::atomic<EventHandler*> outside_{nullptr};
  // One that came back found no room. None leaves any more, and the one outside is left out.
  bool refused_ = false;
};

}  // namespace weft::engine
