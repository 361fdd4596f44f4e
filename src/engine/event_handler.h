// What a runtime looks after: a connection, a listener, a start-up. The holder of the engine makes
// all calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/time.h"

namespace weft::engine {

class Runtime;

// Proof that the caller holds the engine. Made by a runtime alone; functions that only the holder
// may call take one.
class Token {
 public:
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  Runtime& runtime() const { return runtime_; }
  // The time of this turn: the clock is read at the first call.
  Time now() const {
    if (now_ == Time{}) now_ = clock();
    return now_;
  }

 private:
  friend class Hold;
  friend class Runtime;
  explicit Token(Runtime& runtime, Time now = {}) : runtime_(runtime), now_(now) {}
  static Time clock();

  Runtime& runtime_;
  mutable Time now_;
};

class EventHandler : public ListHook<struct ReadyTag>,
                     public ListHook<struct HandlersTag>,
                     public ListHook<struct DeferredTag>,
                     public ListHook<struct GatheringTag> {
 public:
  EventHandler() = default;
  EventHandler(const EventHandler&) = delete;
  EventHandler& operator=(const EventHandler&) = delete;
  virtual ~EventHandler() = default;

  // The descriptor is readable, writable or broken.
  virtual void on_ready(Token& token, bool readable, bool writable) = 0;
  // Looks for bytes without having been told that there are any; true when there were. Cheaper than
  // asking epoll first, when one connection alone is busy (design/15).
  virtual bool try_receive(Token&) { return false; }
  // Does try_receive() look at all?
  virtual bool tries_receive() const { return false; }
  // Of a handler for which Runtime::ask_memory() was called. `on`: its descriptor has to become
  // ready for all that it waits for. Else it is asked by try_receive(), and the descriptor need
  // not.
  virtual void use_descriptor(Token&, bool /*on*/) {}
  // The descriptor is broken or closed on both sides; on_ready() follows.
  virtual void on_broken(Token&) {}
  // The deadline that was set with Runtime::set_deadline() has passed; it is cleared.
  virtual void on_deadline(Token& token) = 0;
  // Another thread rang: there is work for this handler (design/15).
  virtual void on_doorbell(Token& token) = 0;
  // What was gathered since Runtime::gather() is to go out.
  virtual void on_gathered(Token&) {}
  // The holder is about to sleep or to leave the engine alone for long: send what was deferred.
  virtual void on_idle(Token&) {}
  // A region is about to be deregistered: refer to no user memory after this.
  virtual void on_memory_retired(Token&) {}
  // One of the above found no memory and was left in the middle: end what this handler is for, with
  // as little memory as can be.
  virtual void on_no_memory(Token&) {}
  // After fork(2), in the child: close the descriptors, send nothing.
  virtual void abandon_in_child() = 0;

 private:
  friend class Deadlines;
  friend class Doorbells;
  friend class MemoryHandlers;
  friend class Runtime;
  friend class SocketSet;
  static constexpr size_t kNoSlot = SIZE_MAX;
  size_t deadline_slot_ = kNoSlot;
  size_t memory_slot_ = kNoSlot;
  Time deadline_ = Time::never();
  std::atomic<bool> rung_{false};
  EventHandler* next_rung_ = nullptr;
  int fd_ = -1;
  bool wants_write_ = false;
  bool wants_read_ = false;
};

}  // namespace weft::engine
