#include "wdp/rd_flows.h"

namespace weft::wdp {

RdFlows::Flow& RdFlows::to(const UdDestination& to) {
  const Key key{to.path.to, to.path.from, index_of(to.qpn)};
  if (latest_ != flows_.end() && latest_->first == key && latest_->second.busy)
    return latest_->second;
  auto it = flows_.find(key);
  if (it == flows_.end()) {
    while (rest_ >= kResting) forget(resting_.front());
    it = flows_.try_emplace(key).first;
    resting_.push_back(it->second);
    ++rest_;
  }
  latest_ = it;
  Flow& flow = it->second;
  if (!flow.busy && flow.channel == nullptr) {
    flow.path = to.path;
    flow.didx = key.didx;
  }
  return flow;
}

RdFlows::Flow* RdFlows::find(const RdChannel& channel, uint8_t didx) {
  const auto it = by_channel_.find({&channel, didx});
  return it == by_channel_.end() ? nullptr : it->second;
}

void RdFlows::carry(Flow& flow, RdChannel& channel) {
  by_channel_[{&channel, flow.didx}] = &flow;
  flow.channel = &channel;
  channel.keep_awake();
  if (flow.busy) channel.enter();
}

RdFlows::Flow* RdFlows::take_from(const RdChannel& channel) {
  const auto it = by_channel_.lower_bound({&channel, 0});
  if (it == by_channel_.end() || it->first.first != &channel) return nullptr;
  Flow& flow = *it->second;
  by_channel_.erase(it);
  if (flow.busy) flow.channel->leave();
  flow.channel = nullptr;
  return &flow;
}

void RdFlows::set_busy(Flow& flow) {
  if (std::exchange(flow.busy, true)) return;
  flow.unlink();
  --rest_;
  busy_.push_back(flow);
  if (flow.channel != nullptr) flow.channel->enter();
}

void RdFlows::set_resting(Flow& flow) {
  if (!std::exchange(flow.busy, false)) return;
  flow.unlink();
  resting_.push_back(flow);
  ++rest_;
  if (flow.channel != nullptr) flow.channel->leave();
}

void RdFlows::forget(Flow& flow) {
  flow.unlink();
  --rest_;
  if (flow.channel != nullptr) by_channel_.erase({flow.channel, flow.didx});
  latest_ = flows_.end();
  flows_.erase({flow.path.to, flow.path.from, flow.didx});
}

void RdFlows::clear() {
  by_channel_.clear();
  flows_.clear();
  latest_ = flows_.end();
  rest_ = 0;
}

}  // namespace weft::wdp
