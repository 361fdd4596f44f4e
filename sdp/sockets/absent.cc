#include "sdp/sockets/absent.h"

#include <algorithm>

namespace weft::sdp {
namespace {

// A refusal is there at once. What is silent is waited for, and a stranger hears a Hello that it
// does not understand.
bool is_dear(Fallback why) {
  return why == Fallback::silent || why == Fallback::stranger;
}

}  // namespace

bool Absent::knows(const StatName& place, Clock::time_point now) {
  const std::lock_guard holding{lock_};
  const auto found = records_.find({place.address, place.port});
  return found != records_.end() && now < found->second.until;
}

void Absent::note(const StatName& place, Fallback why, Clock::time_point now) {
  const std::lock_guard holding{lock_};
  const Key key{place.address, place.port};
  if (records_.size() >= kMost && !records_.contains(key)) {
    std::erase_if(records_, [now](const auto& entry) { return entry.second.until <= now; });
    if (records_.size() >= kMost) return;
  }
  Record& record = records_[key];
  // Others that were asked at the same time count once.
  if (is_dear(why) && now < record.until) return;
  // What was seen long ago says little of today.
  const bool goes_on =
      is_dear(why) && record.remembered > std::chrono::seconds{0} && now < record.until + kLongest;
  record.remembered = goes_on ? std::min(2 * record.remembered, kLongest) : kRemembered;
  record.until = now + record.remembered;
}

void Absent::forget(const StatName& place) {
  const std::lock_guard holding{lock_};
  records_.erase({place.address, place.port});
}

}  // namespace weft::sdp
