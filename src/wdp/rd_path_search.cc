#include "wdp/rd_path_search.h"

#include "wdp/rd_limits.h"

namespace weft::wdp {
namespace {

// More would be lost together, and gains little.
constexpr size_t kMostBundle = 8192;

}  // namespace

size_t RdPathSearch::bundle_room(bool ipv4) const {
  const size_t known = probe_ && probe_->done() ? probe_->size() : certain_;
  return std::min(kMostBundle, std::max(known, PathProbe::least(ipv4)));
}

bool RdPathSearch::begin(size_t most, bool ipv4, Random& random) {
  if (probe_) return false;
  probe_ = std::make_unique<PathProbe>(most, ipv4, true, random);
  return true;
}

size_t RdPathSearch::segment_room(const PathRoom& room, bool ipv4) {
  if (room.certain) return certain_ = room.most;
  return std::min(room.most, probe_->done() ? probe_->size() : PathProbe::least(ipv4));
}

std::optional<PathProbe::Probe> RdPathSearch::take(Time now) {
  if (until_.is_never() && holds_up_) until_ = now + kPathIsFound;
  const auto probe = probe_->take(now);
  if (!probe) hold_up_no_more();
  return probe;
}

bool RdPathSearch::answered(Xid xid, size_t size) {
  if (!probe_) return false;
  probe_->answered(xid, size);
  if (!probe_->done()) return false;
  hold_up_no_more();
  return true;
}

bool RdPathSearch::tick(Time now) {
  if (probe_) probe_->tick(now);
  if (now < until_) return false;
  hold_up_no_more();
  return true;
}

void RdPathSearch::hold_up_no_more() {
  until_ = Time::never();
  holds_up_ = false;
}

}  // namespace weft::wdp
