// Completion queues and the channels on which they announce completions.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/spinlock.h"
#include "verbs/event_fd.h"
#include "verbs/types.h"

namespace weft::verbs {

class Adapter;
class Context;
class CompletionQueue;

// Where completion queues leave word. The program may sleep in next(), or poll the descriptor
// itself. It may also destroy the channel while a thread of its own sleeps there: a caller of
// next() shares the channel meanwhile, and nothing in it belongs to the device that it is of.
class CompletionChannel {
 public:
  explicit CompletionChannel(Adapter& adapter) : adapter_(adapter) {}
  bool valid() const { return events_.valid(); }
  int fd() const { return events_.fd(); }
  bool nonblocking() const { return events_.nonblocking(); }

  // The next queue that has something. Waits as the descriptor says: forever, or not at all when
  // the program made it non-blocking. Errors as errno of read(2): EAGAIN, EINTR, EBADF (the program
  // has closed the descriptor, or the channel is over).
  Result<CompletionQueue*, int> next();
  // No queue uses the channel any more, and the program destroys it. Any thread.
  void end() { events_.end(); }
  bool over() const { return events_.over(); }
  // The program sleeps, or has slept, inside next(), so that nobody else needs to listen for it.
  bool waits_inside() const { return waits_inside_.load(std::memory_order_relaxed); }

  void signal(CompletionQueue& cq) { events_.push(&cq); }
  // `cq` has something that it announces when the program polls and leaves it there, or when the
  // program waits in next() without a poll, whichever is first.
  void hold_back(CompletionQueue& cq);
  // The queue goes away.
  void forget(CompletionQueue& cq);

 private:
  std::optional<CompletionQueue*> pop();
  void announce_held_back();

  Adapter& adapter_;
  EventQueue<CompletionQueue*> events_;
  std::atomic<bool> waits_inside_{false};
  std::mutex held_back_lock_;                          // taken before a queue's
  std::atomic<CompletionQueue*> held_back_ = nullptr;  // changed under the lock
};

class CompletionQueue {
 public:
  // `capacity` entries, 1 to device::kMaxCqe. `channel` may be nullptr. `owner`: the ABI's object,
  // for events.
  CompletionQueue(Context& context, uint32_t capacity, CompletionChannel* channel, void* owner,
                  bool timestamps);
  ~CompletionQueue();

  Context& context() const { return context_; }
  CompletionChannel* channel() const { return channel_; }
  void* owner() const { return owner_; }
  uint32_t capacity() const { return capacity_; }

  // A poll in parts, as ibv_start_poll and ibv_next_poll are, ends with announce_held_back().
  enum class Poll : uint8_t { whole, part };
  // Takes up to `out.size()` completions. poll() makes the adapter look at its sockets when there
  // is none. Any thread.
  size_t poll(std::span<Completion> out, Poll poll = Poll::whole);
  size_t pop(std::span<Completion> out, Poll poll = Poll::whole);
  void announce_held_back();
  // The next completion that comes (`solicited_only`: that was solicited or failed) is announced on
  // the channel, once. One that lies here unpolled counts, unless the program was told of it and
  // has polled nothing since it took that event. A program that waits inside hears of it when its
  // next poll leaves it here, or when it waits again.
  void request_notify(bool solicited_only);
  // Keeps what is in it. Errors: invalid when more completions are in it than fit.
  Outcome<Ok> resize(uint32_t capacity);

  struct Entry {
    Completion completion;
    bool solicited;
  };
  // Engine holder. Entries that find no room are lost: that is an error of the program, and the
  // queue says so by an event. False then.
  bool push(std::span<const Entry> entries);
  // The queue pair's completions go away with it.
  void purge(Qpn qpn);

  void add_ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() { refs_.fetch_sub(1, std::memory_order_relaxed); }
  bool in_use() const { return refs_.load(std::memory_order_relaxed) > 0; }

  // How often the channel has handed this queue out: the program owes an acknowledgement for each.
  // Final after CompletionChannel::forget() when nobody pushes any more.
  uint32_t announced() const { return announced_.load(std::memory_order_relaxed); }

 private:
  friend class CompletionChannel;
  enum class Armed : uint8_t { no, solicited, any };
  void disarm();
  void tell(uint64_t end);
  uint64_t asked_end() const;
  Completion& at(uint64_t i) { return ring_[i & (ring_.size() - 1)]; }
  void move_to_ring(size_t size);
  bool grow();

  Context& context_;
  CompletionChannel* const channel_;
  void* const owner_;
  const bool timestamps_;
  std::atomic<int> refs_{0};
  std::atomic<uint32_t> announced_{0};

  Spinlock lock_;
  uint32_t capacity_;
  std::vector<Completion> ring_;   // a power of two; grows by doubling up to what capacity_ needs
  std::atomic<uint64_t> head_{0};  // changed under the lock, looked at by anybody
  std::atomic<uint64_t> tail_{0};
  Armed armed_ = Armed::no;
  bool expects_sleeper_ = false;
  uint64_t solicited_end_ = 0;       // of the last one that was solicited or failed
  uint64_t told_ = 0;                // what lies before this was announced
  bool held_back_ = false;           // the announcement of what lay here when it was armed
  std::atomic<bool> polled_{false};  // since the channel handed it out
  bool overrun_ = false;
};

}  // namespace weft::verbs
