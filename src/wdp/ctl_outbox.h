// CTL messages that wait to be sent: few, and none of them worth more memory than that. What is
// dropped for want of room is repeated by whoever needs it.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "wdp/train.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

class CtlOutbox {
 public:
  static constexpr size_t kMost = 16;

  void say(const wire::WdpCtl& c) {
    if (waiting_.size() >= kMost) return;
    waiting_.emplace_back(c.size());
    c.encode(waiting_.back().data());
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
  }

 private:
  std::deque<std::vector<std::byte>> waiting_;
};

}  // namespace weft::wdp
