#include "wdp/flow_order.h"

namespace weft::wdp {
namespace {

uint32_t flow_of(const wire::WdpData& d) {
  return FlowTable::flow_of(d.sidx, d.didx, d.is_response());
}

uint64_t place(Msn msn, uint32_t offset) {
  return uint64_t{msn.value()} << 32 | offset;
}

}  // namespace

uint32_t FlowOrder::offset_of(uint32_t flow) const {
  const auto it = begun_.find(flow);
  return it == begun_.end() ? 0 : it->second;
}

void FlowOrder::advance(uint32_t flow, const RdArrival& taken, size_t bytes) {
  if (taken.header.last) {
    begun_.erase(flow);
    Msn& expected = expected_.next_of(flow);
    expected = next(expected);
  } else {
    begun_[flow] = taken.header.mo.value() + static_cast<uint32_t>(bytes);
  }
}

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
  const wire::WdpData& d = arrival.header;
  const uint32_t flow = flow_of(d);
  const int32_t ahead = distance(expected_.next_of(flow), d.msn);
  if (ahead > static_cast<int32_t>(kCsnWindow)) return Fate::too_far;
  const uint32_t offset = ahead == 0 ? offset_of(flow) : 0;
  if (ahead < 0 || (ahead == 0 && d.mo.value() < offset)) {
    // One comes again behind which memory was missing.
    drain(flow, sink);
    return Fate::repeated;
  }
  if (ahead > 0 || d.mo.value() != offset) {
    auto& early = early_[flow];
    const auto [at, fresh] = early.try_emplace(place(d.msn, d.mo.value()), copy(arrival, payload));
    if (!fresh) return Fate::repeated;
    early_bytes_ += at->second.weight();
    drain(flow, sink);  // as above
    return Fate::held;
  }
  if (!d.last) begun_.try_emplace(flow, 0);  // the memory for it
  const bool delivered = give(arrival, payload, sink);
  advance(flow, arrival, payload.size());
  drain(flow, sink);
  return delivered ? Fate::delivered : Fate::held;
}

// What has waited for the segment that came.
void FlowOrder::drain(uint32_t flow, RdSink& sink) {
  const auto it = early_.find(flow);
  if (it == early_.end()) return;
  for (;;) {
    const auto found = it->second.find(place(expected_.next_of(flow), offset_of(flow)));
    if (found == it->second.end()) break;
    const Held& held = found->second;
    if (!held.arrival.header.last) begun_.try_emplace(flow, 0);
    give(held.arrival, held.payload, sink);
    advance(flow, held.arrival, held.payload.size());
    early_bytes_ -= held.weight();
    it->second.erase(found);
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
