// CTL messages that wait to be sent: few, and none of them worth more memory than that. What is
// dropped for want of room is repeated by whoever needs it.
#pragma once

#include <algorithm>
#include <vector>

#include "base/fixed_ring.h"
#include "wdp/train.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

class CtlOutbox {
 public:
  static constexpr uint32_t kMost = 16;

  void say(const wire::WdpCtl& c) {
    if (waiting_.full()) return;
    c.encode(waiting_.push_back(std::vector<std::byte>(c.size())).data());
  }
  bool empty() const { return waiting_.empty(); }
  void clear() { waiting_.clear(); }
  // One of them, in a train of its own; nothing where the train has something in it.
  void fill(Train& train, const Path& path) {
    if (!train.empty() || waiting_.empty()) return;
    const auto& d = waiting_.front();
    train.begin(d.size(), path);
    std::copy(d.begin(), d.end(), train.stage(d.size()));
    train.close();
    waiting_.pop_front();
    waiting_.trim();
  }

 private:
  FixedRing<std::vector<std::byte>> waiting_{kMost};
};

}  // namespace weft::wdp
