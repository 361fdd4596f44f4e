// The requests of an RD queue pair (spec/wdp-rd 6): which flow each goes by, its segments into
// channels, and what the peers answer.
//
//   send queue ─ in order ─► waiting ─ segments ─► sent ─ RESP, responses ─► complete, in order
//                              ▲    of a flow        │
//                              └──── RNR ────────────┘
//
// A flow that waits, for its peer's receives or for a channel, holds up no other flow. Completions
// are in the order of the send queue, whatever the flow.
//
// Above 400 lines with its source: a request passes through all of it.
#pragma once

#include <optional>

#include "wdp/rd_consumer.h"
#include "wdp/rd_flows.h"
#include "wdp/rd_limits.h"
#include "wire/wdp_messages.h"

namespace weft::wdp {

// Engine holder only.
class RdRequester {
 public:
  struct Parameters {
    Qpn own_qpn;
    QKey q_key;
    ClientId client = 0;
    uint8_t rnr_retry = kRnrForEver;
  };
  RdRequester(RdConsumer& consumer, const Parameters& parameters);
  RdRequester(const RdRequester&) = delete;
  RdRequester& operator=(const RdRequester&) = delete;

  // Something may be sent.
  bool ready(Time now);
  // Hands what the channels take to them.
  void send(Time now);
  // A channel has room, or is there.
  void resume() { blocked_ = false; }

  // --- what the peers say
  void answered(RdChannel& channel, const wire::WdpResponse& response);
  // A segment of the answer to a Read or an atomic.
  void take(RdChannel& channel, const wire::WdpData& d, Bytes payload);
  void channel_ended(const RdChannel& channel);

  // When something that waits is to be sent again.
  Time deadline();
  // Requests that are not begun stay where they are.
  void hold(bool on) { held_ = on; }
  // Each request that was begun is complete.
  bool idle() const { return queue_.head() == next_; }
  size_t flows() const { return flows_.size(); }
  void set_q_key(QKey key) { parameters_.q_key = key; }
  void set_rnr_retry(uint8_t retry) { parameters_.rnr_retry = retry; }
  // Nothing is asked for any more: peers that have a part of a message hear that this is all. Where
  // there is no memory to say so, their channels end. Nothing is thrown, and nobody may call back.
  void leave();

 private:
  using Flow = RdFlows::Flow;

  void dispatch();
  Flow& flow_to(const UdDestination& to);
  void send(Flow& flow, Time now);
  bool find_channel(Flow& flow, Time now);
  std::optional<uint16_t> stride(const Flow& flow, const work::SendWqe& w);
  bool begin_message(Flow& flow);
  bool put_segment(Flow& flow);
  RdSegment segment(const Flow& flow) const;
  void end_message(Flow& flow);
  void say_end(const Flow& flow, bool opens);
  void open_again(Flow& flow);
  void forget_abandoned(Flow& flow, Msn msn);
  void acknowledged(Flow& flow, Msn msn);
  void refused(Flow& flow, size_t at, Duration pause);
  void finish(Flow& flow, uint64_t request, work::Status status);
  void finish(uint64_t request, work::Status status);
  void fail_all(Flow& flow, work::Status status);
  void begin_again(Flow& flow);
  void settle(Flow& flow);
  void say_last_words(Flow& flow);
  void complete();

  RdConsumer& consumer_;
  work::SendQueue& queue_;
  Parameters parameters_;
  RdFlows flows_;
  uint64_t next_;       // request to be given to its flow
  uint32_t reads_ = 0;  // given to their flows, and not answered
  bool held_ = false;
  bool blocked_ = false;  // until a channel has room, or is there
};

}  // namespace weft::wdp
