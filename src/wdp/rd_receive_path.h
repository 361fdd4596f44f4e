// What a channel receives (spec/wdp-rd 4): each datagram once, each flow in order, and when to say
// so.
#pragma once

#include "wdp/csn_window.h"
#include "wdp/flow_order.h"
#include "wdp/rd_budget.h"
#include "wdp/right_sizing.h"

namespace weft::wdp {

// All only grow.
struct RdReceiveCounters {
  uint64_t received = 0;   // datagrams, copies included
  uint64_t reordered = 0;  // that came with a gap before them
  uint64_t held = 0;       // messages that waited, for others or for a receive
  uint64_t given_up = 0;   // that waited for a receive in vain
  uint64_t marked = 0;     // datagrams, by a router (ecn.h)
};

// Of one channel. Not thread-safe.
class RdReceivePath {
 public:
  // `first`: the peer's first CSN. `window`: bytes that may be under way to this side at most,
  // where the path is short. `extra`: for what more of them there are on a long one.
  RdReceivePath(Csn first, size_t window, RdExtra extra = {})
      : csns_(first), usual_(std::min(window, kChannelHold)), extra_(std::move(extra)) {}

  // --- at rest (spec/wdp-rd 2.5)
  struct Resting {
    Csn cum;
    uint32_t marked = 0;  // datagrams, by a router
  };
  // Has all been said of what has come, and is nothing kept?
  bool may_rest() const {
    return !pending() && !partly_ && !csns_.gaps() && order_.may_rest() && extra_.bytes() == 0 &&
           tick_at_.is_never();
  }
  Resting resting() const { return {cum(), marked()}; }
  FlowTable&& take_flows() { return order_.take_flows(); }
  // It begins where that one was.
  void wake(const Resting& before, FlowTable&& flows) {
    marked_before_ = before.marked;
    order_.go_on_with(std::move(flows));
  }

  // Header and CRC of a datagram were right. Why it is dropped, if it is; `bytes` behind its
  // header.
  Result<Ok, wire::WdpDrop> admit(Csn csn, size_t bytes);
  // A message of it. Each is taken once: where there is no memory for the next one, all come again.
  Result<Ok, wire::WdpDrop> accept(const RdArrival& arrival, Bytes payload, RdSink& sink, Time now);
  // That was the last one. `weight`: of the datagram, as the sender counts it. `messages`: that
  // their sender has an acknowledgement for alone, or 1. `marked`: by a router (ecn.h).
  void taken(Csn csn, size_t weight, uint32_t messages, bool ack_requested, bool marked, Time now);
  // The queue pair has receives, or is gone.
  void resume(uint8_t index, RdSink& sink);
  bool waits_for(uint8_t index) const { return order_.waits_for(index); }
  bool holds_nothing() const { return order_.held_bytes() == 0; }
  // Bytes of messages that lack a receive alone.
  size_t waiting_bytes() const { return order_.waiting_bytes(); }
  void give_up();
  // Nothing comes any more.
  void ends() { extra_.release(); }
  // Was nothing taken of what CUM does not name?
  bool has_all_before_cum() const { return !csns_.gaps() && !partly_; }

  // --- acknowledgement
  void acknowledge_now() { due_ = true; }
  // What is not said yet is said at once: the program is about to go.
  void flush() { due_ = due_ || pending_ > 0; }
  bool due(Time now) const { return due_ || now >= due_at_; }
  bool pending() const { return due_ || pending_ > 0; }
  // Says all of it. `trip`: the round trip is no longer, as far as the sender at this end knows.
  wire::WdpAck acknowledgement(Duration trip, Time now);
  Csn cum() const { return csns_.cum(); }

  // --- the window on a long path (spec/wdp-rd 4.5)
  // Bytes that may be under way to this side when nothing waits.
  size_t most() const { return usual_ + extra_.bytes(); }
  const RightSizing& sizing() const { return sizing_; }

  Time deadline() const { return std::min({due_ ? Time::never() : due_at_, tick_at_, rests_at()}); }
  void tick(Time now);
  const RdReceiveCounters& counters() const { return counters_; }

 private:
  size_t window() const {
    return most() > order_.waiting_bytes() ? most() - order_.waiting_bytes() : 0;
  }
  // Never, where there is nothing to be given back.
  Time rests_at() const {
    const bool rests = extra_.bytes() > 0 && holds_nothing();
    return rests ? newest_at_ + kWindowRests : Time::never();
  }
  // Since the channel stands.
  uint32_t marked() const { return marked_before_ + static_cast<uint32_t>(counters_.marked); }
  void widen();
  void watch_patience(Time now);

  CsnWindow csns_;
  FlowOrder order_;
  const size_t usual_;
  RdExtra extra_;
  RightSizing sizing_;
  size_t told_ = 0;       // the window that the peer knows of
  uint32_t pending_ = 0;  // messages, or datagrams, that are not acknowledged
  bool due_ = false;
  bool partly_ = false;  // one was not taken whole: it is to come again
  Time due_at_ = Time::never();
  Time newest_at_;
  Csn newest_;
  uint32_t marked_before_ = 0;
  uint32_t patience_ = 0;  // ticks in which nothing was taken
  Time tick_at_ = Time::never();
  RdReceiveCounters counters_;
};

}  // namespace weft::wdp
