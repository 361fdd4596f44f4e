#include "wdp/flow_order.h"

namespace weft::wdp {

// True: it is delivered. Behind others that wait for the same queue pair it waits, too.
bool FlowOrder::give(const RdArrival& arrival, Bytes payload, RdSink& sink) {
  const uint8_t index = arrival.header.didx;
  if (!waits_for(index) && sink.take(arrival, payload)) return true;
  auto& queue = waiting_[index];
  queue.push_back(copy(arrival, payload));
  waiting_bytes_ += queue.back().weight();
  return false;
}

FlowOrder::Fate FlowOrder::accept(const RdArrival& arrival, Bytes payload, RdSink& sink) {
  const uint16_t flow = FlowTable::flow_of(arrival.header.sidx, arrival.header.didx);
  Msn& expected = expected_.next_of(flow);
  const int32_t ahead = distance(expected, arrival.header.msn);
  if (ahead < 0) return Fate::repeated;
  if (ahead > static_cast<int32_t>(kCsnWindow)) return Fate::too_far;
  if (ahead > 0) {
    auto& early = early_[flow];
    const auto [place, fresh] =
        early.try_emplace(arrival.header.msn.value(), copy(arrival, payload));
    if (!fresh) return Fate::repeated;
    early_bytes_ += place->second.weight();
    drain(flow, sink);  // what was left for want of memory
    return Fate::held;
  }
  const bool delivered = give(arrival, payload, sink);
  expected = next(expected);
  drain(flow, sink);
  return delivered ? Fate::delivered : Fate::held;
}

// What has waited for the message that came.
void FlowOrder::drain(uint16_t flow, RdSink& sink) {
  const auto it = early_.find(flow);
  if (it == early_.end()) return;
  Msn& expected = expected_.next_of(flow);
  for (;;) {
    const auto found = it->second.find(expected.value());
    if (found == it->second.end()) break;
    give(found->second.arrival, found->second.payload, sink);
    early_bytes_ -= found->second.weight();
    it->second.erase(found);
    expected = next(expected);
  }
  if (it->second.empty()) early_.erase(it);
}

void FlowOrder::resume(uint8_t index, RdSink& sink) {
  const auto it = waiting_.find(index);
  if (it == waiting_.end()) return;
  auto& queue = it->second;
  while (!queue.empty() && sink.take(queue.front().arrival, queue.front().payload)) {
    waiting_bytes_ -= queue.front().weight();
    queue.pop_front();
  }
  if (queue.empty()) waiting_.erase(it);
}

size_t FlowOrder::give_up(uint8_t index) {
  const auto it = waiting_.find(index);
  if (it == waiting_.end()) return 0;
  const size_t count = it->second.size();
  for (const Held& h : it->second) waiting_bytes_ -= h.weight();
  waiting_.erase(it);
  return count;
}

}  // namespace weft::wdp
