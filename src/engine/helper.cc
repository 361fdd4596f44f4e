// The helper thread of an engine, and the threads of the program that fall asleep on it: who hears
// the sockets when nobody polls.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "engine/engine.h"
#include "port/signals.h"

namespace weft::engine {
namespace {

// What the helper's epoll set tells it.
enum : uint64_t { kTimerRang, kWoken, kSocketsMoved };

using namespace std::chrono_literals;
constexpr int kTakeOverTurns = 16;   // before the helper lets others have the engine
constexpr size_t kBulk = 16 * 1024;  // bytes that came in after which nobody lingers
// Times that a thread wakes up for what is not for it, until the helper hears the sockets instead:
// Writes and Reads of its peer are none of its business (docs/design/02).
constexpr unsigned kInVain = 8;

timespec to_timespec(int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

// Edges, so that neither needs to be read.
constexpr uint32_t kEdge = EPOLLIN | EPOLLET;
// The sockets are heard once for each time they are armed.
constexpr uint32_t kArmed = EPOLLIN | EPOLLONESHOT;

bool control(int set, int operation, int fd, uint32_t events, uint64_t what) {
  epoll_event e{};
  e.events = events;
  e.data.u64 = what;
  return ::epoll_ctl(set, operation, fd, &e) == 0;
}

// A thread that can be cancelled where it says so, and nowhere else: one that holds the engine must
// finish its turn.
class Cancelable {
 public:
  explicit Cancelable(int state) { pthread_setcancelstate(state, &before); }
  ~Cancelable() { pthread_setcancelstate(before, nullptr); }
  Cancelable(const Cancelable&) = delete;
  Cancelable& operator=(const Cancelable&) = delete;
  int before = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

Result<Ok, port::SystemError> make_engine_fds(EngineFds& fds) {
  using port::Fd;
  using port::SystemError;
  fds.inner = port::raise(Fd{::epoll_create1(EPOLL_CLOEXEC)});
  fds.outer = port::raise(Fd{::epoll_create1(EPOLL_CLOEXEC)});
  if (!fds.inner.valid() || !fds.outer.valid()) return fail(SystemError{errno, "epoll_create1"});
  fds.timer = port::raise(Fd{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)});
  if (!fds.timer.valid()) return fail(SystemError{errno, "timerfd_create"});
  fds.wake = port::raise(Fd{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)});
  if (!fds.wake.valid()) return fail(SystemError{errno, "eventfd"});
  const int set = fds.outer.get();
  if (!control(set, EPOLL_CTL_ADD, fds.timer.get(), kEdge, kTimerRang) ||
      !control(set, EPOLL_CTL_ADD, fds.wake.get(), kEdge, kWoken) ||
      !control(set, EPOLL_CTL_ADD, fds.inner.get(), kArmed, kSocketsMoved)) {
    return fail(SystemError{errno, "epoll_ctl"});
  }
  return Ok{};
}

int Engine::start_helper() {
  struct Start {
    Engine& engine;
    const Schedule maker;
  };
  auto start = std::make_unique<Start>(Start{*this, schedule_of(0)});
  const auto main = [](void* argument) -> void* {
    std::unique_ptr<Start> begun{static_cast<Start*>(argument)};
    Engine& engine = begun->engine;
    engine.schedule_.begin(begun->maker);
    begun.reset();
    engine.helper_main();
    return nullptr;
  };
  const int error = helper_.start(main, start.get());
  if (error != 0) return error;
  (void)start.release();
  schedule_.wait_until_begun();
  return 0;
}

Engine::~Engine() {
  stop_.store(true);
  const uint64_t one = 1;
  // An eventfd takes a write of 1 as long as it is not at its limit of 2^64 - 2.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  helper_.join();
  {
    Hold h = hold();
    handlers_.for_each([&](EventHandler& s) { remove(h.token(), s); });
  }
}

void Engine::abandon_in_child() {
  handlers_.for_each([](EventHandler& s) { s.abandon_in_child(); });
  inner_.reset();
  outer_.reset();
  timer_.reset();
  wake_.reset();
  // The thread does not exist here. The engine is never destroyed in the child, so nobody waits for
  // it.
}

// An epoll set knows its members by number and file: three that it takes for its own under their
// numbers are they. Being told of them once more does no harm.
bool Engine::intact() const {
  const int set = outer_.get();
  return control(set, EPOLL_CTL_MOD, timer_.get(), kEdge, kTimerRang) &&
         control(set, EPOLL_CTL_MOD, wake_.get(), kEdge, kWoken) &&
         control(set, EPOLL_CTL_MOD, inner_.get(), kArmed, kSocketsMoved);
}

// The helper sleeps in a set that is in nobody's reach any more.
void Engine::abandon_lost() {
  stop_.store(true);
  helper_.cancel_and_join();
}

// Called by any thread.
void Engine::HelperTimer::operator()(Time when) const {
  engine.counters().timer_calls.add_shared();
  itimerspec spec{};
  spec.it_value = to_timespec(std::max<int64_t>(when.ns(), 1));
  (void)::timerfd_settime(engine.timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Engine::arm_inner() {
  (void)control(outer_.get(), EPOLL_CTL_MOD, inner_.get(), kArmed, kSocketsMoved);
}

void Engine::hear_sockets() {
  deaf_.store(false, std::memory_order_seq_cst);
  arm_inner();
}

// The program has a turn: should it not come back, the helper will notice. At most one system call
// per patience, and none where it hears the sockets: when it has heard them it is deaf first, and
// looks then when the program had a turn; here the turn is told first, and then whether it is deaf.
void Engine::watch_program(Time now, Duration patience) {
  program_turn_.store(now.ns(), std::memory_order_seq_cst);
  if (!helper_hears()) wake_up_.no_later_than(now + patience);
}

// The program polls. Who is about to sleep is watched as closely as can be.
void Engine::watch_poller(Time now) {
  const Duration closely = patience_ = policy_.patience();
  if (policy_.at_most() && expected_sleepers_.load(std::memory_order_relaxed) == 0) {
    patience_ = steady_policy_.patience(now, room_taken_, closely);
    if (steady_policy_.put_off(now, closely)) {
      wake_up_.put_off(std::min(now + patience_, deadlines_.earliest()));
    }
  }
  watch_program(now, patience_);
}

// A program that posts does not look at its sockets by that. The clock is asked only where the
// program's last turn leaves it open whether the helper wakes up in time.
void Engine::watch_sockets(Token& token) {
  if (!helper_hears()) watch_output(token, patience_);
}

// The same for what was put off: no socket tells of that.
void Engine::watch_output(Token& token, Duration patience) {
  const Time turn = Time::from_ns(program_turn_.load(std::memory_order_relaxed));
  if (wake_up_.stands_before(turn + patience)) return;
  wake_up_.no_later_than(token.now() + patience);
}

void Engine::expect_sleeper() {
  if (expected_sleepers_.fetch_add(1, std::memory_order_seq_cst) == 0) hear_sockets();
  if (apart_.load(std::memory_order_seq_cst) == nullptr) return;
  Hold h = hold();
  ask_all();
}

void Engine::helper_main() {
  char name[16];
  std::snprintf(name, sizeof name, "weft/%u", number_);
  (void)::prctl(PR_SET_NAME, name);
  (void)::prctl(PR_SET_TIMERSLACK, 1UL);
  const Cancelable whole{PTHREAD_CANCEL_DISABLE};
  while (!stop_.load()) {
    epoll_event events[3];
    int n = 0;
    {
      const Cancelable here{PTHREAD_CANCEL_ENABLE};
      n = ::epoll_wait(outer_.get(), events, 3, -1);
    }
    if (n < 0 && errno != EINTR) return;  // the set is gone: the program has closed it
    counters().helper_wakeups.add();      // by this thread alone
    bool rang = false;
    for (int i = 0; i < n; ++i) {
      rang |= events[i].data.u64 == kTimerRang;
      if (events[i].data.u64 == kSocketsMoved) deaf_.store(true, std::memory_order_seq_cst);
    }
    if (rang) wake_up_.rang(clock());
    if (n > 0) helper_turn(rang);
  }
}

// `rang`: the program's patience may be over; else the sockets have something.
void Engine::helper_turn(bool rang) {
  const Time now = clock();
  const Time polled = Time::from_ns(program_turn_.load(std::memory_order_seq_cst));
  const bool sleep_expected = expected_sleepers_.load(std::memory_order_relaxed) > 0;
  const bool active = !sleep_expected && now - polled < policy_.patience();
  auto h = try_hold();
  if (!h) {
    // Somebody is at it right now, or has lost his processor while he was; come back when his
    // patience is over, and later each time: looking again and again would keep him from it.
    // Sooner for one who may sleep when he is through, unless the sockets would tell anyway.
    policy_.program_was_active();
    const bool soon = sleep_expected && deaf_;
    wake_up_.no_later_than(now + (soon ? held_policy_.found_held() : policy_.patience()));
    return;
  }
  held_policy_.found_free();
  Token& token = h->token();
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    // They hear the sockets, but not what another thread that polled has put off.
    run_deadlines(token);
    flush_gathered(token);
    if (sleep_expected) {
      // One that is not awake yet would leave the sockets readable, and this thread running.
      ask_all();
      turn(token);
      hear_sockets();
    }
    flush_deferred(token);
    return;
  }
  if (active) {
    // One that polls between spins on its memory has just polled when a message wakes the helper:
    // that alone says nothing.
    if (rang) policy_.program_was_active();
    run_deadlines(token);
    if (!deferred_.empty() && token.now() >= deferred_until_) flush_deferred(token);
    if (helper_hears() && deferred_.empty() && gathering_.empty()) return;
    wake_up_.no_later_than(
        std::max(polled, Time::from_ns(program_turn_.load(std::memory_order_relaxed))) +
        std::max(patience_, policy_.patience()));
    return;
  }
  const size_t moved = take_over(token, sleep_expected);
  Duration rest = rest_policy_.after(moved, token.now(), polled);
  if (sleep_expected) rest = Duration{0};
  h.reset();
  if (rest > Duration{0}) std::this_thread::sleep_for(rest);
  hear_sockets();
}

// Returns how many bytes came in, as far as that is all there is; 0 where more is waiting.
size_t Engine::take_over(Token& token, bool for_sleeper) {
  bool found = false;
  size_t moved = 0;
  bool all = false;
  counters().helper_turns.add();
  ask_all();
  // Until somebody waits for it.
  for (int i = 0; i < kTakeOverTurns && waiters_.load(std::memory_order_relaxed) == 0; ++i) {
    token.now_ = clock();
    serve_doorbells(token);
    moved_bytes_ = 0;
    if (turn(token)) {
      moved += moved_bytes_;
    } else {
      flush_deferred(token);
      all = moved >= kBulk || !linger(token);
      if (all) break;
    }
    found = true;
  }
  flush_deferred(token);
  // Of a program that sleeps, and said so, there is nothing to learn about one that polls.
  if (!for_sleeper) policy_.took_over(found);
  patience_ = policy_.patience();
  return all ? moved : 0;
}

// Where small messages follow each other closely, falling asleep between two of them costs both
// sides more than looking for a few microseconds longer. Only as long as that pays: an idle engine,
// or one whose messages are far apart, does not spin, nor does one that has just moved much: more
// of that gathers in the socket meanwhile, and comes cheaper.
bool Engine::linger(Token& token) {
  const Duration most = linger_policy_.spin();
  if (most <= Duration{0}) return false;
  for (const Time until = clock() + most; token.now_ < until;) {
    token.now_ = clock();
    if (turn(token) || doorbells_.any()) {
      linger_policy_.result(true);
      return true;
    }
  }
  linger_policy_.result(false);
  return false;
}

// --- program threads that wait

bool Engine::spin(const std::function<bool()>& ready) {
  const Duration most = spin_policy_.spin();
  if (most <= Duration{0}) return false;
  for (const Time until = clock() + most; clock() < until;) {
    progress();
    if (ready()) {
      spin_policy_.result(true);
      return true;
    }
  }
  spin_policy_.result(false);
  return false;
}

// Programs cancel threads that wait (pthread_cancel(3)), which unwinds them out of poll(2) and out
// of nothing else in here.
int Engine::wait(int fd, const std::function<bool()>& ready, Duration timeout) {
  // On its way out, whichever it is, the thread counts as asleep no more, and the helper learns
  // that it has to listen.
  struct Asleep {
    Asleep(Engine& e, bool hears_sockets) : engine(e), hears(hears_sockets) {
      if (hears) {
        engine.sleepers_.fetch_add(1, std::memory_order_seq_cst);
      } else {
        engine.expect_sleeper();
      }
    }
    ~Asleep() {
      if (hears) {
        engine.sleepers_.fetch_sub(1, std::memory_order_seq_cst);
        engine.watch_program(clock(), engine.policy_.patience());
      } else {
        engine.forget_sleeper();
      }
    }
    Engine& engine;
    const bool hears;
  };
  const Cancelable whole{PTHREAD_CANCEL_DISABLE};
  const bool bounded = timeout >= Duration{0};
  const Time until = bounded ? clock() + timeout : Time::never();
  progress();
  for (unsigned in_vain = 0;; ++in_vain) {
    if (ready() || spin(ready)) return 0;
    {
      const Asleep asleep{*this, in_vain < kInVain};
      {
        Hold h = hold();
        flush_gathered(h.token());
        flush_deferred(h.token());
        ask_all();
        counters().sleeps.add();
      }
      int ms = -1;
      if (bounded) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock());
        ms = left.count() > 0 ? static_cast<int>(left.count()) : 0;
      }
      pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = inner_.get(), .events = POLLIN}};
      if (!ready()) {
        const Cancelable here{whole.before};
        if (::poll(fds, asleep.hears ? 2 : 1, ms) < 0 &&
            !(errno == EINTR && port::signals_restart_calls())) {
          return errno;
        }
        // Else it would come back at once, again and again.
        if (((fds[0].revents | fds[1].revents) & POLLNVAL) != 0) return EBADF;
      }
    }
    progress(Ask::all);
    if (ready()) return 0;
    if (bounded && clock() >= until) return ETIMEDOUT;
  }
}

}  // namespace weft::engine
