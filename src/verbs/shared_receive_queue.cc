#include "verbs/shared_receive_queue.h"

#include <algorithm>
#include <array>
#include <new>

#include "verbs/adapter.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {

SharedReceiveQueue::SharedReceiveQueue(ProtectionDomain& pd, uint32_t capacity, uint32_t segments,
                                       void* owner)
    : pd_(pd), owner_(owner), queue_(capacity, segments) {
  pd_.add_ref();
}

SharedReceiveQueue::~SharedReceiveQueue() {
  pd_.drop_ref();
}

uint32_t SharedReceiveQueue::limit() {
  const std::lock_guard guard{lock_};
  return limit_;
}

Outcome<Ok> SharedReceiveQueue::post(const ReceiveRequest* requests, size_t count, size_t& posted) {
  Outcome<Ok> outcome{Ok{}};
  posted = 0;
  {
    const std::lock_guard guard{lock_};
    for (; posted < count; ++posted) {
      outcome = queue_.post(requests[posted]);
      if (!outcome.ok()) break;
    }
  }
  if (posted > 0) wake_waiting();
  return outcome;
}

void SharedReceiveQueue::give_back(work::TakenReceive receive) {
  {
    const std::lock_guard guard{lock_};
    returned_.splice(returned_.begin(), receive);
  }
  wake_waiting();
}

void SharedReceiveQueue::wake_waiting() {
  std::array<engine::Engine*, Adapter::kMostEngines> engines{};
  auto* end = engines.begin();
  {
    // A bell is left under the lock, so that none is left for a queue pair that forget() has taken
    // out.
    const std::lock_guard guard{waiting_lock_};
    for (QueuePair* qp : waiting_) {
      qp->ring_later();
      if (std::find(engines.begin(), end, &qp->engine()) == end) *end++ = &qp->engine();
    }
    waiting_.clear();
    in_line_.clear();
  }
  std::for_each(engines.begin(), end, [](engine::Engine* e) { e->wake(); });
}

Outcome<Ok> SharedReceiveQueue::set_limit(uint32_t limit) {
  bool reached = false;
  {
    const std::lock_guard waiting_guard{waiting_lock_};
    const std::lock_guard guard{lock_};
    if (limit > queue_.capacity()) return fail(Errc::invalid);
    limit_ = limit;
    // A program arms behind its posts, which may all be taken by then: no take would tell it.
    reached = !waiting_.empty() && limit_reached();
  }
  if (reached) tell_limit();
  return Ok{};
}

bool SharedReceiveQueue::limit_reached() {
  if (limit_ == 0 || queue_.size() + returned_.size() >= limit_) return false;
  limit_ = 0;
  return true;
}

bool SharedReceiveQueue::take_and_check(work::Receive& out) {
  bool taken = true;
  bool reached = false;
  {
    const std::lock_guard guard{lock_};
    if (!returned_.empty()) {
      out = returned_.front();
      returned_.pop_front();
    } else {
      taken = queue_.take(out);
    }
    reached = limit_reached();
  }
  if (reached) tell_limit();
  return taken;
}

bool SharedReceiveQueue::take(work::Receive& out, QueuePair& qp) {
  if (take_and_check(out)) return true;
  const std::lock_guard guard{waiting_lock_};
  // A post may have slipped in between. The next one looks at `waiting_` under the same lock.
  if (take_and_check(out)) return true;
  let_wait(qp);
  return false;
}

bool SharedReceiveQueue::empty() {
  const std::lock_guard guard{lock_};
  return queue_.empty() && returned_.empty();
}

bool SharedReceiveQueue::empty_for(QueuePair& qp) {
  if (!empty()) return false;
  const std::lock_guard guard{waiting_lock_};
  if (!empty()) return false;
  let_wait(qp);
  return true;
}

void SharedReceiveQueue::let_wait(QueuePair& qp) {
  if (in_line_.contains(&qp)) return;
  waiting_.push_back(&qp);
  try {
    in_line_.insert(&qp);
  } catch (const std::bad_alloc&) {
    waiting_.pop_back();
    throw;
  }
}

void SharedReceiveQueue::forget(QueuePair& qp) {
  const std::lock_guard guard{waiting_lock_};
  if (in_line_.erase(&qp) > 0) std::erase(waiting_, &qp);
}

}  // namespace weft::verbs
