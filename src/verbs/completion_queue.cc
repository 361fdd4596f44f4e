#include "verbs/completion_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/wall_clock.h"
#include "verbs/adapter.h"
#include "verbs/context.h"
#include "work/send_queue.h"

namespace weft::verbs {
namespace {

constexpr uint32_t kFirstRing = 256;

}  // namespace

// --- channel

std::optional<CompletionQueue*> CompletionChannel::pop() {
  return events_.try_pop([](CompletionQueue* cq) {
    cq->announced_.fetch_add(1, std::memory_order_relaxed);
    cq->polled_.store(false, std::memory_order_relaxed);
  });
}

// One queue at a time: a program that has several on a channel is told of the one before at once.
void CompletionChannel::hold_back(CompletionQueue& cq) {
  const std::lock_guard guard{held_back_lock_};
  CompletionQueue* before = held_back_.exchange(&cq, std::memory_order_relaxed);
  if (before != nullptr && before != &cq) before->announce_held_back();
}

void CompletionChannel::announce_held_back() {
  if (held_back_.load(std::memory_order_relaxed) == nullptr) return;
  const std::lock_guard guard{held_back_lock_};
  CompletionQueue* cq = held_back_.exchange(nullptr, std::memory_order_relaxed);
  if (cq != nullptr) cq->announce_held_back();
}

void CompletionChannel::forget(CompletionQueue& cq) {
  {
    const std::lock_guard guard{held_back_lock_};
    if (held_back_.load(std::memory_order_relaxed) == &cq)
      held_back_.store(nullptr, std::memory_order_relaxed);
  }
  events_.remove_if([&](CompletionQueue* e) { return e == &cq; });
}

Result<CompletionQueue*, int> CompletionChannel::next() {
  if (auto cq = pop()) {
    // It was there already: somebody listened while the program slept on the descriptor, or was
    // busy.
    waits_inside_.store(false, std::memory_order_relaxed);
    return *cq;
  }
  announce_held_back();
  if (events_.nonblocking()) {
    adapter_.progress();
    if (auto cq = pop()) return *cq;
    return fail(over() ? EBADF : EAGAIN);
  }
  waits_inside_.store(true, std::memory_order_relaxed);
  for (;;) {
    const int error = adapter_.wait(events_.fd(), [this] { return !events_.empty() || over(); });
    if (error != 0) return fail(int{error});
    // Another thread may have been quicker.
    if (auto cq = pop()) return *cq;
    if (over()) return fail(EBADF);
  }
}

// --- queue

CompletionQueue::CompletionQueue(Context& context, uint32_t capacity, CompletionChannel* channel,
                                 void* owner, bool timestamps)
    : context_(context),
      channel_(channel),
      owner_(owner),
      timestamps_(timestamps),
      capacity_(capacity),
      ring_(std::bit_ceil(std::min(capacity, kFirstRing))) {}

CompletionQueue::~CompletionQueue() {
  if (expects_sleeper_) context_.adapter().forget_sleeper();
  if (channel_ != nullptr) channel_->forget(*this);
}

size_t CompletionQueue::pop(std::span<Completion> out, Poll poll) {
  // Most of the time it is empty, and not worth the lock.
  if (tail_.load(std::memory_order_acquire) == head_.load(std::memory_order_relaxed)) return 0;
  size_t n = 0;
  bool announce = false;
  {
    const std::lock_guard guard{lock_};
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t head = head_.load(std::memory_order_relaxed);
    n = std::min<uint64_t>(out.size(), tail - head);
    for (size_t i = 0; i < n; ++i) {
      out[i] = at(head + i);
      if (out[i].slot_of != nullptr) out[i].slot_of->polled();
    }
    head_.store(head + n, std::memory_order_relaxed);
    polled_.store(true, std::memory_order_relaxed);
    // It may wait now, for what it has left here.
    announce = poll == Poll::whole && std::exchange(held_back_, false) && armed_ != Armed::no &&
               asked_end() > head + n;
    if (announce) tell(asked_end());
  }
  if (announce) channel_->signal(*this);
  return n;
}

size_t CompletionQueue::poll(std::span<Completion> out, Poll poll) {
  if (const size_t n = pop(out, poll); n > 0) return n;
  context_.adapter().progress();
  return pop(out, poll);
}

void CompletionQueue::announce_held_back() {
  {
    const std::lock_guard guard{lock_};
    if (!std::exchange(held_back_, false) || armed_ == Armed::no ||
        asked_end() <= head_.load(std::memory_order_relaxed))
      return;
    tell(asked_end());
  }
  channel_->signal(*this);
}

bool CompletionQueue::push(std::span<const Entry> entries) {
  bool announce = false;
  bool overrun = false;
  bool room = true;
  const int64_t now = timestamps_ ? wall_clock_ns() : 0;
  {
    const std::lock_guard guard{lock_};
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (const Entry& e : entries) {
      tail_.store(tail, std::memory_order_relaxed);
      const uint64_t used = tail - head_.load(std::memory_order_relaxed);
      // At half, so that completions have room also when there is no memory for a while.
      if (2 * used >= ring_.size() && used < capacity_ && ring_.size() < capacity_) (void)grow();
      room = used < capacity_ && used < ring_.size();
      if (!room) {
        overrun = !std::exchange(overrun_, true);
        break;
      }
      Completion& c = at(tail);
      c = e.completion;
      c.timestamp = now;
      ++tail;
      const bool solicited = e.solicited || e.completion.status != Status::success;
      if (solicited) solicited_end_ = tail;
      if (armed_ == Armed::any || (armed_ == Armed::solicited && solicited)) {
        announce = true;
        tell(tail);
      }
    }
    tail_.store(tail, std::memory_order_release);
  }
  if (announce) channel_->signal(*this);
  if (overrun) {
    WEFT_LOG(warn,
             "completion queue overrun: more than its %u entries came before the program polled "
             "it; create it larger",
             capacity_);
    context_.adapter().counters().device().completion_queue_overruns.add_shared();
    context_.events().push({EventType::cq_err, owner_});
  }
  return room;
}

void CompletionQueue::disarm() {
  armed_ = Armed::no;
  if (std::exchange(expects_sleeper_, false)) context_.adapter().forget_sleeper();
}

// Those before it are announced now.
void CompletionQueue::tell(uint64_t end) {
  told_ = end;
  held_back_ = false;
  disarm();
}

// Behind the last one of those that the program has asked to be told of.
uint64_t CompletionQueue::asked_end() const {
  return armed_ == Armed::any ? tail_.load(std::memory_order_relaxed) : solicited_end_;
}

void CompletionQueue::request_notify(bool solicited_only) {
  if (channel_ == nullptr) return;
  // A program that polls the descriptor itself relies on the helper (engine.h, case b). Counted
  // before the queue is armed, for what comes then counts it off.
  bool counted = !channel_->waits_inside();
  if (counted) context_.adapter().expect_sleeper();
  bool announce = false;
  bool held = false;
  {
    const std::lock_guard guard{lock_};
    if (armed_ != Armed::any) armed_ = solicited_only ? Armed::solicited : Armed::any;
    if (counted && !expects_sleeper_) {
      expects_sleeper_ = true;
      counted = false;
    }
    // UCX arms behind its last poll, and sleeps on the descriptor: it is told of what is there. A
    // program that takes an event, arms, and polls then, as perftest does, was told.
    const uint64_t head = head_.load(std::memory_order_relaxed);
    const bool polled = polled_.load(std::memory_order_relaxed);
    const bool due = asked_end() > (polled ? head : std::max(head, told_));
    // A program that waits inside most often polls all that there is before it waits.
    held = held_back_ = due && channel_->waits_inside();
    announce = due && !held;
    if (announce) tell(asked_end());
  }
  if (announce) channel_->signal(*this);
  if (held) channel_->hold_back(*this);
  context_.adapter().may_sleep();
  if (counted) context_.adapter().forget_sleeper();  // it was expected already
}

Outcome<Ok> CompletionQueue::resize(uint32_t capacity) {
  const std::lock_guard guard{lock_};
  if (tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed) > capacity)
    return fail(Errc::invalid);
  if (ring_.size() > std::bit_ceil(capacity)) move_to_ring(std::bit_ceil(capacity));
  capacity_ = capacity;
  return Ok{};
}

// False when there is no memory for it.
bool CompletionQueue::grow() try {
  move_to_ring(ring_.size() * 2);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void CompletionQueue::move_to_ring(size_t size) {
  std::vector<Completion> fresh(size);
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (uint64_t i = head_.load(std::memory_order_relaxed); i < tail; ++i)
    fresh[i & (size - 1)] = at(i);
  ring_.swap(fresh);
}

void CompletionQueue::purge(Qpn qpn) {
  const std::lock_guard guard{lock_};
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  const uint64_t head = head_.load(std::memory_order_relaxed);
  uint64_t to = head;
  for (uint64_t i = head; i < tail; ++i) {
    const Completion c = at(i);
    if (c.qpn == qpn) continue;
    at(to) = c;
    ++to;
  }
  tail_.store(to, std::memory_order_release);
  solicited_end_ = std::min(solicited_end_, to);
  told_ = std::min(told_, to);
}

}  // namespace weft::verbs
