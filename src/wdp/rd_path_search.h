// What the path of a channel carries of segments (spec/wdp-rd 5.5): what every path does, until the
// peer has answered a larger probe. Who begins to look for it sends segments of type RD, or several
// messages at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "wdp/path_probe.h"
#include "wdp/ud_consumer.h"

namespace weft::wdp {

// Of one channel. Engine holder only. Sizes are bytes of UDP payload.
class RdPathSearch {
 public:
  // Of a datagram that several messages share.
  size_t bundle_room(bool ipv4) const;
  // Of a segment. If the way does not take `room` for certain begin() was called, and until the
  // search is over it is what each path carries.
  size_t segment_room(const PathRoom& room, bool ipv4);
  // Was it called?
  bool has_begun() const { return probe_ != nullptr || certain_ > 0; }
  // False: it has begun already.
  bool begin(size_t most, bool ipv4, Random& random);

  // Long messages wait for it: a second at most, from the first probe on.
  bool holds_up() const { return probe_ && !probe_->done() && holds_up_; }

  bool ready(Time now) const { return probe_ && probe_->ready(now); }
  // The probe that is due; none: nothing is held up any more.
  std::optional<PathProbe::Probe> take(Time now);
  // True: nothing is held up any more.
  bool answered(Xid xid, size_t size);
  // The kernel knows that the path carries no more.
  void limit(size_t size) {
    if (probe_) probe_->limit(size);
  }

  Time deadline() const { return probe_ ? std::min(until_, probe_->deadline()) : Time::never(); }
  // True: nothing is held up any more.
  bool tick(Time now);

 private:
  void hold_up_no_more();

  std::unique_ptr<PathProbe> probe_;  // from begin() on
  bool holds_up_ = true;
  Time until_ = Time::never();  // it does
  size_t certain_ = 0;          // what the path carries without a question
};

}  // namespace weft::wdp
