// A queue of events behind a descriptor that programs may poll(2), make non-blocking and read
// through weft's calls: completion channels, asynchronous events, connection events. One readable
// unit for each event in the queue.
//
// The unit comes when the lock is free again: the thread that it wakes may have the processor at
// once, and would wait for the lock. Who takes the event takes a unit, too, and if need be waits
// for it, so that nobody who has seen an event goes before push() is through with the queue.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "port/fd.h"

namespace weft::verbs {

// A pipe that has a word for each unit. Programs see the end that is read: never ready for writing,
// as an adapter's descriptor is not, and no epoll set, which EPOLLEXCLUSIVE refuses. An eventfd is
// ready for writing always, and a program that waits for both directions would find no rest.
class EventFd {
 public:
  // valid() is false when the process has no descriptors left; errno says so.
  EventFd();
  bool valid() const { return shown_.valid(); }
  // The end that the program sees.
  int fd() const { return shown_.get(); }
  // Neither of these is a cancellation point (pthreads(7)).
  void signal() const;
  // Takes one unit back. It is there, or somebody is about to signal(): then this waits for it.
  // (A program that reads it by itself, which libibverbs does not allow, waits for ever.)
  void take() const;
  // Did the program make the descriptor non-blocking?
  bool nonblocking() const;
  void close();

 private:
  port::Fd shown_;
  // Both ends in one. It also reads, for the program may close its end, and a word to a pipe that
  // nobody reads ends the process (SIGPIPE).
  port::Fd both_;
  port::Fd write_;  // where /proc is missing: then `both_` only reads
  // Units that the pipe has no room for. While there are any it is full, and so readable.
  mutable std::atomic<uint64_t> owed_{0};
};

template <class Event>
class EventQueue {
 public:
  EventQueue() { events_.reserve(kFirst); }
  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.fd(); }
  bool nonblocking() const { return fd_.nonblocking(); }

  void push(Event e) {
    {
      const std::lock_guard guard{lock_};
      if (over_) return;
      add(std::move(e));
    }
    fd_.signal();
  }
  // False, and nothing: there is one like it that nobody has taken, or nobody will take any.
  bool push_once(Event e) {
    {
      const std::lock_guard guard{lock_};
      const auto waiting = events_.begin() + static_cast<ptrdiff_t>(first_);
      if (over_ || std::find(waiting, events_.end(), e) != events_.end()) return false;
      add(std::move(e));
    }
    fd_.signal();
    return true;
  }
  bool empty() const {
    const std::lock_guard guard{lock_};
    return first_ == events_.size();
  }
  // The program destroys what the queue belongs to. What is in it is gone, nothing more comes in,
  // and the descriptor stays readable: threads that sleep on it come back and find it over(). They
  // share the queue, which lives until the last of them has left. Not for events that own
  // something.
  void end() {
    {
      const std::lock_guard guard{lock_};
      events_.clear();
      first_ = 0;
      over_ = true;
    }
    fd_.signal();
  }
  bool over() const {
    const std::lock_guard guard{lock_};
    return over_;
  }
  // The oldest event, if there is one. `taken` hears of it before any remove_if() can come in
  // between.
  template <class Taken>
  std::optional<Event> try_pop(Taken&& taken) {
    std::optional<Event> e;
    {
      const std::lock_guard guard{lock_};
      if (first_ == events_.size()) return e;
      e = std::move(events_[first_++]);
      if (first_ == events_.size()) drop_taken();
      taken(*e);
    }
    fd_.take();
    return e;
  }
  std::optional<Event> try_pop() {
    return try_pop([](const Event&) {});
  }
  // Drops every event for which `match` says so.
  template <class Match>
  void remove_if(Match&& match) {
    size_t dropped = 0;
    {
      const std::lock_guard guard{lock_};
      drop_taken();
      dropped = std::erase_if(events_, match);
    }
    for (; dropped > 0; --dropped) fd_.take();
  }
  void close() { fd_.close(); }

 private:
  static constexpr size_t kFirst = 16;

  void add(Event e) {
    if (events_.size() == events_.capacity()) drop_taken();
    events_.push_back(std::move(e));
    grow_early();
  }
  void drop_taken() {
    events_.erase(events_.begin(), events_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  // While there is room for as many again, so that an event finds its place also when there is no
  // memory for a while.
  void grow_early() try {
    if (2 * events_.size() > events_.capacity()) events_.reserve(2 * events_.capacity());
  } catch (const std::bad_alloc&) {
    return;  // there is room yet
  }

  EventFd fd_;
  mutable std::mutex lock_;
  std::vector<Event> events_;
  size_t first_ = 0;  // those before it are taken
  bool over_ = false;
};

}  // namespace weft::verbs
