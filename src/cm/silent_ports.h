// UDP ports of peers where no channel has opened in time: for a minute their connections begin by
// TCP at once (spec/wdp-rd 7.5).
#pragma once

#include <map>
#include <mutex>

#include "base/time.h"
#include "wdp/endpoint.h"

namespace weft::cm {

// Any thread.
class SilentPorts {
 public:
  // Throws std::bad_alloc.
  void add(const wdp::Endpoint& port, Time now) {
    const std::lock_guard guard{lock_};
    std::erase_if(until_, [&](const auto& p) { return now >= p.second; });
    if (until_.size() < kMost) until_[port] = now + kAskAgain;
  }
  bool has(const wdp::Endpoint& port, Time now) {
    const std::lock_guard guard{lock_};
    const auto it = until_.find(port);
    return it != until_.end() && now < it->second;
  }

 private:
  static constexpr size_t kMost = 1024;
  static constexpr Duration kAskAgain = std::chrono::minutes{1};
  std::mutex lock_;
  std::map<wdp::Endpoint, Time> until_;
};

}  // namespace weft::cm
