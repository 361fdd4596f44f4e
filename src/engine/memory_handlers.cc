#include "engine/memory_handlers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/engine.h"
#include "engine/runtime.h"
#include "engine/turn_length.h"

namespace weft::engine {
namespace {

// As long as sockets may wait, as for one that is busy (busy_socket.h).
constexpr Duration kPause = std::chrono::microseconds{50};

}  // namespace

void MemoryHandlers::put(size_t slot, const Asked& asked) {
  asked_[slot] = asked;
  asked.handler->memory_slot_ = slot;
}

size_t MemoryHandlers::most_silent() const {
  const auto end = asked_.begin() + static_cast<ptrdiff_t>(count_);
  const auto heard_before = [](const Asked& a, const Asked& b) { return a.heard_at < b.heard_at; };
  return static_cast<size_t>(std::min_element(asked_.begin(), end, heard_before) - asked_.begin());
}

void MemoryHandlers::add(Token& token, EventHandler& handler) {
  size_t slot = handler.memory_slot_;
  if (slot == EventHandler::kNoSlot) {
    slot = count_ == kMost ? most_silent() : count_++;
    if (EventHandler* const before = asked_[slot].handler) {
      before->memory_slot_ = EventHandler::kNoSlot;
      if (!all_are_heard()) before->use_descriptor(token, true);
    }
    put(slot, {.handler = &handler});
    if (!all_are_heard()) handler.use_descriptor(token, false);
  }
  asked_[slot].heard_at = ++times_heard_;
}

void MemoryHandlers::remove(EventHandler& handler) {
  const size_t slot = std::exchange(handler.memory_slot_, EventHandler::kNoSlot);
  if (slot == EventHandler::kNoSlot) return;
  if (slot != --count_) put(slot, asked_[count_]);
  asked_[count_] = {};
}

// Where one goes meanwhile, another one may be asked only the next time. Whoever waits for the
// engine waits for the end of this: when it has taken long the others have their turn the next
// time.
bool MemoryHandlers::ask(Token& token) {
  bool moved = false;
  for (size_t looked = 0; looked < count_; ++looked) {
    if (next_ >= count_) next_ = 0;
    const Asked& asked = asked_[next_++];
    if (!asked.word.has_changed()) continue;
    EventHandler& handler = *asked.handler;
    bool its = false;
    token.runtime().visit(token, handler, [&] { its = handler.try_receive(token); });
    moved |= its;
    if (its && count_ > 1 && Engine::clock() - token.now() > kTurnMost) break;
  }
  return moved;
}

bool MemoryHandlers::sockets_can_wait(Time now) {
  if (all_are_heard()) return false;
  if (++waiting_ < kPolls && now - sockets_asked_at_ < kPause) return true;
  waiting_ = 0;
  sockets_asked_at_ = now;
  return false;
}

void MemoryHandlers::use_descriptors(Token& token, bool on) {
  for (size_t i = 0; i < count_; ++i) asked_[i].handler->use_descriptor(token, on);
}

void MemoryHandlers::hear_all(Token& token) {
  polls_ = 0;
  if (all_are_heard()) return;
  heard_.store(true, std::memory_order_relaxed);
  use_descriptors(token, true);
}

}  // namespace weft::engine
