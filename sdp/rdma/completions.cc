#include "sdp/rdma/completions.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include "sdp/rdma/undisturbed.h"

namespace weft::sdp {
namespace {

constexpr unsigned kWorkShift = 8;
constexpr unsigned kMemberShift = 16;
// Room for 64 connections.
constexpr uint32_t kFirstEntries = 10'240;

void yield() {
  (void)::sched_yield();
}

// The calling thread has the queues, or is about to, or has just let go of them.
thread_local volatile std::sig_atomic_t t_holds = 0;

}  // namespace

// Of the queues. A handler of a signal may have interrupted the very thread that has it, and call
// from there: that one takes nothing.
class Completions::Hold {
 public:
  Hold(Completions& completions, How how) : completions_(completions) {
    if (t_holds != 0) return;
    t_holds = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    holds_ = completions_.lock_.try_lock();
    if (!holds_ && how == How::surely) {
      completions_.lock_.lock();
      holds_ = true;
    }
    if (!holds_) t_holds = 0;
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (!holds_) return;
    completions_.lock_.unlock();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    t_holds = 0;
  }
  explicit operator bool() const { return holds_; }

 private:
  Completions& completions_;
  bool holds_ = false;
};

Completions::~Completions() {
  for (const Queue& queue : queues_) source_.end_queue(queue.cq);
}

uint64_t Completions::work_id(const Member& member, uint8_t work, uint8_t number) {
  return member.number_ << kMemberShift | uint64_t{work} << kWorkShift | number;
}

Completions::Queue* Completions::queue_with_room(ibv_context* device, uint32_t entries) {
  const uint32_t largest = source_.largest_queue(device);
  for (Queue& queue : queues_) {
    if (queue.device != device || queue.broken) continue;
    if (queue.entries - queue.reserved >= entries) return &queue;
    const uint32_t larger = queue.entries > largest / 2 ? largest : 2 * queue.entries;
    if (larger - queue.reserved < entries || !source_.resize_queue(queue.cq, larger)) continue;
    queue.entries = larger;
    return &queue;
  }
  const uint32_t first = std::min(std::max(kFirstEntries, entries), largest);
  if (first < entries) {
    errno = ENOMEM;
    return nullptr;
  }
  queues_.reserve(queues_.size() + 1);
  ibv_cq* cq = source_.make_queue(device, first);
  if (cq == nullptr) return nullptr;
  queues_.push_back({.cq = cq, .device = device, .entries = first});
  // It has to tell of what comes if the others do.
  if (armed_.load()) (void)ibv_req_notify_cq(cq, 0);
  return &queues_.back();
}

ibv_cq* Completions::join(Member& member, ibv_context* device, uint32_t entries) {
  if (entries > Mailbox::kMost) {
    errno = EINVAL;
    return nullptr;
  }
  const Hold hold{*this, How::surely};
  Queue* queue = queue_with_room(device, entries);
  if (queue == nullptr) return nullptr;
  members_.emplace(last_number_ + 1, &member);
  queue->reserved += entries;
  member.entries_ = entries;
  member.queue_ = queue->cq;
  member.number_ = ++last_number_;
  count_ = members_.size();
  return queue->cq;
}

void Completions::leave(Member& member) {
  const Undisturbed undisturbed;
  size_t taken = 0;
  for (bool left = false; !left;) {
    Touched touched{*this};
    {
      const Hold hold{*this, How::surely};
      const auto queue = std::find_if(queues_.begin(), queues_.end(),
                                      [&](const Queue& q) { return q.cq == member.queue_; });
      // No completion of it comes any more. Those that an adapter has left in the queue are taken
      // before its room is another's.
      left = queue == queues_.end();
      if (!left) {
        const size_t n = poll(*queue, touched, &member);
        taken += n;
        left = n < kBatch || taken >= queue->entries;
      }
      if (left) {
        members_.erase(member.number_);
        count_ = members_.size();
        if (queue != queues_.end()) queue->reserved -= member.entries_;
        member.queue_ = nullptr;
      }
    }
    touched.tell();
  }
  // Whoever is about to tell it waits for nobody.
  ++leaving_;
  for (uint32_t unpinned = unpinned_; member.pins_ > 0; unpinned = unpinned_) {
    unpinned_.wait(unpinned);
  }
  --leaving_;
}

// The member may end as soon as nobody is about to tell it.
void Completions::unpin(Member& member) {
  --member.pins_;
  if (leaving_ == 0) return;
  ++unpinned_;
  unpinned_.notify_all();
}

void Completions::deliver(Member& member, const Completed& completed, Touched& touched,
                          const Member* self) {
  (void)member.mail_.put(completed);
  if (&member == self) return;
  touched.add(member);
}

void Completions::Touched::add(Member& member) {
  const auto end = members_.begin() + static_cast<ptrdiff_t>(count_);
  if (std::find(members_.begin(), end, &member) != end) return;
  member.pins_.fetch_add(1);
  members_[count_++] = &member;
}

void Completions::Touched::tell() {
  while (told_ < count_) {
    members_[told_]->on_mail();
    completions_.unpin(*members_[told_++]);
  }
}

// Those that it did not come to.
Completions::Touched::~Touched() {
  while (told_ < count_) completions_.unpin(*members_[told_++]);
}

// What is in the queue, up to as much as may touch: how many. Fewer than kBatch are all.
size_t Completions::poll(Queue& queue, Touched& touched, const Member* self) {
  std::array<ibv_wc, kBatch> completions;
  int n = -1;
  for (int looks = 0; n < 0 && looks < kMostLooks && !queue.broken; ++looks) {
    n = ibv_poll_cq(queue.cq, static_cast<int>(kBatch), completions.data());
  }
  if (n < 0) return break_members(queue, touched, self);
  for (const ibv_wc& wc : std::span{completions}.first(static_cast<size_t>(n))) {
    const auto member = members_.find(wc.wr_id >> kMemberShift);
    if (member == members_.end()) continue;
    deliver(*member->second,
            {.bytes = wc.byte_len,
             .work = static_cast<uint8_t>(wc.wr_id >> kWorkShift),
             .number = static_cast<uint8_t>(wc.wr_id),
             .ok = wc.status == IBV_WC_SUCCESS},
            touched, self);
  }
  return static_cast<size_t>(n);
}

// Nothing comes from the queue any more, which is the end of whoever is on it.
size_t Completions::break_members(Queue& queue, Touched& touched, const Member* self) {
  queue.broken = true;
  for (const auto& [number, member] : members_) {
    if (touched.full()) return kBatch;
    if (member->queue_ != queue.cq) continue;
    member->queue_ = nullptr;
    deliver(*member, {.work = kBroken}, touched, self);
  }
  return 0;
}

// Members are told without the lock. So more may come all the time, but a queue never has more at a
// time than it has entries: who has taken as many has taken all that was there when he began.
bool Completions::take(How how, const Member* self) {
  const Undisturbed undisturbed;
  size_t taken = 0;
  bool asks_again = how == How::to_the_end;
  for (size_t i = 0;;) {
    Touched touched{*this};
    bool own = false;
    {
      const Hold hold{*this, how};
      // Who has it may have lost the processor to this very thread.
      if (!hold) {
        yield();
        return false;
      }
      if (i >= queues_.size()) return true;
      Queue& queue = queues_[i];
      const size_t most = how == How::surely ? queue.entries : kMostBatches * kBatch;
      const size_t n = poll(queue, touched, self);
      taken += n;
      own = how != How::surely && self != nullptr && !self->mail_.empty();
      const bool more =
          n == kBatch ? taken < most && !own : n > 0 && std::exchange(asks_again, false);
      if (!more) {
        ++i;
        taken = 0;
        asks_again = how == How::to_the_end;
      }
    }
    touched.tell();
  }
}

// Each of these is written by one side before it reads the other's, so that of two threads at the
// same time one sees to it: who wants news and who looks no more, who sleeps and who attends.
bool Completions::rest(const Member* self) {
  if (armed_.load() || lookers_.load() > 0) return false;
  if (wanting_.load() == 0 && attended_.load()) return false;
  const Undisturbed undisturbed;
  {
    const Hold hold{*this, How::surely};
    if (!hold || armed_.exchange(true)) return false;
    for (const Queue& queue : queues_) (void)ibv_req_notify_cq(queue.cq, 0);
  }
  (void)take(How::surely, self);
  return true;
}

bool Completions::on_event() {
  armed_ = false;
  // Not earlier: a thread that shows and sleeps before relies on this event.
  const uint64_t shown = count_shown();
  (void)take(How::surely);
  const bool first = !attended_.exchange(true);
  if (first) called_ = false;
  // Others than those who are woken may sleep on.
  if (count_shown() - shown < static_cast<uint64_t>(std::max(wanting_.load(), 1))) (void)rest();
  return first;
}

bool Completions::attend() {
  // A program that is at it does not need to be told, but it may have so much to read that it asks
  // for no completions.
  const bool goes_on = called_.exchange(false);
  (void)take(goes_on ? How::if_free : How::surely);
  if (!goes_on) attended_ = false;
  (void)rest();
  if (goes_on) return true;
  // A thread that looks may never come back: the handler of a signal may have jumped out of it.
  attended_ = !armed_.load();
  return attended_;
}

}  // namespace weft::sdp
