// REQs that a port has refused of late, and the REJ that each got (spec/wdp 4.3: duplicate REQ
// repeats the last answer). A copy that the network brings late is no new call: the first might
// take the place of the second, which its caller has made since, and a program would hear of it
// twice. spec/wdp 4.3 has the passive side keep no state after a REJ; this is little, and forgets.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "wdp/demux.h"

namespace weft::wdp {

// One for each port. Engine holder only.
class Refusals {
 public:
  // Who floods a port drives out what others were told, and then it is as if nothing were kept.
  static constexpr size_t kMost = 64;

  struct Refusal {
    wire::RejReason reason;
    std::vector<std::byte> datagram;  // the REJ
  };
  void remember(const RequestKey& request, Refusal refusal) {
    if (refused_.size() >= kMost) refused_.pop_front();
    refused_.emplace_back(request, std::move(refusal));
  }
  // Valid until the next remember().
  const Refusal* find(const RequestKey& request) const {
    const auto it = std::find_if(refused_.begin(), refused_.end(),
                                 [&](const auto& r) { return r.first == request; });
    return it != refused_.end() ? &it->second : nullptr;
  }

 private:
  std::deque<std::pair<RequestKey, Refusal>> refused_;
};

}  // namespace weft::wdp
