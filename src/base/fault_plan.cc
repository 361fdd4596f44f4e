#include "base/fault_plan.h"

#include <algorithm>

#include "base/draw.h"

namespace weft {

void DatagramFate::Copy::damage(MutableBytes datagram) const {
  for (size_t i = 0; i < flips; ++i) {
    datagram[flip[i] / 8] ^= static_cast<std::byte>(1U << flip[i] % 8);
  }
}

FaultPlan::FaultPlan(const FaultSpec& spec, uint64_t direction)
    : spec_(spec), random_(spec.seed * 0x9e3779b97f4a7c15U + direction) {}

// Two states (Gilbert's model): in a burst everything is lost, outside nothing is. The chance to
// stay in it gives the length, the chance to enter it then follows from the share. Losses that know
// nothing of each other come 1 / (1 - share) in a row; that is the least.
bool FaultPlan::draw_loss() {
  if (spec_.loss >= 1) {
    in_burst_ = true;
    random_.next();
    return true;
  }
  const double leave = 1 / std::max(spec_.burst, 1 / (1 - spec_.loss));
  const double enter = spec_.loss / (1 - spec_.loss) * leave;
  in_burst_ = draw_chance(random_, in_burst_ ? 1 - leave : enter) && spec_.loss > 0;
  return in_burst_;
}

DatagramFate::Copy FaultPlan::draw_copy(size_t bytes) {
  DatagramFate::Copy c;
  c.delay = spec_.delay + draw_up_to(random_, spec_.jitter);
  c.may_be_overtaken = draw_chance(random_, spec_.reorder);
  const Duration longer = draw_up_to(random_, spec_.reorder_delay);
  if (c.may_be_overtaken) {
    ++counts_.reordered;
    c.delay += longer;
  }
  const bool damaged = draw_chance(random_, spec_.corrupt);
  const uint64_t where = random_.next();
  const uint64_t bits = bytes * 8;
  if (damaged && bits > 0) {
    ++counts_.corrupted;
    // Different bits, or two flips might undo each other.
    c.flips = static_cast<uint8_t>(1 + (where >> 60) % 3);
    for (size_t i = 0; i < c.flips; ++i) {
      c.flip[i] = static_cast<uint32_t>((where % bits + i * 7) % bits);
    }
  }
  return c;
}

DatagramFate FaultPlan::next(size_t bytes) {
  ++counts_.seen;
  DatagramFate fate;
  const bool lost = draw_loss();
  const bool twice = draw_chance(random_, spec_.duplicate);
  if (lost) {
    ++counts_.lost;
    fate.copies = 0;
    return fate;
  }
  fate.copy[0] = draw_copy(bytes);
  if (twice) {
    ++counts_.duplicated;
    fate.copies = 2;
    fate.copy[1] = draw_copy(bytes);
  }
  return fate;
}

}  // namespace weft
