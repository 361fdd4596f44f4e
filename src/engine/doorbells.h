// Work that threads leave for the engine's holder: a lock-free stack of handlers, each in it
// at most once.
#pragma once

#include <atomic>
#include <utility>

#include "engine/event_handler.h"

namespace weft::engine {

class Doorbells {
 public:
  // Any thread.
  void ring(EventHandler& s) {
    if (!s.rung_.exchange(true, std::memory_order_seq_cst)) push(s);
  }
  bool any() const { return head_.load(std::memory_order_seq_cst) != nullptr; }
  // Holder: calls f(handler) for each that rang, oldest last. A handler may ring again meanwhile,
  // and f() may forget others.
  template <class F>
  void drain(F&& f) {
    if (taken_ == nullptr && any()) taken_ = head_.exchange(nullptr, std::memory_order_acq_rel);
    while (taken_ != nullptr) {
      EventHandler& s = *taken_;
      taken_ = std::exchange(s.next_rung_, nullptr);
      // An exchange, so that what f() reads of the handler is not older: a ringer that still saw
      // the bell rung has published its work before.
      s.rung_.exchange(false, std::memory_order_seq_cst);
      f(s);
    }
  }
  // Holder: f() of a drain, also of one under way, is not called for this handler any more. Nobody
  // rings it meanwhile.
  void forget(EventHandler& handler) {
    if (!handler.rung_.load(std::memory_order_relaxed)) return;
    taken_ = without(handler, taken_);
    EventHandler* s = without(handler, head_.exchange(nullptr, std::memory_order_acq_rel));
    while (s != nullptr) push(*std::exchange(s, s->next_rung_));
    handler.rung_.store(false, std::memory_order_relaxed);
  }

 private:
  void push(EventHandler& s) {
    EventHandler* head = head_.load(std::memory_order_relaxed);
    do {
      s.next_rung_ = head;
    } while (!head_.compare_exchange_weak(head, &s, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
  }
  // The rest of a chain.
  static EventHandler* without(EventHandler& handler, EventHandler* chain) {
    for (EventHandler** at = &chain; *at != nullptr; at = &(*at)->next_rung_) {
      if (*at != &handler) continue;
      *at = std::exchange(handler.next_rung_, nullptr);
      break;
    }
    return chain;
  }

  std::atomic<EventHandler*> head_{nullptr};
  EventHandler* taken_ = nullptr;  // by the drain that is under way
};

}  // namespace weft::engine
