// Decides, datagram by datagram, what a FaultSpec does to it. Pure: the carrier of the datagrams
// also carries this out. The simulator's links use it, and the datagram port under WEFT_FAULT.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/fault_spec.h"
#include "base/random.h"

namespace weft {

struct FaultCounts {
  uint64_t seen = 0;
  uint64_t lost = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;  // held back; whether another one overtook it depends on the traffic
  uint64_t corrupted = 0;  // copies of which bits were flipped
};

// What is to become of one datagram.
struct DatagramFate {
  struct Copy {
    Duration delay{0};
    bool may_be_overtaken = false;  // else it goes no earlier than those before it
    uint8_t flips = 0;
    std::array<uint32_t, 3> flip{};  // numbers of bits, all different
    // Flips them.
    void damage(MutableBytes datagram) const;
  };
  uint8_t copies = 1;  // 0: it is lost
  std::array<Copy, 2> copy;
};

// One for each direction of a path, each with a `direction` of its own, or both would lose the
// same. The same sequence of sizes gives the same fates.
class FaultPlan {
 public:
  FaultPlan(const FaultSpec& spec, uint64_t direction);

  // For the next datagram, which has so many bytes.
  DatagramFate next(size_t bytes);
  // From the next datagram on; the seed is not looked at.
  void change(const FaultSpec& spec) { spec_ = spec; }
  const FaultCounts& counts() const { return counts_; }

 private:
  bool draw_loss();
  DatagramFate::Copy draw_copy(size_t bytes);

  FaultSpec spec_;
  SeededRandom random_;
  FaultCounts counts_;
  bool in_burst_ = false;
};

}  // namespace weft
