#include "engine/helper.h"

#include <sys/epoll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <thread>

#include "config/options.h"
#include "engine/engine.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;
constexpr Duration kLingerMost = 10us;
constexpr int kTakeOverTurns = 16;   // before the helper lets others have the engine
constexpr size_t kBulk = 16 * 1024;  // bytes that came in after which nobody lingers
constexpr Duration kLeftOut = 1ms;   // between looks at a socket that is in no epoll set

// Helpers that have begun, of this process and of those that it was forked from: no two of them
// have one number, as engines do after fork(2).
std::atomic<uint32_t> g_begun{0};

}  // namespace

Helper::Helper(Engine& engine)
    : engine_(engine),
      linger_policy_(std::min<Duration>(config::options().spin, kLingerMost)),
      rest_policy_(config::options().coalesce) {}

int Helper::start() {
  number_ = 1 + g_begun.fetch_add(1, std::memory_order_relaxed);
  struct Start {
    Helper& helper;
    const Schedule maker;
  };
  auto start = std::make_unique<Start>(Start{*this, schedule_of(0)});
  const auto main = [](void* argument) -> void* {
    std::unique_ptr<Start> begun{static_cast<Start*>(argument)};
    Helper& helper = begun->helper;
    helper.schedule_.begin(begun->maker);
    begun.reset();
    helper.run();
    return nullptr;
  };
  const int error = thread_.start(main, start.get());
  if (error != 0) return error;
  (void)start.release();
  schedule_.wait_until_begun();
  return 0;
}

void Helper::stop() {
  stop_.store(true);
  engine_.watch_.wake();
  thread_.join();
}

void Helper::cancel() {
  stop_.store(true);
  thread_.cancel_and_join();
}

void Helper::serve_poller() {
  static thread_local std::array<uint32_t, 64> met{};  // by engine; 0: none
  uint32_t& last = met[engine_.number() % met.size()];
  if (last == number_) return;
  last = number_;
  schedule_.serve_caller();
}

void Helper::run() {
  char name[16];
  std::snprintf(name, sizeof name, "weft/%u", engine_.number());
  (void)::prctl(PR_SET_NAME, name);
  (void)::prctl(PR_SET_TIMERSLACK, 1UL);
  const Cancelable whole{PTHREAD_CANCEL_DISABLE};
  while (!stop_.load()) {
    std::array<epoll_event, 3> events;
    int n = 0;
    {
      const Cancelable here{PTHREAD_CANCEL_ENABLE};
      n = engine_.watch_.sleep(events);
    }
    if (n < 0 && errno != EINTR) return;
    engine_.counters().helper_wakeups.add();  // by this thread alone
    if (n <= 0) continue;
    const bool rang =
        engine_.watch_.woken_by(std::span{events}.first(static_cast<size_t>(n)), Engine::clock());
    Why why = rang ? Why::patience : Why::sockets;
    while (turn(why) == Next::turn && !stop_.load()) why = Why::more;
  }
}

Helper::Next Helper::turn(Why why) {
  Watch& watch = engine_.watch_;
  const Time now = Engine::clock();
  const Time polled = watch.last_turn(std::memory_order_seq_cst);
  const bool sleep_expected = engine_.sleepers_.must_hear(engine_.counters().polls.value());
  const bool active = !sleep_expected && now - polled < watch.policy().patience();
  auto h = engine_.try_hold();
  if (!h) {
    // Somebody is at it right now, or has lost his processor while he was; come back when his
    // patience is over, and later each time: looking again and again would keep him from it.
    // Sooner for one who may sleep when he is through, unless the sockets would tell anyway.
    watch.policy().program_was_active();
    const bool soon = sleep_expected && watch.deaf();
    watch.wake_up_no_later_than(now +
                                (soon ? held_policy_.found_held() : watch.policy().patience()));
    return Next::sleep;
  }
  held_policy_.found_free();
  if (engine_.sleepers_.on_sockets(std::memory_order_seq_cst) > 0) {
    serve_sleepers(h->token(), sleep_expected);
    come_back_if_left_out(h->token());
    return Next::sleep;
  }
  if (active) {
    serve_active(h->token(), why, polled);
    return Next::sleep;
  }
  // Counted once for each time that it woke.
  if (why != Why::more) engine_.counters().helper_turns.add();
  const Taken taken = take_over(h->token(), sleep_expected);
  if (taken.next == Next::turn) return Next::turn;
  come_back_if_left_out(h->token());
  Duration rest = rest_policy_.after(taken.bytes, h->token().now(), polled);
  if (sleep_expected) rest = Duration{0};
  h.reset();
  if (rest > Duration{0}) std::this_thread::sleep_for(rest);
  watch.hear();
  return Next::sleep;
}

