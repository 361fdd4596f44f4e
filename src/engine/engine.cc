#include "engine/engine.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/monotonic_clock.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;
constexpr unsigned kYieldAfter = 2000;  // turns refused, about 100 us
constexpr int kDeadlinesPerTurn = 64;

constexpr Duration kExitPause = 50us;  // before the next look at an engine that is held
// The engine's holder at exit may never let it go: this very thread may have been
// taken out of its own turn, by the handler of a signal that calls exit(3).
constexpr Duration kExitPatience = 100ms;
constexpr Duration kExitMost = 2s;  // with what goes out in those turns and is awaited once more

}  // namespace

Time Engine::clock() {
  return monotonic_now();
}

Time Token::clock() {
  return Engine::clock();
}

void Engine::renew(Token& token) {
  set_now(token, clock());
}

// --- making and ending

Result<std::unique_ptr<Engine>, port::SystemError> Engine::create(unsigned number,
                                                                  stats::EngineBlock* block) {
  port::Fd sockets = port::raise(port::Fd{::epoll_create1(EPOLL_CLOEXEC)});
  if (!sockets.valid()) return fail(port::SystemError{errno, "epoll_create1"});
  auto fds = Watch::make_fds(sockets.get());
  if (!fds.ok()) return fail(fds.error());
  std::unique_ptr<Engine> engine{new Engine(number, std::move(sockets), std::move(*fds), block)};
  if (const int error = engine->helper_.start(); error != 0) {
    return fail(port::SystemError{error, "pthread_create"});
  }
  return engine;
}

Engine::Engine(unsigned number, port::Fd sockets, Watch::Fds fds, stats::EngineBlock* block)
    : Runtime(block, std::make_unique<SystemRandom>()),
      number_(number),
      sockets_(std::move(sockets), counters()),
      watch_(std::move(fds), sockets_, counters()),
      helper_(*this) {}

Engine::~Engine() {
  helper_.stop();
  Hold h = hold();
  handlers_.for_each([&](EventHandler& s) { remove(h.token(), s); });
}

void Engine::abandon_in_child() {
  handlers_.for_each([](EventHandler& s) { s.abandon_in_child(); });
  sockets_.set().close();
  watch_.close();
  // The helper does not exist here. The engine is never destroyed in the child, so nobody waits for
  // it.
}

// --- holding

std::optional<Hold> Engine::try_hold() {
  if (held_.held() || waiters_.load(std::memory_order_seq_cst) > 0 || !held_.try_lock()) {
    return {};
  }
  return Hold{*this};
}

Hold Engine::hold() {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  held_.lock();
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  return Hold{*this};
}

void Engine::ring(EventHandler& handler) {
  if (auto h = try_hold()) {
    watch_.program_posts(h->token());
    visit(h->token(), handler, [&] { handler.on_doorbell(h->token()); });
    return;
  }
  enqueue(handler);
  // The holder may have looked at the bells for the last time just before.
  wake();
}

void Engine::wake() {
  if (auto h = try_hold()) watch_.program_posts(h->token());
}

void Engine::before_release(Token& token) {
  serve_doorbells(token);
  reap();
  reserve().restore();
  // What was put off in this turn is not forgotten.
  // Who posts in small pieces and then computes has nothing else that sends them.
  if (output_.has_gathered()) {
    watch_.no_later_than(token, watch_.policy().patience());
  } else if (output_.has_deferred()) {
    watch_.no_later_than(token, watch_.patience());
  }
  watch_.due_at(deadlines_.earliest(), sleepers_.expected(std::memory_order_relaxed) > 0);
}

void Engine::serve_doorbells(Token& token) {
  doorbells_.drain([&](EventHandler& s) { visit(token, s, [&] { s.on_doorbell(token); }); });
}

void Engine::reap() {
  removed_.for_each([](EventHandler& s) { delete &s; });
}

void Engine::retire_memory() {
  Hold h = hold();
  handlers_.for_each(
      [&](EventHandler& s) { visit(h.token(), s, [&] { s.on_memory_retired(h.token()); }); });
}

// --- handlers

void Engine::add(Token& token, std::unique_ptr<EventHandler> handler, int fd, bool read,
                 bool write) {
  rewatch(token, *handler, fd, read, write);
  handlers_.push_back(*handler.release());  // owned through handlers_ from now on
}

void Engine::rewatch(Token&, EventHandler& handler, int fd, bool read, bool write) {
  sockets_.set().watch(handler, fd, read, write);
}

void Engine::forget(Token&, EventHandler& handler) {
  sockets_.forget(handler);
  deadlines_.set(handler, Time::never());
  doorbells_.forget(handler);
  handler.ListHook<DeferredTag>::unlink();
  handler.ListHook<GatheringTag>::unlink();
  handler.ListHook<HandlersTag>::unlink();
}

void Engine::remove(Token& token, EventHandler& handler) {
  forget(token, handler);
  removed_.push_back(handler);
}

