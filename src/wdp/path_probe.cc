#include "wdp/path_probe.h"

#include <algorithm>

namespace weft::wdp {
namespace {

// UDP payloads of the usual MTUs: 9000, 4352, 1500, 1420 (tunnels), 1280 over IPv6, 576.
constexpr std::array<size_t, 6> kSteps = {8952, 4304, 1452, 1372, 1232, 548};

}  // namespace

PathProbe::PathProbe(size_t size, bool on, Random& random)
    : size_(size),
      done_(!on || size <= kSteps.back()),
      xid_(static_cast<uint32_t>(random.next())) {}

void PathProbe::step_down() {
  tries_ = 0;
  const auto* lower =
      std::find_if(kSteps.begin(), kSteps.end(), [&](size_t s) { return s < size_; });
  if (lower != kSteps.end()) size_ = *lower;
  // The least is what every path is held to carry.
  if (size_ <= kSteps.back()) done_ = true;
}

std::optional<PathProbe::Probe> PathProbe::take(Time now) {
  if (!ready(now)) return {};
  if (tries_ == kTries) {
    step_down();
    if (done_) return {};
  }
  ++tries_;
  next_ = now + kEvery;
  return Probe{size_, xid_};
}

void PathProbe::answered(Xid xid, size_t size) {
  if (xid == xid_ && size == size_) done_ = true;
}

void PathProbe::limit(size_t size) {
  if (size >= size_) return;
  size_ = size;
  tries_ = 0;
}

}  // namespace weft::wdp
