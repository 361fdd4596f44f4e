// Carries what the protocol of datagrams counts, which is plain numbers, into the statistics. Each
// keeps what it has carried already.
#pragma once

#include "stats/blocks.h"
#include "wdp/uc_session.h"
#include "wdp/ud_queue.h"

namespace weft::engine {

class DropTally {
 public:
  void carry(const wdp::DropCounts& now, stats::EngineCounters& to);

 private:
  wdp::DropCounts before_;
  uint64_t total_ = 0;
};

class UcTally {
 public:
  void carry(const wdp::UcSession& session, stats::QpCounters& qp, stats::EngineCounters& engine);

 private:
  wdp::UcCounters before_;
  DropTally drops_;
  uint64_t lost_ = 0;
};

class UdTally {
 public:
  void carry(const wdp::UdCounters& now, stats::QpCounters& qp, stats::EngineCounters& engine);

 private:
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  uint64_t unreceived_ = 0;
  DropTally drops_;
};

}  // namespace weft::engine