void Engine::ask_memory(Token& token, EventHandler& handler) {
  sockets_.memory().add(token, handler);
}

void Engine::ask_memory_after(Token&, EventHandler& handler, const port::PeerWord& word) {
  sockets_.memory().ask_after(handler, word);
}

void Engine::again(Token&, EventHandler& handler) {
  sockets_.again(handler);
}

void Engine::more_to_send(Token& token, EventHandler& handler) {
  want_write(token, handler, true);
  sockets_.poll_all();
}

// --- a turn

bool Engine::progress(Ask ask) {
  auto h = try_hold();
  if (!h) {
    if (!waits_for_holder()) return false;
    h.emplace(hold());
  }
  Token& token = h->token();
  const bool sleep_expected = sleepers_.expected(std::memory_order_relaxed) > 0;
  watch_.program_polls(token.now(), sleep_expected, unsolicited(), deadlines_.earliest());
  output_.polled(token.now());
  sleepers_.polled();
  helper_.serve_poller();
  if (ask == Ask::all) sockets_.poll_all();
  const bool moved = turn(token);
  counters().polls.add();
  if (moved) counters().polls_with_work.add();
  if (EventHandler* busy = sockets_.should_leave_set()) leave_set(*busy);
  if (sockets_.memory().any()) stop_hearing(token);
  return moved;
}

// A poll was refused its turn. The holder may have lost its processor to the very loop that this is
// called from (both programs spin, and there are no more processors): after a while it is let
// through. A yield by a thread with a real-time priority is none to a holder below it; that one
// runs when such a thread waits.
bool Engine::waits_for_holder() {
  static thread_local unsigned refused = 0;
  if (++refused % kYieldAfter != 0) return false;
  if (schedule_of(0).real_time()) return true;
  sched_yield();
  return false;
}

bool Engine::turn(Token& token) {
  if (output_.has_gathered()) flush_gathered(token);
  // What has come goes first: a thread that had no processor for long finds answers beside the
  // deadlines that were for want of them.
  bool moved = sockets_.poll(token);
  moved |= run_deadlines(token);
  if (output_.deferred_is_due(token.now(), !moved)) flush_deferred(token);
  return moved;
}

bool Engine::run_deadlines(Token& token) {
  // What is left is over already: the next turn follows at once.
  int done = 0;
  while (EventHandler* s = done < kDeadlinesPerTurn ? deadlines_.expire(token.now()) : nullptr) {
    visit(token, *s, [&] { s->on_deadline(token); });
    ++done;
  }
  return done > 0;
}

// While anybody sleeps on the set, or is about to, nothing leaves it.
void Engine::leave_set(EventHandler& busy) {
  if (sleepers_.on_sockets(std::memory_order_seq_cst) > 0) return;
  // expect_sleeper() counts first, and looks afterwards which sockets are outside.
  const auto may_leave = [&] { return !sleepers_.must_hear(counters().polls.value()); };
  if (!sockets_.set().take_out(busy, may_leave)) return;
  // Nobody hears it now but by the timer.
  watch_.wake_up_no_later_than(watch_.last_turn() + watch_.patience());
}

// The same for those that are in memory.
bool Engine::only_ask_memory(Token& token) {
  if (sleepers_.on_sockets(std::memory_order_seq_cst) > 0) return false;
  const auto may_ask = [&] { return !sleepers_.must_hear(counters().polls.value()); };
  return sockets_.memory().only_ask(token, may_ask);
}

void Engine::stop_hearing(Token& token) {
  sockets_.memory().polled();
  if (!sockets_.memory().polled_for_long() || !only_ask_memory(token)) return;
  watch_.wake_up_no_later_than(watch_.last_turn() + watch_.patience());
}

void Engine::expect_sleeper() {
  if (sleepers_.expect(counters().polls.value()) || watch_.deaf()) watch_.hear();
  if (sockets_.all_are_heard(std::memory_order_seq_cst)) return;
  Hold h = hold();
  sockets_.hear_all(h.token());
}

// --- output that waits

bool Engine::gather(Token& token, EventHandler& handler) {
  if (sleepers_.may_leave_output(counters().polls.value())) return false;
  return output_.gather(handler, token.now());
}

void Engine::defer(Token& token, EventHandler& handler) {
  output_.defer(handler, token.now());
}

void Engine::closes_at(Token&, Time when) {
  exit_not_before_ = std::max(exit_not_before_, when);
}

void Engine::flush_gathered(Token& token) {
  output_.flush_gathered([&](EventHandler& s) { visit(token, s, [&] { s.on_gathered(token); }); });
}

void Engine::flush_deferred(Token& token) {
  output_.flush_deferred([&](EventHandler& s) { visit(token, s, [&] { s.on_idle(token); }); });
}

void Engine::prepare_sleep() {
  Hold h = hold();
  flush_gathered(h.token());
  flush_deferred(h.token());
  sockets_.hear_all(h.token());
  counters().sleeps.add();
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
