// Carries what the protocol of datagrams counts, which is plain numbers, into the statistics. Each
// keeps what it has carried already.
#pragma once

#include <array>

#include "stats/blocks.h"
#include "wdp/handshake.h"
#include "wdp/rd_channel.h"
#include "wdp/rd_responder.h"
#include "wdp/uc_session.h"
#include "wdp/ud_queue.h"

namespace weft::drive {

class DropTally {
 public:
  void publish(const wdp::DropCounts& now, stats::EngineCounters& to);

 private:
  wdp::DropCounts before_;
};

class RejTally {
 public:
  void publish(const wdp::RejCounts& now, stats::EngineCounters& to);

 private:
  wdp::RejCounts before_;
};

// Of a connection's handshake, which may be looked at again and again.
class HandshakeTally {
 public:
  void publish(const wdp::Handshake& handshake, stats::EngineCounters& to);

 private:
  bool rejected_ = false;
  bool failed_ = false;
};

// Of a call that was made here: by the peer's reason, or by what went wrong. Counts nothing where
// it did not fail, or was withdrawn.
void count_failed_call(const wdp::Handshake& call, stats::EngineCounters& to);

class UcTally {
 public:
  void publish(const wdp::UcSession& session, stats::QpCounters& qp, stats::EngineCounters& engine);

 private:
  wdp::UcCounters before_;
  DropTally drops_;
  uint64_t lost_ = 0;
};

class RdTally {
 public:
  void publish(const wdp::RdChannel& channel, stats::EngineCounters& engine);

 private:
  // Channels are many, and half of a number tells by how much it has grown.
  std::array<uint32_t, 11> before_{};
};

class RdQueueTally {
 public:
  void publish(const wdp::RdResponder& responder, stats::QpCounters& qp,
               stats::EngineCounters& engine);

 private:
  uint64_t refused_ = 0;
  DropTally drops_;
};

class UdTally {
 public:
  void publish(const wdp::UdCounters& now, stats::QpCounters& qp, stats::EngineCounters& engine);

 private:
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  uint64_t unreceived_ = 0;
  uint64_t plain_ = 0;
  DropTally drops_;
};

}  // namespace weft::drive
