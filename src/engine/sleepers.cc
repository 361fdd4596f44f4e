#include "engine/sleepers.h"

#include <poll.h>

#include <cerrno>

#include "config/options.h"
#include "engine/engine.h"
#include "port/signals.h"

namespace weft::engine {
namespace {

// Times that a thread wakes up for what is not for it, until the helper hears the sockets instead:
// Writes and Reads of its peer are none of its business (docs/design/02).
constexpr unsigned kInVain = 8;

}  // namespace

Sleepers::Sleepers() : spin_policy_(config::options().spin) {}

// Some arm a queue once and poll on, or have another thread that does nothing but arm it and sleep:
// UCX does both.
bool Sleepers::is_about_to_sleep(uint64_t polls) const {
  if (expected(std::memory_order_relaxed) == 0) return false;
  if (poller_ != this_thread()) return true;
  return may_sleep_.load(std::memory_order_relaxed) == this_thread() &&
         polls - may_sleep_since_.load(std::memory_order_relaxed) < kPollsOn;
}

bool Sleepers::spin(Engine& engine, const std::function<bool()>& ready) {
  const Duration most = spin_policy_.spin();
  if (most <= Duration{0}) return false;
  for (const Time until = Engine::clock() + most; Engine::clock() < until;) {
    engine.progress();
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
int Sleepers::wait(Engine& engine, int fd, const std::function<bool()>& ready) {
  // On its way out, whichever it is, the thread counts as asleep no more, and the helper learns
  // that it has to listen.
  struct Asleep {
    Asleep(Engine& e, Sleepers& s, bool on_sockets) : engine(e), sleepers(s), hears(on_sockets) {
      if (hears) {
        sleepers.on_sockets_.fetch_add(1, std::memory_order_seq_cst);
      } else {
        engine.expect_sleeper();
      }
    }
    ~Asleep() {
      if (hears) {
        sleepers.on_sockets_.fetch_sub(1, std::memory_order_seq_cst);
        engine.watch_.program_turn(Engine::clock(), engine.watch_.policy().patience());
      } else {
        engine.forget_sleeper();
      }
    }
    Engine& engine;
    Sleepers& sleepers;
    const bool hears;
  };
  const Cancelable whole{PTHREAD_CANCEL_DISABLE};
  engine.progress();
  for (unsigned in_vain = 0;; ++in_vain) {
    if (ready() || spin(engine, ready)) return 0;
    {
      const Asleep asleep{engine, *this, in_vain < kInVain};
      engine.prepare_sleep();
      pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                       {.fd = engine.sockets_.set().fd(), .events = POLLIN}};
      if (!ready()) {
        const Cancelable here{whole.before};
        if (::poll(fds, asleep.hears ? 2 : 1, -1) < 0 &&
            !(errno == EINTR && port::signals_restart_calls())) {
          return errno;
        }
        // Else it would come back at once, again and again.
        if (((fds[0].revents | fds[1].revents) & POLLNVAL) != 0) return EBADF;
      }
    }
    engine.progress(Engine::Ask::all);
    if (ready()) return 0;
  }
}

}  // namespace weft::engine
