#include "engine/deadlines.h"

#include <new>

namespace weft::engine {

void Deadlines::place(size_t slot, EventHandler* s) {
  heap_[slot] = s;
  s->deadline_slot_ = slot;
}

void Deadlines::up(size_t slot) {
  EventHandler* s = heap_[slot];
  while (slot > 0) {
    const size_t parent = (slot - 1) / 2;
    if (heap_[parent]->deadline_ <= s->deadline_) break;
    place(slot, heap_[parent]);
    slot = parent;
  }
  place(slot, s);
}

void Deadlines::down(size_t slot) {
  EventHandler* s = heap_[slot];
  for (;;) {
    size_t child = 2 * slot + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1]->deadline_ < heap_[child]->deadline_) ++child;
    if (s->deadline_ <= heap_[child]->deadline_) break;
    place(slot, heap_[child]);
    slot = child;
  }
  place(slot, s);
}

// While there is room for as many again, so that a deadline finds its place also when there is no
// memory for a while.
void Deadlines::grow_early() try {
  if (2 * heap_.size() > heap_.capacity()) heap_.reserve(2 * heap_.capacity());
} catch (const std::bad_alloc&) {
  return;  // there is room yet
}

void Deadlines::set(EventHandler& s, Time when) {
  if (when == s.deadline_) return;
  // First what may find no memory.
  if (s.deadline_slot_ == EventHandler::kNoSlot) {
    heap_.push_back(&s);
    s.deadline_slot_ = heap_.size() - 1;
    grow_early();
  }
  s.deadline_ = when;
  if (when.is_never()) {
    const size_t slot = s.deadline_slot_;
    s.deadline_slot_ = EventHandler::kNoSlot;
    EventHandler* last = heap_.back();
    heap_.pop_back();
    if (last == &s) return;
    place(slot, last);
    up(slot);
    down(last->deadline_slot_);
    return;
  }
  up(s.deadline_slot_);
  down(s.deadline_slot_);
}

EventHandler* Deadlines::expire(Time now) {
  if (heap_.empty() || heap_.front()->deadline_ > now) return nullptr;
  EventHandler* s = heap_.front();
  set(*s, Time::never());
  return s;
}

}  // namespace weft::engine
