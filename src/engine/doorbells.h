// Work that threads leave for the engine's holder: a lock-free stack of handlers, each in it
// at most once.
#pragma once

#include <atomic>

#include "engine/event_handler.h"

namespace weft::engine {

class Doorbells {
 public:
  // Any thread.
  void ring(EventHandler& s) {
    if (s.rung_.exchange(true, std::memory_order_seq_cst)) return;
    EventHandler* head = head_.load(std::memory_order_relaxed);
    do {
      s.next_rung_ = head;
    } while (!head_.compare_exchange_weak(head, &s, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));
  }
  bool any() const { return head_.load(std::memory_order_seq_cst) != nullptr; }
  // Holder: calls f(handler) for each that rang, oldest last. A handler may ring again meanwhile.
  template <class F>
  void drain(F&& f) {
    if (!any()) return;
    EventHandler* s = head_.exchange(nullptr, std::memory_order_acq_rel);
    while (s != nullptr) {
      EventHandler* following = s->next_rung_;
      s->next_rung_ = nullptr;
      // An exchange, so that what f() reads of the handler is not older: a ringer that still saw
      // the bell rung has published its work before.
      s->rung_.exchange(false, std::memory_order_seq_cst);
      f(*s);
      s = following;
    }
  }

 private:
  std::atomic<EventHandler*> head_{nullptr};
};

}  // namespace weft::engine
