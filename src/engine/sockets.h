// The sockets of an engine, and the look at them in each turn.
#pragma once

#include "engine/busy_socket.h"
#include "engine/memory_handlers.h"
#include "engine/socket_set.h"

namespace weft::engine {

// Engine holder only, but for all_are_heard() and the descriptor of the set.
class Sockets {
 public:
  // `set`: a descriptor of epoll_create1(2).
  Sockets(port::Fd set, stats::EngineCounters& counters) : set_(std::move(set), counters) {}

  SocketSet& set() { return set_; }
  const SocketSet& set() const { return set_; }
  MemoryHandlers& memory() { return memory_; }

  // Visits the handlers whose sockets are ready: the busy one alone, or all. True when something
  // moved.
  bool poll(Token& token);
  // From now on the next look asks every handler.
  void poll_all() {
    busy_.clear();
    set_.put_back();
    memory_.ask_sockets_next();
  }
  // The same, and whoever sleeps on the set hears every one.
  void hear_all(Token& token) {
    poll_all();
    memory_.hear_all(token);
  }
  bool all_are_heard(std::memory_order order) const {
    return set_.outside(order) == nullptr && memory_.all_are_heard(order);
  }
  // Once more in this turn, after the others.
  void again(EventHandler& handler) {
    ready_.push_back(handler);
    poll_all();
  }
  // Nothing is watched for the handler any more.
  void forget(EventHandler& handler);
  // The handler that has been busy for so long that its socket may leave the set; else nullptr.
  EventHandler* should_leave_set() const {
    return busy_.should_leave_set() ? busy_.handler() : nullptr;
  }

 private:
  static constexpr int kMost = 64;  // in one look

  bool poll_busy(Token& token, bool& others);
  void visit_ready(Token& token, std::span<const epoll_event> events);

  SocketSet set_;
  MemoryHandlers memory_;
  BusySocket busy_;
  IntrusiveList<EventHandler, ReadyTag> ready_;
  int most_ = kMost;  // that the next look asks for
};

}  // namespace weft::engine
