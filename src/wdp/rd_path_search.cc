#include "wdp/rd_path_search.h"

#include "wdp/rd_limits.h"

namespace weft::wdp {
namespace {

// More would be lost together, and gains little.
constexpr size_t kMostBundle = 8192;

}  // namespace

size_t RdPathSearch::bundle_room(bool ipv4) const {
  return std::min(kMostBundle, std::max(room_, PathProbe::least(ipv4)));
}

bool RdPathSearch::begin(size_t most, bool ipv4, Random& random) {
  if (probe_) return false;
  probe_ = std::make_unique<PathProbe>(most, ipv4, true, random);
  return true;
}

size_t RdPathSearch::segment_room(size_t most, bool certain, bool ipv4) {
  if (certain) return room_ = most;
  if (probe_->done()) return room_ = std::min(most, probe_->size());
  return std::min(most, PathProbe::least(ipv4));
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
