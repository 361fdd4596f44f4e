// The sockets of an engine, and the look at them in each turn.
#pragma once

#include "engine/busy_socket.h"
#include "engine/socket_set.h"

namespace weft::engine {

// Engine holder only.
class Sockets {
 public:
  // `set`: a descriptor of epoll_create1(2).
  Sockets(port::Fd set, stats::EngineCounters& counters) : set_(std::move(set), counters) {}

  SocketSet& set() { return set_; }
  const SocketSet& set() const { return set_; }

  // Visits the handlers whose sockets are ready: the busy one alone, or all. True when something
  // moved.
  bool poll(Token& token);
  // From now on the next look asks every handler.
  void poll_all() {
    busy_.clear();
    set_.put_back();
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
  BusySocket busy_;
  IntrusiveList<EventHandler, ReadyTag> ready_;
  int most_ = kMost;  // that the next look asks for
};

}  // namespace weft::engine
