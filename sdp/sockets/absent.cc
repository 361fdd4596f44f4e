#include "sdp/sockets/absent.h"

namespace weft::sdp {

bool Absent::knows(const StatName& place, Clock::time_point now) {
  const std::lock_guard holding{lock_};
  const auto found = until_.find({place.address, place.port});
  return found != until_.end() && now < found->second;
}

void Absent::note(const StatName& place, Clock::time_point now) {
  const std::lock_guard holding{lock_};
  if (until_.size() >= kMost) {
    std::erase_if(until_, [now](const auto& entry) { return entry.second <= now; });
    if (until_.size() >= kMost) return;
  }
  until_[{place.address, place.port}] = now + kRemembered;
}

}  // namespace weft::sdp
