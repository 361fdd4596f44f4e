// Output that waits a moment for company: what a program posts in small pieces, and what can be
// said later.
#include <thread>

#include "engine/engine.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;
constexpr Duration kDeferMost = 50us;    // spec/rdmap 4.3
constexpr Duration kDeferIdle = 45us;    // less, as soon as nothing else comes in
constexpr Duration kPollsWithin = 50us;  // between two polls of a program that polls
constexpr uint64_t kPollsOn = 16;        // by a thread that could sleep instead: it polls on

constexpr Duration kExitPause = 50us;  // before the next look at an engine that is held
// Whoever has the engine when the process exits may never let it go: this very thread may have been
// taken out of its own turn, by the handler of a signal that calls exit(3).
constexpr Duration kExitPatience = 100ms;
constexpr Duration kExitMost = 2s;  // with what goes out in those turns and is awaited once more

}  // namespace

void Engine::may_sleep() {
  may_sleep_since_.store(counters().polls.value(), std::memory_order_relaxed);
  may_sleep_.store(this_thread(), std::memory_order_relaxed);
}

// Some arm a queue once and poll on, or have another thread that does nothing but arm it and sleep:
// UCX does both.
bool Engine::is_about_to_sleep() const {
  if (expected_sleepers_.load(std::memory_order_relaxed) == 0) return false;
  if (poller_ != this_thread()) return true;
  return may_sleep_.load(std::memory_order_relaxed) == this_thread() &&
         counter_block_.counters.polls.value() - may_sleep_since_.load(std::memory_order_relaxed) <
             kPollsOn;
}

bool Engine::gather(Token& token, EventHandler& handler) {
  if (is_about_to_sleep() || sleepers_.load(std::memory_order_relaxed) > 0) return false;
  if (token.now() - gathers_since_ > kPollsWithin) {
    // In the middle of a burst: what has gathered goes out now, and what follows gathers again.
    if (handler.ListHook<GatheringTag>::linked()) gathers_since_ = token.now();
    handler.ListHook<GatheringTag>::unlink();
    return false;
  }
  gathering_.push_back(handler);
  return true;
}

void Engine::flush_gathered(Token& token) {
  while (EventHandler* s = gathering_.pop_front()) {
    visit(token, *s, [&] { s->on_gathered(token); });
  }
}

void Engine::defer(Token& token, EventHandler& handler) {
  if (deferred_.empty()) deferred_until_ = token.now() + kDeferMost;
  deferred_.push_back(handler);
}

// Something is put off. `moved`: in this turn something came in.
bool Engine::defer_is_over(Token& token, bool moved) const {
  return token.now() >= (moved ? deferred_until_ : deferred_until_ - kDeferIdle);
}

void Engine::flush_deferred(Token& token) {
  while (EventHandler* s = deferred_.pop_front()) {
    visit(token, *s, [&] { s->on_idle(token); });
  }
  deferred_until_ = Time::never();
}

void Engine::flush_at_exit() {
  const Time last = clock() + kExitMost;
  Time give_up = clock() + kExitPatience;
  for (;;) {
    auto h = try_hold();
    if (!h) {
      if (clock() > give_up) return;
      std::this_thread::sleep_for(kExitPause);
      continue;
    }
    turn(h->token());
    flush_deferred(h->token());
    const Duration left = exit_not_before_ - h->token().now();
    h.reset();
    if (left <= Duration{} || clock() > last) return;
    // The helper does what is due meanwhile, if it is let in; the next turn does what it could not.
    std::this_thread::sleep_for(left);
    give_up = clock() + kExitPatience;
  }
}

}  // namespace weft::engine
