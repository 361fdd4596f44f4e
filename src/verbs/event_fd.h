// A queue of events behind a descriptor that programs may poll(2), make non-blocking and read
// through weft's calls: completion channels, asynchronous events, connection events. One readable
// unit for each event in the queue.
#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "port/fd.h"

namespace weft::verbs {

// The descriptor: an eventfd that counts down by one for each read.
class EventFd {
 public:
  // valid() is false when the process has no descriptor left.
  EventFd();
  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  void signal() const;
  // Takes one unit back; there must be one.
  void take() const;
  // Did the program make the descriptor non-blocking?
  bool nonblocking() const;
  void close() { fd_.reset(); }

 private:
  port::Fd fd_;
};

template <class Event>
class EventQueue {
 public:
  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.fd(); }
  bool nonblocking() const { return fd_.nonblocking(); }

  // Under the lock there are always as many units as events, so nobody ever blocks in take().
  void push(Event e) {
    const std::lock_guard guard{lock_};
    events_.push_back(std::move(e));
    fd_.signal();
  }
  bool empty() const {
    const std::lock_guard guard{lock_};
    return events_.empty();
  }
  // The oldest event, if there is one. `taken` hears of it before any remove_if() can come in
  // between.
  template <class Taken>
  std::optional<Event> try_pop(Taken&& taken) {
    const std::lock_guard guard{lock_};
    if (events_.empty()) return {};
    fd_.take();
    Event e = std::move(events_.front());
    events_.pop_front();
    taken(e);
    return e;
  }
  std::optional<Event> try_pop() {
    return try_pop([](const Event&) {});
  }
  // Drops every event for which `match` says so.
  template <class Match>
  void remove_if(Match&& match) {
    const std::lock_guard guard{lock_};
    for (size_t dropped = std::erase_if(events_, match); dropped > 0; --dropped) fd_.take();
  }
  void close() { fd_.close(); }

 private:
  EventFd fd_;
  mutable std::mutex lock_;
  std::deque<Event> events_;
};

}  // namespace weft::verbs
