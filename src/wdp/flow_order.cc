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

void FlowOrder::let_go_if_empty() {
  if (!kept_) return;
  if (kept_->begun.empty() && kept_->early.empty() && kept_->waiting.empty()) kept_.reset();
}

uint32_t FlowOrder::offset_of(uint32_t flow) const {
  if (!kept_) return 0;
  const auto it = kept_->begun.find(flow);
  return it == kept_->begun.end() ? 0 : it->second;
}

void FlowOrder::advance(uint32_t flow, const RdArrival& taken, size_t bytes) {
  if (taken.header.last) {
    if (kept_) kept_->begun.erase(flow);
    Msn& expected = expected_.next_of(flow);
    expected = next(expected);
  } else {
    kept().begun[flow] = taken.header.mo.value() + static_cast<uint32_t>(bytes);
  }
}

// True: it is delivered. Behind others that wait for the same queue pair it waits, too.
bool FlowOrder::give(const RdArrival& arrival, Bytes payload, RdSink& sink) {
  const uint8_t index = arrival.header.didx;
  if (!waits_for(index) && sink.take(arrival, payload)) return true;
  auto& queue = kept().waiting[index];
  queue.push_back(copy(arrival, payload));
  kept_->waiting_bytes += queue.back().weight();
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
    auto& early = kept().early[flow];
    const auto [at, fresh] = early.try_emplace(place(d.msn, d.mo.value()), copy(arrival, payload));
    if (!fresh) return Fate::repeated;
    kept_->early_bytes += at->second.weight();
    drain(flow, sink);  // as above
    return Fate::held;
  }
  if (!d.last) kept().begun.try_emplace(flow, 0);  // the memory for it
  const bool delivered = give(arrival, payload, sink);
  advance(flow, arrival, payload.size());
  drain(flow, sink);
  return delivered ? Fate::delivered : Fate::held;
}

// What has waited for the segment that came.
void FlowOrder::drain(uint32_t flow, RdSink& sink) {
  if (!kept_) return;
  auto& early = kept_->early;
  const auto it = early.find(flow);
  if (it == early.end()) return let_go_if_empty();
  for (;;) {
    const auto found = it->second.find(place(expected_.next_of(flow), offset_of(flow)));
    if (found == it->second.end()) break;
    const Held& held = found->second;
    if (!held.arrival.header.last) kept_->begun.try_emplace(flow, 0);
    give(held.arrival, held.payload, sink);
    advance(flow, held.arrival, held.payload.size());
    kept_->early_bytes -= held.weight();
    it->second.erase(found);
  }
  if (it->second.empty()) early.erase(it);
  let_go_if_empty();
}

void FlowOrder::resume(uint8_t index, RdSink& sink) {
  if (!waits_for(index)) return;
  const auto it = kept_->waiting.find(index);
  auto& queue = it->second;
  while (!queue.empty() && sink.take(queue.front().arrival, queue.front().payload)) {
    kept_->waiting_bytes -= queue.front().weight();
    queue.pop_front();
  }
  if (queue.empty()) kept_->waiting.erase(it);
  let_go_if_empty();
}

size_t FlowOrder::give_up(uint8_t index) {
  if (!waits_for(index)) return 0;
  const auto it = kept_->waiting.find(index);
  const size_t count = it->second.size();
  for (const Held& h : it->second) kept_->waiting_bytes -= h.weight();
  kept_->waiting.erase(it);
  let_go_if_empty();
  return count;
}

}  // namespace weft::wdp
