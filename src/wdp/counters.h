// What a receiver of WDP counts. All only grow; names are those of the statistics.
#pragma once

#include <array>
#include <cstdint>

#include "wire/wdp_drop.h"

namespace weft::wdp {

// Datagrams dropped, by reason.
class DropCounts {
 public:
  void count(wire::WdpDrop why) { ++counts_[static_cast<size_t>(why)]; }
  uint64_t of(wire::WdpDrop why) const { return counts_[static_cast<size_t>(why)]; }
  uint64_t total() const {
    uint64_t sum = 0;
    for (const uint64_t n : counts_) sum += n;
    return sum;
  }

 private:
  std::array<uint64_t, wire::kWdpDropCount> counts_{};
};

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
