#include "engine/memory_handlers.h"

#include <algorithm>
#include <chrono>

#include "engine/engine.h"
#include "engine/runtime.h"
#include "engine/turn_length.h"

namespace weft::engine {
namespace {

// As long as sockets may wait, as for one that is busy (busy_socket.h).
constexpr Duration kPause = std::chrono::microseconds{50};

}  // namespace

void MemoryHandlers::add(Token& token, EventHandler& handler) {
  const auto end = handlers_.begin() + static_cast<ptrdiff_t>(count_);
  auto at = std::find(handlers_.begin(), end, &handler);
  if (at == end) {
    if (count_ == kMost) {
      if (!all_are_heard()) handlers_.back()->use_descriptor(token, true);
      --at;
    } else {
      ++count_;
    }
    *at = &handler;
    if (!all_are_heard()) handler.use_descriptor(token, false);
  }
  std::rotate(handlers_.begin(), at, at + 1);
}

void MemoryHandlers::remove(EventHandler& handler) {
  const auto end = handlers_.begin() + static_cast<ptrdiff_t>(count_);
  const auto kept = std::remove(handlers_.begin(), end, &handler);
  count_ = static_cast<size_t>(kept - handlers_.begin());
}

// From the end, for one that is asked may go. Where another one comes or goes meanwhile, one may be
// asked twice, or only the next time. Whoever waits for the engine waits for the end of this: when
// it has taken long the others have their turn the next time.
bool MemoryHandlers::ask(Token& token) {
  bool moved = false;
  for (size_t asked = 0; asked < count_; ++asked) {
    if (next_ == 0 || next_ > count_) next_ = count_;
    EventHandler& handler = *handlers_[--next_];
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
  for (size_t i = 0; i < count_; ++i) handlers_[i]->use_descriptor(token, on);
}

void MemoryHandlers::hear_all(Token& token) {
  polls_ = 0;
  if (all_are_heard()) return;
  heard_.store(true, std::memory_order_relaxed);
  use_descriptors(token, true);
}

}  // namespace weft::engine
