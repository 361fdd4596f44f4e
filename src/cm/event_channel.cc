#include "cm/event_channel.h"

#include <poll.h>

#include <cerrno>
#include <new>
#include <optional>

#include "base/log.h"
#include "cm/basic_id.h"
#include "port/signals.h"

namespace weft::cm {
namespace {

// A program that looks this often without finding anything spins, and its thread does the work.
constexpr unsigned kSpins = 8;

// A thread that comes back for its next event does so in microseconds, on a busy machine in some
// milliseconds.
constexpr std::chrono::milliseconds kComesBack{50};

BasicId& core(Id* id) {
  return static_cast<BasicId&>(*id);
}

}  // namespace

BasicId& account(const Event& e) {
  return core(e.listener != nullptr ? e.listener : e.id);
}

EventChannel::~EventChannel() {
  while (const auto e = events_.try_pop()) delete *e;
}

Event* EventChannel::take() {
  std::optional<Event*> e;
  {
    const std::lock_guard guard{taking_};
    e = events_.try_pop();
    if (!e) return nullptr;
    account(**e).event_taken();
    taker_ = engine::Engine::this_thread();
    taken_at_ = Clock::now();
  }
  // May have a turn of the engine in it, which may push events here.
  if ((*e)->kind == EventKind::connect_request) account(**e).request_left();
  return *e;
}

EventChannel::Visit::Visit(EventChannel& channel) : channel_(channel) {
  const std::lock_guard guard{channel.taking_};
  ++channel.visits_;
  too_late_ = channel.destroyed_;
  channel.visit_begins_.notify_all();
}

EventChannel::Visit::~Visit() {
  const std::lock_guard guard{channel_.taking_};
  if (--channel_.visits_ == 0 && channel_.destroyed_) channel_.events_.close();
}

int EventChannel::next(Event*& event) {
  // In a child of fork(2) another thread of the parent may have had the lock.
  if (!alive()) return EIO;
  // Programs destroy a channel while a thread of theirs waits here, and leave by exit(3). As with
  // the kernel's, that thread hears nothing more.
  const Visit visit{*this};
  if (visit.too_late()) return EBADF;
  for (;;) {
    if (!alive()) return EIO;
    event = take();
    if (event != nullptr) {
      misses_.store(0, std::memory_order_relaxed);
      return 0;
    }
    if (events_.nonblocking()) {
      if (destroyed_.load(std::memory_order_relaxed)) return EBADF;
      if (misses_.fetch_add(1, std::memory_order_relaxed) < kSpins) return EAGAIN;
      adapter_.progress();
      event = take();
      return event != nullptr ? 0 : EAGAIN;
    }
    if (const int error = wait(); error != 0) return error;
  }
}

int EventChannel::wait() {
  if (under_way_.load(std::memory_order_relaxed) > 0) {
    return adapter_.wait(fd(), [this] { return !events_.empty(); });
  }
  pollfd p{.fd = fd(), .events = POLLIN, .revents = 0};
  // The caller looks again after a signal whose handler restarts calls.
  if (::poll(&p, 1, -1) < 0 && !(errno == EINTR && port::signals_restart_calls())) return errno;
  return (p.revents & POLLNVAL) != 0 ? EBADF : 0;
}

bool EventChannel::push(std::unique_ptr<Event>& event) {
  const std::lock_guard guard{taking_};
  if (destroyed_) return false;
  events_.push(event.get());
  (void)event.release();
  return true;
}

// rping and its like take events in one thread, end in another when they have seen the last one,
// and fail where the first comes back too late: EBADF, and status 255. A thread that has just taken
// an event may come back first; then it waits for ever, and nobody minds.
void EventChannel::let_taker_return(std::unique_lock<std::mutex>& taking) {
  if (taker_ == engine::Engine::this_thread() || events_.nonblocking()) return;
  visit_begins_.wait_until(taking, taken_at_ + kComesBack, [this] { return visits_ > 0; });
}

void EventChannel::destroy() {
  if (!alive()) {
    // In a child of fork(2): the queue behind the descriptor is the parent's, but the descriptor is
    // ours to close.
    events_.close();
    return;
  }
  {
    std::unique_lock taking{taking_};
    let_taker_return(taking);
    if (destroyed_) return;
    destroyed_ = true;
    ++visits_;  // this one's
  }
  // One by one: there may be no memory for a list.
  while (const std::unique_ptr<Event> e = take_left()) {
    if (e->kind != EventKind::connect_request) continue;
    account(*e).request_left();
    try {
      core(e->id).destroy();
    } catch (const std::bad_alloc&) {
      WEFT_LOG(error,
               "rdma_destroy_event_channel: no memory to end a connection that nobody took; "
               "it stays until the process ends");
    }
  }
  const std::lock_guard guard{taking_};
  if (--visits_ == 0) events_.close();
}

std::unique_ptr<Event> EventChannel::take_left() {
  const std::lock_guard guard{taking_};
  return std::unique_ptr<Event>{events_.try_pop().value_or(nullptr)};
}

// The first of the requests that `match`.
template <class Match>
std::unique_ptr<Event> EventChannel::take_off_request(Match&& match) {
  Event* found = nullptr;
  const std::lock_guard guard{taking_};
  if (destroyed_) return nullptr;
  events_.remove_if([&](Event* e) {
    if (found != nullptr || e->kind != EventKind::connect_request || !match(*e)) return false;
    found = e;
    return true;
  });
  return std::unique_ptr<Event>{found};
}

BasicId* EventChannel::withdraw_request_to(const BasicId& listener) {
  const auto found = take_off_request([&](const Event& e) { return &account(e) == &listener; });
  return found != nullptr ? &core(found->id) : nullptr;
}

void EventChannel::withdraw(const BasicId& id) {
  const std::lock_guard guard{taking_};
  if (destroyed_) return;
  events_.remove_if([&](Event* e) {
    if (&account(*e) != &id) return false;
    delete e;
    return true;
  });
}

void EventChannel::withdraw_join(const void* join) {
  const std::lock_guard guard{taking_};
  if (destroyed_) return;
  events_.remove_if([&](Event* e) {
    if (e->join != join) return false;
    delete e;
    return true;
  });
}

bool EventChannel::withdraw_request(const BasicId& id) {
  const auto found = take_off_request([&](const Event& e) { return &core(e.id) == &id; });
  if (found == nullptr) return false;
  account(*found).request_left();
  return true;
}

EventChannel::Moved EventChannel::move_events(const BasicId& id, EventChannel& to) {
  if (&to == this) return {.taken = id.events_taken()};
  const std::scoped_lock guard{taking_, to.taking_};
  if (destroyed_ || to.destroyed_) return {.taken = id.events_taken()};
  // All lists before anything moves, for there may be no memory.
  const auto its = [&](const Event* e) { return &account(*e) == &id; };
  std::vector<Event*> events;
  Moved moved{.taken = id.events_taken()};
  events_.remove_if([&](Event* e) {
    if (its(e)) events.push_back(e);
    if (its(e) && e->kind == EventKind::connect_request) moved.requests.push_back(&core(e->id));
    return false;
  });
  try {
    for (Event* e : events) to.events_.push(e);
  } catch (const std::bad_alloc&) {
    to.events_.remove_if(its);
    throw;
  }
  events_.remove_if(its);
  return moved;
}

}  // namespace weft::cm
