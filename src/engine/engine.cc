#include "engine/engine.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/log.h"
#include "config/options.h"
#include "port/calls.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;
constexpr Duration kLingerMost = 10us;
constexpr unsigned kYieldAfter = 2000;  // turns refused, about 100 us
constexpr int kEventsPerPoll = 64;
// A turn that has taken longer looks at fewer sockets in the next one, for whoever waits for the
// engine waits for the end of a turn. epoll goes round: it tells of the others then.
constexpr Duration kTurnMost = 500us;
constexpr int kDeadlinesPerTurn = 64;
constexpr unsigned kHotPolls = 16;    // of one busy connection, before all are asked again
constexpr unsigned kApartPolls = 64;  // and of one that has been alone for long
constexpr Duration kHotPause = 50us;  // without a byte: no longer busy
constexpr unsigned kApartAfter = 64;  // hits; what it costs to leave epoll and to come back pays
constexpr Duration kApartPause = 1ms;

// epoll_wait(2) that does not wait, and is no cancellation point (see port/calls.h).
int look_at(int set, epoll_event* events, int most) {
  if constexpr (port::calls::kThroughLibc) {
    return port::calls::through_libc([&] { return ::epoll_wait(set, events, most, 0); });
  }
  return static_cast<int>(::syscall(SYS_epoll_pwait, set, events, most, 0, nullptr, size_t{8}));
}

epoll_event event_for(EventHandler* s, bool read, bool write) {
  epoll_event e{};
  e.events = (read ? uint32_t{EPOLLIN} : 0U) | (write ? uint32_t{EPOLLOUT} : 0U);
  e.data.ptr = s;
  return e;
}

}  // namespace

Time Engine::clock() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return Time::from_ns(ts.tv_sec * 1'000'000'000LL + ts.tv_nsec);
}

const void* Engine::this_thread() {
  return reinterpret_cast<const void*>(::pthread_self());
}

// --- holding

Time Token::clock() {
  return Engine::clock();
}

// The holder does what others left at the door, and looks once more after it has let go: a thread
// that rang in between either got the engine itself or is served here, so no bell goes unheard.
Hold::~Hold() {
  if (!held_) return;
  Engine& e = token_.engine_;
  do {
    e.before_release(token_);
    e.held_.unlock();
  } while (e.doorbells_.any() && e.held_.try_lock());
}

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
    watch_sockets(h->token());
    visit(h->token(), handler, [&] { handler.on_doorbell(h->token()); });
    return;
  }
  leave(handler);
  // The holder may have looked at the bells for the last time just before.
  knock();
}

void Engine::knock() {
  if (auto h = try_hold()) watch_sockets(h->token());
}

void Engine::before_release(Token& token) {
  serve_doorbells(token);
  bury();
  if (reserve_spent_) renew_reserve();
  // What was put off in this turn is not forgotten, whoever held the engine.
  // Who posts in small pieces and then computes has nothing else that sends them.
  if (!gathering_.empty()) {
    watch_output(token, policy_.patience());
  } else if (!deferred_.empty()) {
    watch_output(token, patience_);
  }
  wake_up_.no_later_than(deadlines_.earliest());
}

void Engine::serve_doorbells(Token& token) {
  doorbells_.drain([&](EventHandler& s) { visit(token, s, [&] { s.on_doorbell(token); }); });
}

void Engine::bury() {
  graveyard_.for_each([](EventHandler& s) { delete &s; });
}

// --- handlers

void Engine::add(Token& token, std::unique_ptr<EventHandler> handler, int fd, bool read,
                 bool write) {
  EventHandler& s = *handler.release();  // owned through handlers_ from now on
  handlers_.push_back(s);
  rewatch(token, s, fd, read, write);
}

void Engine::rewatch(Token&, EventHandler& s, int fd, bool read, bool write) {
  if (apart_.load(std::memory_order_relaxed) == &s) {
    apart_.store(nullptr, std::memory_order_relaxed);
  } else if (s.fd_ >= 0) {
    counters().epoll_ctl_calls.add();
    (void)::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, s.fd_, nullptr);
  }
  s.fd_ = fd;
  s.wants_read_ = read;
  s.wants_write_ = write;
  if (fd < 0) return;
  counters().epoll_ctl_calls.add();
  epoll_event e = event_for(&s, read, write);
  if (::epoll_ctl(inner_.get(), EPOLL_CTL_ADD, fd, &e) != 0) {
    WEFT_LOG(error,
             "descriptor %d cannot be watched: %s; its connection will not move. Remedy: raise "
             "fs.epoll.max_user_watches",
             fd, std::strerror(errno));
  }
}

