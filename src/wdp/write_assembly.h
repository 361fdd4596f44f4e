// Writes with immediate that are arriving at a UC queue pair (spec/wdp-uc 3.6): which of their
// segments are placed. At most 16 at a time; one more gives up the oldest.
#pragma once

#include <array>

#include "wdp/counters.h"
#include "wdp/msn_window.h"
#include "wdp/segment_map.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

class WriteAssembly {
 public:
  explicit WriteAssembly(UcCounters& counters) : counters_(counters) {}

  struct Context {
    bool open = false;
    wire::WdpData header;  // of its first segment that came, TO taken back to the message's
    Psn last;              // the highest of its PSNs
    SegmentMap came;
  };

  // The message that the segment belongs to; opened where it is new. `messages` learns which ones
  // are given up for it.
  Result<Context*, wire::WdpDrop> find(const wire::WdpData& d, MsnWindow& messages);
  // find() would have a context for it without giving up another; changes nothing. A message of one
  // segment needs none.
  bool takes(const wire::WdpData& d, const MsnWindow& messages) const;
  // The segment is in its place. True when that was the last one: the context is free again.
  bool placed(Context& c, const wire::WdpData& d, MsnWindow& messages);

  // The window of MSNs has moved: those that fell out are given up.
  void forget_stale(const MsnWindow& messages);
  void restart();
  size_t open() const { return open_; }
  void trim();

 private:
  void give_up(Context& c);
  Result<Context*, wire::WdpDrop> of_message(Context& c, const wire::WdpData& d);

  UcCounters& counters_;
  size_t open_ = 0;
  std::array<Context, kMostContexts> contexts_;
  size_t latest_ = 0;  // segments of a message follow each other mostly
};

}  // namespace weft::wdp
