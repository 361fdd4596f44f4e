// Output that waits a moment for company: what a program posts in small pieces, and what can be
// said later.
#include "engine/engine.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;
constexpr Duration kDeferMost = 50us;    // wire.md 4.10
constexpr Duration kDeferIdle = 45us;    // less, as soon as nothing else comes in
constexpr Duration kPollsWithin = 50us;  // between two polls of a program that polls

}  // namespace

bool Engine::gather(Token& token, Source& source) {
  if (token.now() - last_poll_ > kPollsWithin ||
      expected_sleepers_.load(std::memory_order_relaxed) > 0 ||
      sleepers_.load(std::memory_order_relaxed) > 0) {
    return false;
  }
  gathering_.push_back(source);
  return true;
}

void Engine::flush_gathered(Token& token) {
  while (Source* s = gathering_.pop_front()) {
    visit(token, *s, [&] { s->on_gathered(token); });
  }
}

void Engine::defer(Token& token, Source& source) {
  if (deferred_.empty()) deferred_until_ = token.now() + kDeferMost;
  deferred_.push_back(source);
}

// Something is put off. `moved`: in this turn something came in.
bool Engine::defer_is_over(Token& token, bool moved) const {
  return token.now() >= (moved ? deferred_until_ : deferred_until_ - kDeferIdle);
}

void Engine::flush_deferred(Token& token) {
  while (Source* s = deferred_.pop_front()) {
    visit(token, *s, [&] { s->on_idle(token); });
  }
  deferred_until_ = Time::never();
}

}  // namespace weft::engine
