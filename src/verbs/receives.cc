#include "verbs/receives.h"

#include <mutex>

namespace weft::verbs {

Outcome<Ok> Receives::post(const ReceiveRequest* requests, size_t count, size_t& posted) {
  Outcome<Ok> outcome{Ok{}};
  const std::lock_guard guard{lock_};
  for (; posted < count; ++posted) {
    outcome = own_.post(requests[posted]);
    if (!outcome.ok()) break;
  }
  return outcome;
}

bool Receives::take(work::Receive& out) {
  if (shared_ != nullptr) return shared_->take(out, owner_);
  if (own_.take(out)) return true;
  // Said before the last look, so that a post in between is either seen here or rings.
  wanted_.exchange(true);
  if (!own_.take(out)) return false;
  wanted_.store(false, std::memory_order_relaxed);
  return true;
}

bool Receives::out() {
  if (shared_ != nullptr) return shared_->empty_for(owner_);
  if (!own_.empty()) return false;
  wanted_.exchange(true);  // as in take()
  return own_.empty();
}

}  // namespace weft::verbs
