#include "verbs/adapter.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fork_lock.h"
#include "base/log.h"
#include "config/options.h"
#include "port/memory_faults.h"

namespace weft::verbs {
namespace {

constexpr unsigned kCoresPerEngine = 4;

std::mutex g_lock;
// Never destroyed: threads of the program may be inside until the very end of the process.
std::atomic<Adapter*> g_adapter{nullptr};

thread_local engine::Engine* g_preferred = nullptr;

unsigned engines_wanted() {
  if (const uint32_t n = config::options().engines; n > 0)
    return std::min(n, Adapter::kMostEngines);
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return std::clamp(static_cast<unsigned>(std::max(cores, 1L)) / kCoresPerEngine, 1U,
                    Adapter::kMostEngines);
}

const char* remedy(int error) {
  switch (error) {
    case EMFILE:
      return "Raise the limit on open files (ulimit -n)";
    case EAGAIN:
      return "Raise the limit on threads (ulimit -u, pids.max of the container) or on memory "
             "(ulimit -v, -l)";
    case EPERM:
    case ENOSYS:
      return "A filter of system calls (seccomp, a container's) forbids it: allow it there";
    default:
      return "Free resources of this system";
  }
}

void child_after_fork() {
  if (Adapter* parents = g_adapter.exchange(nullptr)) parents->abandon_in_child();
}
const HeldOverFork<g_lock, child_after_fork> g_over_fork;

}  // namespace

Adapter* Adapter::existing() {
  return g_adapter.load(std::memory_order_acquire);
}

Result<Adapter*, port::SystemError> Adapter::get(
    const std::function<std::unique_ptr<BringUp>()>& make_bring_up) {
  if (Adapter* a = existing(); a != nullptr && a->intact()) return a;
  const std::lock_guard guard{g_lock};
  if (Adapter* a = existing()) {
    if (a->intact()) return a;
    WEFT_LOG(warn,
             "this program has closed descriptors of weft's (closefrom(3)?): the device is opened "
             "anew, and what was made with it before is dead");
    g_adapter.store(nullptr, std::memory_order_release);
    a->abandon_lost();
  }
  auto fresh = std::unique_ptr<Adapter>{new Adapter};
  if (const auto started = fresh->start(make_bring_up()); !started.ok()) {
    return fail(started.error());
  }
  g_adapter.store(fresh.get(), std::memory_order_release);
  return fresh.release();
}

Adapter::Adapter()
    : memory_(
          [this] {
            for (auto& e : engines_) {
              if (e->held_here()) return false;
            }
            for (auto& e : engines_) e->retire_memory();
            return true;
          },
          has_fixed_numbers()) {}

Result<Ok, port::SystemError> Adapter::start(std::unique_ptr<BringUp> bring_up) {
  port::catch_memory_faults();
  const unsigned wanted = engines_wanted();
  counters_ = std::make_unique<observe::CounterMemory>(wanted, config::options().counters);
  bring_up_ = std::move(bring_up);
  ports_ = std::make_unique<Ports>(wanted, counters_->device(), bring_up_.get());
  for (unsigned i = 0; i < wanted; ++i) {
    auto e = engine::Engine::create(i, &counters_->engine(i));
    if (!e.ok()) {
      WEFT_LOG(error, "the adapter cannot start: %s. %s", e.error().to_string().c_str(),
               remedy(e.error().code));
      return fail(e.error());
    }
    engines_.push_back(std::move(*e));
  }
  return Ok{};
}

void Adapter::prefer(engine::Engine* engine) {
  g_preferred = engine;
}

engine::Engine& Adapter::next_engine() {
  if (g_preferred != nullptr) return *g_preferred;
  return *engines_[turn_.fetch_add(1, std::memory_order_relaxed) % engines_.size()];
}

int Adapter::wait(int fd, const std::function<bool()>& ready) {
  if (engines_.size() == 1) return engines_[0]->wait(fd, ready);
  // The first engine is slept on; the helpers of the others hear theirs. A thread that is cancelled
  // meanwhile is unwound.
  struct Expected {
    explicit Expected(Adapter& a) : adapter(a) {
      for (size_t i = 1; i < adapter.engines_.size(); ++i) adapter.engines_[i]->expect_sleeper();
    }
    ~Expected() {
      for (size_t i = 1; i < adapter.engines_.size(); ++i) adapter.engines_[i]->forget_sleeper();
    }
    Adapter& adapter;
  };
  const Expected expected{*this};
  return engines_[0]->wait(fd, ready);
}

void Adapter::flush_at_exit() {
  for (auto& e : engines_) e->flush_at_exit();
  if (!ports_->close_channels_at_exit()) return;
  for (auto& e : engines_) e->flush_at_exit();
}

bool Adapter::intact() const {
  return std::all_of(engines_.begin(), engines_.end(), [](const auto& e) { return e->intact(); });
}

// Threads of the program may be inside, and objects of it point here: it is never destroyed.
void Adapter::abandon_lost() {
  for (auto& e : engines_) e->abandon_lost();
}

void Adapter::abandon_in_child() {
  counters_->abandon_in_child();
  for (auto& e : engines_) e->abandon_in_child();
  ports_->abandon_in_child();
}

}  // namespace weft::verbs