void Engine::forget(Token& token, EventHandler& handler) {
  rewatch(token, handler, -1, false, false);
  if (hot_ == &handler) hot_ = nullptr;
  deadlines_.set(handler, Time::never());
  // So that no bell of it is left behind.
  doorbells_.drain([&](EventHandler& s) {
    if (&s != &handler) visit(token, s, [&] { s.on_doorbell(token); });
  });
  handler.ListHook<ReadyTag>::unlink();
  handler.ListHook<DeferredTag>::unlink();
  handler.ListHook<GatheringTag>::unlink();
  handler.ListHook<HandlersTag>::unlink();
}

void Engine::remove(Token& token, EventHandler& handler) {
  forget(token, handler);
  graveyard_.push_back(handler);
}

void Engine::update_interest(EventHandler& s, bool read, bool write) {
  if (s.fd_ < 0 || (s.wants_read_ == read && s.wants_write_ == write)) return;
  s.wants_read_ = read;
  s.wants_write_ = write;
  if (apart_.load(std::memory_order_relaxed) == &s) {
    bring_back();
    return;
  }
  counters().epoll_ctl_calls.add();
  epoll_event e = event_for(&s, read, write);
  (void)::epoll_ctl(inner_.get(), EPOLL_CTL_MOD, s.fd_, &e);
}

void Engine::want_write(Token&, EventHandler& s, bool on) {
  update_interest(s, s.wants_read_, on);
}
void Engine::want_read(Token&, EventHandler& s, bool on) {
  update_interest(s, on, s.wants_write_);
}

void Engine::retire_memory() {
  Hold h = hold();
  handlers_.for_each(
      [&](EventHandler& s) { visit(h.token(), s, [&] { s.on_memory_retired(h.token()); }); });
}

// --- a turn

