// What a receiver of WDP counts. All only grow; names are those of the statistics.
#pragma once

#include <array>
#include <cstdint>

#include "wire/wdp_ctl.h"
#include "wire/wdp_drop.h"

namespace weft::wdp {

// How often there was each of `kReasons` reasons, the first of which is `kFirst`.
template <class Reason, size_t kReasons, size_t kFirst>
class ReasonCounts {
 public:
  void count(Reason why) {
    ++counts_.at(static_cast<size_t>(why) - kFirst);
    ++total_;
  }
  uint64_t of(Reason why) const { return counts_.at(static_cast<size_t>(why) - kFirst); }
  uint64_t total() const { return total_; }

 private:
  std::array<uint64_t, kReasons> counts_{};
  uint64_t total_ = 0;
};
using DropCounts = ReasonCounts<wire::WdpDrop, wire::kWdpDropCount, 0>;  // datagrams dropped
using RejCounts = ReasonCounts<wire::RejReason, wire::kRejReasons, 1>;   // REJs sent

// Of one UC session.
struct UcCounters {
  uint64_t datagrams_sent = 0;
  uint64_t messages_sent = 0;

  uint64_t datagrams_received = 0;  // that bore the right token, CRC and all
  uint64_t bytes_placed = 0;
  uint64_t write_bytes_placed = 0;  // of these, of RDMA Writes
  uint64_t reordered = 0;           // came after one with a higher PSN
  uint64_t late = 0;                // of these, after the gap that they fill was given up
  uint64_t held = 0;                // waited behind a gap

  uint64_t messages_complete = 0;    // Sends and Writes with immediate: those that are noticed
  uint64_t messages_incomplete = 0;  // of these, given up with bytes missing
  uint64_t messages_without_receive = 0;
  uint64_t messages_too_long = 0;  // for their receive

  uint64_t reads_answered = 0;  // ranges
  uint64_t reads_complete = 0;
  uint64_t reads_failed = 0;
  uint64_t ranges_repeated = 0;  // re-requests

  uint64_t paths_narrowed = 0;  // probes that settled for less

  uint64_t errors_sent = 0;
  uint64_t errors_received = 0;

  DropCounts drops;
};

}  // namespace weft::wdp