// A socket that the epoll set does not take back wakes nobody, neither who sleeps on the set.
void Helper::come_back_if_left_out(Token& token) {
  if (engine_.sockets_.all_are_heard(std::memory_order_relaxed)) return;
  engine_.watch_.wake_up_no_later_than(token.now() + kLeftOut);
}

// They hear the sockets, but not one that is left out of the set, nor what another thread that
// polled has put off.
void Helper::serve_sleepers(Token& token, bool sleep_expected) {
  engine_.run_deadlines(token);
  engine_.flush_gathered(token);
  if (sleep_expected || !engine_.sockets_.all_are_heard(std::memory_order_relaxed)) {
    // One that is not awake yet would leave the sockets readable, and this thread running.
    engine_.sockets_.hear_all(token);
    engine_.turn(token);
    engine_.watch_.hear();
  }
  engine_.flush_deferred(token);
}

// The program polls: only what is due is done for it.
void Helper::serve_active(Token& token, Why why, Time polled) {
  Watch& watch = engine_.watch_;
  // One that polls between spins on its memory has just polled when a message wakes the helper:
  // that alone says nothing.
  if (why == Why::patience) watch.policy().program_was_active();
  engine_.run_deadlines(token);
  const PendingOutput& output = engine_.output_;
  if (output.deferred_is_due(token.now(), false)) engine_.flush_deferred(token);
  if (watch.hears() && !output.has_deferred() && !output.has_gathered()) return;
  watch.wake_up_no_later_than(std::max(polled, watch.last_turn()) +
                              std::max(watch.patience(), watch.policy().patience()));
}

Helper::Taken Helper::take_over(Token& token, bool for_sleeper) {
  bool found = false;
  size_t moved = 0;
  bool all = false;
  engine_.sockets_.poll_all();
  // Until it sleeps it looks for itself: a peer that writes to memory need not wake it.
  (void)engine_.only_ask_memory(token);
  // Until somebody waits for it.
  for (int i = 0; i < kTakeOverTurns && !engine_.is_awaited(); ++i) {
    Engine::renew(token);
    engine_.serve_doorbells(token);
    (void)engine_.take_received();
    if (engine_.turn(token)) {
      moved += engine_.take_received();
    } else {
      engine_.flush_deferred(token);
      all = moved >= kBulk || !linger(token);
      if (all) break;
    }
    found = true;
  }
  engine_.flush_deferred(token);
  const bool more = !all && !engine_.is_awaited() &&
                    !engine_.sockets_.memory().all_are_heard(std::memory_order_relaxed);
  if (!more) engine_.sockets_.hear_all(token);
  // Of a program that sleeps, and said so, there is nothing to learn about one that polls.
  if (!for_sleeper) engine_.watch_.policy().took_over(found);
  engine_.watch_.use_policy();
  return {.next = more ? Next::turn : Next::sleep, .bytes = all ? moved : 0};
}

// Where small messages follow each other closely, falling asleep between two of them costs both
// sides more than looking for a few microseconds longer. Only as long as that pays: an idle engine,
// or one whose messages are far apart, does not spin, nor does one that has just moved much: more
// of that gathers in the socket meanwhile, and comes cheaper.
bool Helper::linger(Token& token) {
  const Duration most = linger_policy_.spin();
  if (most <= Duration{0}) return false;
  for (const Time until = Engine::clock() + most; token.now() < until;) {
    Engine::renew(token);
    if (engine_.turn(token) || engine_.doorbells_.any()) {
      linger_policy_.result(true);
      return true;
    }
  }
  linger_policy_.result(false);
  return false;
}

}  // namespace weft::engine
