// The next MSN of each flow of a channel. Flows are never forgotten while their channel lives, and
// connections that come and go begin many: eight bytes for each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace weft::wdp {

class FlowTable {
 public:
  // Of queue pairs of both ends. What answers Reads and atomics is a flow of its own.
  static uint32_t flow_of(uint8_t sidx, uint8_t didx, bool responses = false) {
    return static_cast<uint32_t>(responses) << 16 | static_cast<uint32_t>(sidx) << 8 | didx;
  }

  // 1 where the flow begins. Good until the next call. Throws std::bad_alloc; then nothing has
  // changed.
  Msn& next_of(uint32_t flow) {
    auto it = std::lower_bound(flows_.begin(), flows_.end(), flow,
                               [](const Flow& f, uint32_t wanted) { return f.flow < wanted; });
    if (it == flows_.end() || it->flow != flow) it = flows_.insert(it, {flow, Msn{1}});
    return it->next;
  }

 private:
  struct Flow {
    uint32_t flow;
    Msn next;
  };
  std::vector<Flow> flows_;  // sorted
};

}  // namespace weft::wdp
