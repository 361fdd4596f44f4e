#include "verbs/receives.h"

#include <mutex>
#include <utility>

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
  if (take_own(out)) return true;
  // Said before the last look, so that a post in between is either seen here or rings.
  wanted_.exchange(true);
  if (!own_.take(out)) return false;
  wanted_.store(false, std::memory_order_relaxed);
  return true;
}

bool Receives::take_own(work::Receive& out) {
  if (shared_ != nullptr) return false;
  if (returned_.empty()) return own_.take(out);
  out = returned_.front();
  returned_.pop_front();
  return true;
}

void Receives::give_back(work::TakenReceive receive) {
  if (shared_ != nullptr) return shared_->give_back(std::move(receive));
  returned_.splice(returned_.begin(), receive);
}

bool Receives::out() {
  if (shared_ != nullptr) return shared_->empty_for(owner_);
  if (!returned_.empty() || !own_.empty()) return false;
  wanted_.exchange(true);  // as in take()
  return own_.empty();
}

}  // namespace weft::verbs