bool Engine::progress(Ask ask) {
  auto h = try_hold();
  if (!h) {
    if (!waits_for_holder()) return false;
    h.emplace(hold());
  }
  const Time now = h->token().now();
  watch_poller(now);
  gathers_since_ = now;
  poller_ = this_thread();
  meet_poller();
  if (ask == Ask::all) ask_all();
  const bool moved = turn(h->token());
  counters().polls.add();
  if (moved) counters().polls_with_work.add();
  if (hot_ != nullptr && hot_hits_ >= kApartAfter) set_apart(*hot_);
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

// Once for each thread and engine: does a thread poll that the helper has to stand above?
void Engine::meet_poller() {
  static thread_local uint64_t met = 0;  // a bit for each engine
  const uint64_t bit = uint64_t{1} << (number_ % 64);
  if ((met & bit) != 0) return;
  met |= bit;
  schedule_.serve_caller();
}

bool Engine::turn(Token& token) {
  if (!gathering_.empty()) flush_gathered(token);
  bool moved = run_deadlines(token);
  moved |= poll_sockets(token);
  if (!deferred_.empty() && defer_is_over(token, moved)) flush_deferred(token);
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

// From now on the next look asks every handler.
void Engine::ask_all() {
  hot_ = nullptr;
  bring_back();
}

// A socket in the epoll set has the kernel call back for every packet, through both sets: time that
// a program which polls the socket itself has no use for. Whoever goes to sleep on the set
// calls ask_all() first; while anybody sleeps or is about to, nothing leaves it.
void Engine::set_apart(EventHandler& handler) {
  if (apart_.load(std::memory_order_relaxed) != nullptr || handler.wants_write_ ||
      !handler.wants_read_ || sleepers_.load(std::memory_order_seq_cst) > 0) {
    return;
  }
  counters().epoll_ctl_calls.add();
  apart_.store(&handler, std::memory_order_seq_cst);
  // expect_sleeper() counts first and looks at apart_ then.
  if (expected_sleepers_.load(std::memory_order_seq_cst) > 0 ||
      ::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, handler.fd_, nullptr) != 0) {
    apart_.store(nullptr, std::memory_order_relaxed);
    return;
  }
  // Nobody hears it now but by the timer.
  wake_up_.no_later_than(Time::from_ns(program_turn_.load(std::memory_order_relaxed)) + patience_);
}

// A socket that is readable by then is reported at once.
void Engine::bring_back() {
  EventHandler* s = apart_.load(std::memory_order_relaxed);
  if (s == nullptr) return;
  apart_.store(nullptr, std::memory_order_relaxed);
  counters().epoll_ctl_calls.add();
  epoll_event e = event_for(s, s->wants_read_, s->wants_write_);
  (void)::epoll_ctl(inner_.get(), EPOLL_CTL_ADD, s->fd_, &e);
}

bool Engine::poll_sockets(Token& token) {
  // One connection alone is busy: its socket is asked without epoll. Others are not kept waiting
  // for it: as soon as it pauses, and every few polls, all are asked. One whose output waits for
  // room is asked through epoll: each recv(2) takes the socket's lock, and whose it is decides
  // which processor sends next (design/20).
  bool moved = false;
  if (hot_ != nullptr && !hot_->wants_write_) {
    const bool apart = apart_.load(std::memory_order_relaxed) == hot_;
    const Duration pause = token.now() - hot_moved_;
    const bool all = ++hot_polls_ >= (apart ? kApartPolls : kHotPolls) || pause >= kHotPause;
    if (apart || !all) {
      EventHandler& hot = *hot_;
      visit(token, hot, [&] { moved = hot.try_receive(token); });
      if (moved) {
        hot_moved_ = token.now();
        ++hot_hits_;
      }
      if (!all) return moved;
    }
    if (pause >= kApartPause && !moved) ask_all();
  }
  hot_polls_ = 0;
  counters().epoll_wait_calls.add();
  std::array<epoll_event, kEventsPerPoll> events;
  const int n = look_at(inner_.get(), events.data(), events_most_);
  if (n > 0) {
    auto* first = static_cast<EventHandler*>(events[0].data.ptr);
    const bool alone = n == 1 && (events[0].events & EPOLLIN) != 0 && first->tries_receive() &&
                       apart_.load(std::memory_order_relaxed) == nullptr;
    if (!alone) {
      ask_all();
    } else if (hot_ != first) {
      hot_ = first;
      hot_hits_ = 0;
    }
    hot_moved_ = token.now();
  }
  // A handler that goes away in this loop is in the graveyard until the turn is over, with its
  // descriptor gone from it.
  for (int i = 0; i < n; ++i) {
    auto* s = static_cast<EventHandler*>(events[static_cast<size_t>(i)].data.ptr);
    if (s->fd_ < 0) continue;
    const uint32_t e = events[static_cast<size_t>(i)].events;
    const bool broken = (e & (EPOLLERR | EPOLLHUP)) != 0;
    visit(token, *s, [&] {
      if (broken) s->on_broken(token);
      if (s->fd_ < 0) return;
      s->on_ready(token, broken || (e & EPOLLIN) != 0, broken || (e & EPOLLOUT) != 0);
    });
  }
  // One more round for those that had more than their budget; what is left then is there at the
  // next turn.
  for (size_t left = static_cast<size_t>(std::max(n, 0)); left > 0; --left) {
    EventHandler* s = ready_.pop_front();
    if (s == nullptr) break;
    visit(token, *s, [&] { s->on_ready(token, true, false); });
  }
  if (n > 1 || events_most_ < kEventsPerPoll) {
    const bool long_turn = clock() - token.now() > kTurnMost;
    events_most_ = long_turn ? std::max(n / 2, 1) : std::min(2 * events_most_, kEventsPerPoll);
  }
  return moved || n > 0;
}

// --- descriptors

Result<std::unique_ptr<Engine>, port::SystemError> Engine::create(unsigned number,
                                                                  stats::EngineBlock* block) {
  EngineFds fds;
  if (auto made = make_engine_fds(fds); !made.ok()) return fail(made.error());
  std::unique_ptr<Engine> engine{new Engine(number, std::move(fds), block)};
  if (const int error = engine->start_helper(); error != 0) {
    return fail(port::SystemError{error, "pthread_create"});
  }
  return engine;
}

Engine::Engine(unsigned number, EngineFds fds, stats::EngineBlock* block)
    : number_(number),
      own_counter_block_(block == nullptr ? std::make_unique<stats::EngineBlock>() : nullptr),
      counter_block_(block == nullptr ? *own_counter_block_ : *block),
      inner_(std::move(fds.inner)),
      outer_(std::move(fds.outer)),
      timer_(std::move(fds.timer)),
      wake_(std::move(fds.wake)),
      patience_(config::options().takeover),
      events_most_(kEventsPerPoll),
      bounce_(std::make_unique_for_overwrite<std::byte[]>(kBounce)),
      policy_(config::options().takeover),
      spin_policy_(config::options().spin),
      linger_policy_(std::min<Duration>(config::options().spin, kLingerMost)),
      rest_policy_(config::options().coalesce) {
  renew_reserve();
}

}  // namespace weft::engine
