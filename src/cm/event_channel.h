// Where the events of Ids are queued for the program (rdma_create_event_channel(3)).
//
// Who listens to the sockets while the program waits here? While an operation of one of the
// channel's Ids is under way, the waiting thread itself: a connection then takes no hand-over
// between threads. Otherwise nobody on its account: programs keep a thread here for hours, which
// would be woken by every packet that another thread polls for. The helper or that other thread
// hears a new connection or a disconnect anyway (design/15), and writes to this channel's
// descriptor.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "cm/service.h"
#include "verbs/adapter.h"
#include "verbs/event_fd.h"

namespace weft::cm {

class BasicId;

// The Id that an event counts for: a request counts for the listener.
BasicId& account(const Event& event);

class EventChannel final : public Channel, public std::enable_shared_from_this<EventChannel> {
 public:
  explicit EventChannel(verbs::Adapter& adapter) : adapter_(adapter) {}
  ~EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  bool valid() const { return events_.valid(); }
  // False in a child of fork(2) that has it from its parent.
  bool alive() const { return &adapter_ == verbs::Adapter::existing(); }

  int fd() const override { return events_.fd(); }
  int next(Event*& event) override;
  void destroy() override;

  // Engine holder. False once the program has destroyed the channel. Throws std::bad_alloc. In both
  // cases the event stays the caller's.
  bool push(std::unique_ptr<Event>& event);
  // A request to the listener that nobody took yet; nullptr: there is none. It is the caller's.
  BasicId* withdraw_request_to(const BasicId& listener);
  // Drops the events that count for `id` (account()) and that nobody took yet. None of them is
  // taken off afterwards.
  void withdraw(const BasicId& id);
  // True when the request was still here: then it is gone.
  bool withdraw_request(const BasicId& id);
  // News of a multicast group that nobody took yet.
  void withdraw_join(const void* join);
  // What becomes of an Id's events when it goes to another channel.
  struct Moved {
    std::vector<BasicId*> requests;
    uint64_t taken = 0;  // all that the program has got of the Id's until then
  };
  // Moves the events that count for `id`. Throws std::bad_alloc, and has moved none then.
  Moved move_events(const BasicId& id, EventChannel& to);

  bool empty() const { return events_.empty(); }

  // How many of the Ids have an operation under way.
  void operation_begins() { under_way_.fetch_add(1, std::memory_order_relaxed); }
  void operation_ends() { under_way_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  // A thread inside next(): as with a system call, the descriptor stays open under it.
  class Visit {
   public:
    explicit Visit(EventChannel& channel);
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    // The program destroyed the channel before this thread came.
    bool too_late() const { return too_late_; }

   private:
    EventChannel& channel_;
    bool too_late_;
  };
  using Clock = std::chrono::steady_clock;
  Event* take();
  template <class Match>
  std::unique_ptr<Event> take_off_request(Match&& match);
  // Of a channel that is destroyed: nothing comes any more.
  std::unique_ptr<Event> take_left();
  int wait();
  void let_taker_return(std::unique_lock<std::mutex>& taking);

  verbs::Adapter& adapter_;
  std::atomic<int> under_way_{0};
  std::atomic<unsigned> misses_{0};  // looks in a row that found nothing

  // Taking an event off and counting it are one step for withdraw().
  std::mutex taking_;
  std::atomic<bool> destroyed_{false};  // changes under taking_
  unsigned visits_ = 0;                 // under taking_, as are:
  std::condition_variable visit_begins_;
  const void* taker_ = nullptr;  // the thread that took the last event
  Clock::time_point taken_at_;
  verbs::EventQueue<Event*> events_;  // which it owns
};

}  // namespace weft::cm
