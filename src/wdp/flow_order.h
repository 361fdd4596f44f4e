// The order of a channel's segments at their receiver (spec/wdp-rd 4.3): each waits only for what
// its own flow lacks, and a message for a receive of its queue pair. Most messages are one segment.
//
//   accept() ─ not its turn ─► early, by flow and MSN ─┐
//        └──── its turn ───────────────────────────────┴─► sink: taken
//                                                            └─ no receive ─► waiting, by queue
//                                                            pair
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/types.h"
#include "wdp/flow_table.h"
#include "wdp/rd_limits.h"
#include "wdp/ud_queue.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

// One segment of a flow, as it is given to a queue pair.
struct RdArrival {
  wire::WdpData header;
  Qpn source;
  UdReception how;
};

// Who takes messages.
class RdSink {
 public:
  virtual ~RdSink() = default;
  // False: there is no receive, and the message is to wait. What is dropped counts as taken.
  virtual bool take(const RdArrival& arrival, Bytes payload) = 0;
};

// Of one channel. Not thread-safe.
class FlowOrder {
 public:
  enum class Fate : uint8_t {
    delivered,  // or dropped by the sink
    held,       // behind a gap, or for a receive
    repeated,   // its MSN was there
    too_far,    // no sender is so far ahead
  };
  // Nothing is kept.
  bool may_rest() const { return kept_ == nullptr; }
  // Of a channel that rests, or was at rest.
  FlowTable&& take_flows() { return std::move(expected_); }
  void go_on_with(FlowTable&& flows) { expected_ = std::move(flows); }

  // A segment that comes for the first time. Throws std::bad_alloc before anything has changed.
  Fate accept(const RdArrival& arrival, Bytes payload, RdSink& sink);
  // The queue pair has receives, or is gone: what waits for it goes to the sink.
  void resume(uint8_t index, RdSink& sink);
  // Takes no more: what waits for the queue pair is dropped. Their number.
  size_t give_up(uint8_t index);

  // Bytes and overhead that are kept: all; those in order, that lack a receive alone.
  size_t held_bytes() const { return kept_ ? kept_->early_bytes + kept_->waiting_bytes : 0; }
  size_t waiting_bytes() const { return kept_ ? kept_->waiting_bytes : 0; }
  bool waits_for(uint8_t index) const { return kept_ && kept_->waiting.contains(index); }
  template <class F>
  void each_waiting(F&& f) const {
    if (!kept_) return;
    for (const auto& [index, queue] : kept_->waiting) f(index, queue.size());
  }

 private:
  struct Held {
    RdArrival arrival;
    std::vector<std::byte> payload;
    size_t weight() const { return payload.size() + wire::WdpData::kSize + kDatagramOverhead; }
  };
  static Held copy(const RdArrival& arrival, Bytes payload) {
    return {arrival, {payload.begin(), payload.end()}};
  }
  // What is there while messages are not taken as they come, or not as a whole.
  struct Kept {
    std::map<uint32_t, uint32_t> begun;  // flows in the middle of a message: the next MO
    std::map<uint32_t, std::map<uint64_t, Held>> early;  // by flow, by MSN and MO
    std::map<uint8_t, std::deque<Held>> waiting;         // by queue pair
    size_t early_bytes = 0;
    size_t waiting_bytes = 0;
  };
  Kept& kept() {
    if (!kept_) kept_ = std::make_unique<Kept>();
    return *kept_;
  }
  void let_go_if_empty();
  bool give(const RdArrival& arrival, Bytes payload, RdSink& sink);
  // Of its flow: what is expected next.
  uint32_t offset_of(uint32_t flow) const;
  void advance(uint32_t flow, const RdArrival& taken, size_t bytes);
  void drain(uint32_t flow, RdSink& sink);

  FlowTable expected_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace weft::wdp
