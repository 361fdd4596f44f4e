// The flows of an RD queue pair. Each is found by its peer's queue pair, and by the channel that it
// goes by. One whose requests are not all answered is busy, which its channel knows; all others
// rest, and some are kept for the next request.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "base/intrusive_list.h"
#include "wdp/rd_channel.h"
#include "wdp/rd_consumer.h"
#include "wdp/rd_flow.h"

namespace weft::wdp {

// Engine holder only.
class RdFlows {
 public:
  static constexpr size_t kResting = 64;

  // To one queue pair.
  struct Flow : ListHook<struct RdFlowTag> {
    Path path;
    uint8_t didx = 0;
    PathRoom room;
    RdChannel* channel = nullptr;
    RdFlow requests;
    std::optional<Duration> pause;  // begins with the next turn
    Time wait_until;
    bool busy = false;
  };

  RdFlows() = default;
  RdFlows(const RdFlows&) = delete;
  RdFlows& operator=(const RdFlows&) = delete;

  size_t size() const { return flows_.size(); }
  // The one to there. It is made if there is none, and another one that rests may be forgotten for
  // it.
  Flow& to(const UdDestination& to);
  // Null: none goes by this channel to there.
  Flow* find(const RdChannel& channel, uint8_t didx);
  // It goes by this channel.
  void carry(Flow& flow, RdChannel& channel);
  // One that went by this channel, and goes by none now. Null: there is none left.
  Flow* take_from(const RdChannel& channel);

  void set_busy(Flow& flow);
  void set_resting(Flow& flow);
  // Only of one that rests.
  void forget(Flow& flow);
  void clear();

  // `f` may let the flow rest that it is given.
  template <class F>
  void for_each_busy(F&& f) {
    busy_.for_each(std::forward<F>(f));
  }
  // Another one is the first next time.
  void turn() {
    if (Flow* const first = busy_.pop_front()) busy_.push_back(*first);
  }

 private:
  struct Key {
    Endpoint to;
    Gid from;
    uint8_t didx = 0;
    friend constexpr auto operator<=>(const Key&, const Key&) = default;
  };
  using Flows = std::map<Key, Flow>;
  using List = IntrusiveList<Flow, struct RdFlowTag>;

  Flows flows_;
  Flows::iterator latest_ = flows_.end();  // that was asked for
  std::map<std::pair<const RdChannel*, uint8_t>, Flow*> by_channel_;
  List busy_;
  List resting_;
  size_t rest_ = 0;  // in `resting_`
};

}  // namespace weft::wdp
