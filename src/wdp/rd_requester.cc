#include "wdp/rd_requester.h"

#include <algorithm>
#include <new>
#include <utility>

#include "wdp/multicast.h"
#include "wdp/rd_request.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using wire::WdpResponse;
using work::Operation;
using work::SendWqe;
using work::Status;

namespace {

bool is_queue_pair(const UdDestination& to) {
  return wire::is_queue_pair(index_of(to.qpn)) && !is_multicast(to.path.to.address);
}

}  // namespace

RdRequester::RdRequester(RdConsumer& consumer, const Parameters& parameters)
    : consumer_(consumer),
      queue_(consumer.send_queue()),
      parameters_(parameters),
      next_(queue_.head()) {}

// --- requests to their flows

bool RdRequester::ready(Time now) {
  if (!held_ && next_ < queue_.tail() && !(queue_.at(next_).fence && reads_ > 0)) return true;
  bool any = false;
  busy_.for_each([&](const Flow& f) {
    if (f.pause || f.idle()) {
      any = true;
    } else if (f.wait_until != Time{}) {
      any |= now >= f.wait_until;
    } else {
      any |= !blocked_ && (f.partial || !f.waiting.empty());
    }
  });
  return any;
}

RdRequester::Flow& RdRequester::flow_to(const UdDestination& to) {
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
    flow.didx = index_of(to.qpn);
    flow.room = consumer_.room(to.path);
  }
  return flow;
}

void RdRequester::dispatch() {
  for (; !held_ && next_ < queue_.tail(); ++next_, complete()) {
    SendWqe& w = queue_.at(next_);
    // InfiniBand 10.8.3.2: not before the Reads and atomics before it.
    if (w.fence && reads_ > 0) return;
    const UdDestination& to = consumer_.destination(w);
    const bool found = is_queue_pair(to);
    Flow* const to_there = found ? &flow_to(to) : nullptr;
    if (found) to_there->waiting.push_back(next_);
    if (work::has_response(w.operation)) ++reads_;
    if (!found) {
      finish(next_, Status::remote_invalid_rd_request);
      continue;
    }
    Flow& flow = *to_there;
    if (!std::exchange(flow.busy, true)) {
      flow.unlink();
      --rest_;
      busy_.push_back(flow);
      if (flow.channel != nullptr) flow.channel->enter();
    }
    blocked_ = false;
  }
}

void RdRequester::send(Time now) {
  dispatch();
  // One that fails or is answered leaves the list. Another one is the first next time.
  busy_.for_each([&](Flow& flow) { send(flow, now); });
  if (Flow* const first = busy_.pop_front()) busy_.push_back(*first);
  blocked_ = true;
}

// --- a flow

RdRequester::Flow* RdRequester::find(const RdChannel& channel, uint8_t didx) {
  const auto it = by_channel_.find({&channel, didx});
  return it == by_channel_.end() ? nullptr : it->second;
}

// False: not yet, or never.
bool RdRequester::find_channel(Flow& flow, Time now) {
  if (flow.channel == nullptr) {
    const UdCarriage carriage = consumer_.carriage(flow.path, now);
    if (carriage.channel == nullptr) {
      if (!carriage.later) fail_all(flow, Status::remote_invalid_rd_request);
      return false;
    }
    by_channel_[{carriage.channel, flow.didx}] = &flow;
    flow.channel = carriage.channel;
    flow.channel->keep_awake();
    flow.channel->enter();
  }
  if (flow.channel->state() == RdChannel::State::setting_up) {
    flow.channel->want_room(parameters_.client);
    return false;
  }
  if (flow.channel->has_responses() && wire::wdp_stride(flow.room.most) > 0) return true;
  fail_all(flow, Status::remote_invalid_rd_request);
  return false;
}

void RdRequester::send(Flow& flow, Time now) {
  if (flow.idle()) return settle(flow);
  if (flow.pause) flow.wait_until = now + *std::exchange(flow.pause, {});
  if (now < flow.wait_until) return;
  flow.wait_until = Time{};
  if (!find_channel(flow, now)) return;
  while (flow.partial || !flow.waiting.empty()) {
    if (!flow.partial && !begin_message(flow)) return;
    if (!put_segment(flow)) return;
  }
}

// False: the message is long, and how it is to be cut is not known yet.
bool RdRequester::choose_stride(Flow& flow) {
  const SendWqe& w = queue_.at(flow.waiting.front());
  flow.stride = wire::wdp_stride(flow.channel->segment_room(flow.room.most, flow.room.certain));
  const bool is_read = w.operation == Operation::read;
  if (is_read || message_length(w) <= flow.stride || !flow.channel->finds_path()) return true;
  flow.channel->want_room(parameters_.client);
  return false;
}

// False: the next one has to wait.
bool RdRequester::begin_message(Flow& flow) {
  if (!choose_stride(flow)) return false;
  const SendWqe& w = queue_.at(flow.waiting.front());
  if (work::has_response(w.operation)) {
    if (flow.reads >= kFlowReads) return false;
  }
  flow.sent.push_back({Msn{}, flow.waiting.front()});
  if (work::has_response(w.operation)) ++flow.reads;
  flow.waiting.pop_front();
  flow.partial = true;
  flow.offset = 0;
  return true;
}

// The one that is next.
RdSegment RdRequester::segment(const Flow& flow) const {
  return {.didx = flow.didx,
          .sidx = index_of(parameters_.own_qpn),
          .msn = flow.sent.back().msn,
          .offset = flow.offset,
          .stride = flow.stride,
          .opens = flow.opening};
}

// False: the channel has no room.
bool RdRequester::put_segment(Flow& flow) {
  SendWqe& w = queue_.at(flow.sent.back().request);
  const bool first = flow.offset == 0;
  if (first) flow.opening = flow.opens;
  WdpData d = request_header(w, segment(flow), consumer_.destination(w), parameters_.q_key);
  if (!flow.channel->has_room(d.payload_size())) {
    flow.channel->want_room(parameters_.client);
    return false;
  }
  std::byte* const at = flow.channel->send(d, first);
  // The RID of a Read is its MSN, which is known now.
  if (d.opcode == Opcode::read_request) {
    d.imm_or_read = d.msn.value();
    d.encode(at - WdpData::kSize);
  }
  if (!write_request(consumer_.memory(), w, d, at)) {
    flow.channel->take_back(d, first);
    const auto last = std::prev(flow.sent.end());
    if (first) {
      flow.partial = false;
    } else {
      end_message(flow);
    }
    finish(flow, last, Status::local_protection);
    return true;
  }
  flow.sent.back().msn = d.msn;
  if (first && d.flow_open) flow.opened = d.msn;
  flow.offset += d.payload_size();
  if (d.last) message_said(flow);
  return true;
}

void RdRequester::message_said(Flow& flow) {
  flow.partial = false;
  if (flow.opening) flow.opens = flow.refused = false;
}

// The message whose segments are under way is given up.
void RdRequester::end_message(Flow& flow) {
  WdpData end = message_end(segment(flow));
  flow.channel->send(end, false);
  message_said(flow);
}

// --- what peers say

void RdRequester::answered(RdChannel& channel, const WdpResponse& r) {
  using Code = WdpResponse::Code;
  Flow* const flow = find(channel, r.ridx);
  if (flow == nullptr) return;
  consumer_.wants_turn();
  blocked_ = false;
  if (r.code == Code::ready) {
    flow->pause.reset();
    flow->wait_until = Time{};
    return;
  }
  if (r.code == Code::ack) return acknowledged(*flow, r.msn);
  const auto at = std::find_if(flow->sent.begin(), flow->sent.end(),
                               [&](const Sent& s) { return s.msn == r.msn; });
  if (at == flow->sent.end()) {
    if (r.code != Code::rnr) (void)forget_abandoned(*flow, r.msn);
    return;
  }
  // One that has no number yet is not what a peer speaks of.
  if (flow->partial && flow->offset == 0 && at + 1 == flow->sent.end()) return;
  if (r.code == Code::rnr) {
    return refused(*flow, at, std::chrono::microseconds{r.delay_us()});
  }
  flow->refusals = 0;
  if (flow->partial && at + 1 == flow->sent.end()) end_message(*flow);
  // Another life of the queue pair takes nothing before F. It has F already if it is behind this.
  if (r.code == Code::not_ready && distance(flow->opened, r.msn) >= 0) flow->opens = true;
  finish(*flow, at, status_of(r.code));
}

// Its answer is over. False: it is none of them.
bool RdRequester::forget_abandoned(Flow& flow, Msn msn) {
  if (std::erase(flow.abandoned, msn) == 0) return false;
  --flow.reads;
  consumer_.wants_turn();
  blocked_ = false;  // a Read may have waited for this
  settle(flow);
  return true;
}

void RdRequester::acknowledged(Flow& flow, Msn msn) {
  flow.refusals = 0;
  // What is not sent whole, or has a response, is not what this speaks of.
  const size_t whole = flow.sent.size() - (flow.partial ? 1 : 0);
  for (size_t i = 0, left = whole; left > 0; --left) {
    const Sent s = flow.sent[i];
    if (distance(s.msn, msn) < 0) break;
    if (work::has_response(queue_.at(s.request).operation)) {
      ++i;
      continue;
    }
    if (i == 0) {
      flow.sent.pop_front();  // as nearly always, and for less
    } else {
      flow.sent.erase(flow.sent.begin() + static_cast<ptrdiff_t>(i));
    }
    finish(s.request, Status::success);
  }
  settle(flow);
}

// spec/wdp-rd 6.5: the peer drops all behind it, too.
void RdRequester::refused(Flow& flow, const std::deque<Sent>::iterator& at, Duration pause) {
  const uint64_t first = at->request;
  if (flow.partial) {
    // Of a message that has no number yet the peer knows nothing.
    if (flow.offset > 0) {
      end_message(flow);
    } else {
      flow.partial = false;
    }
  }
  const auto index = at - flow.sent.begin();
  while (static_cast<ptrdiff_t>(flow.sent.size()) > index) {
    const uint64_t request = flow.sent.back().request;
    flow.waiting.push_front(request);  // may throw: then it is refused once more
    if (work::has_response(queue_.at(request).operation)) --flow.reads;
    flow.sent.pop_back();
  }
  flow.opens = flow.refused = true;
  if (parameters_.rnr_retry == kRnrForEver || ++flow.refusals <= parameters_.rnr_retry) {
    flow.pause = pause;
    return;
  }
  flow.refusals = 0;
  flow.waiting.pop_front();
  finish(first, Status::rnr_retry_exceeded);
  settle(flow);
}

void RdRequester::take(RdChannel& channel, const WdpData& d, Bytes payload) {
  Flow* const flow = find(channel, d.sidx);
  if (flow == nullptr) return;
  if (d.is_end()) return flow->response.reset();
  const Msn msn = answered_request(d, payload);
  // All segments are of one request.
  if (d.mo == MessageOffset{}) flow->response = msn;
  if (flow->response != msn) return;
  const auto at = std::find_if(flow->sent.begin(), flow->sent.end(),
                               [&](const Sent& s) { return s.msn == msn; });
  if (at == flow->sent.end()) {
    if (d.last) (void)forget_abandoned(*flow, msn);
    return;
  }
  if (flow->partial && at + 1 == flow->sent.end()) return;
  SendWqe& w = queue_.at(at->request);
  if (!answers(d, w)) return;
  consumer_.wants_turn();
  if (!place_answer(consumer_.memory(), w, d, payload)) {
    // The peer goes on with it: until its end it is one of those that may be unanswered.
    if (!d.last) {
      flow->abandoned.push_back(msn);
      ++flow->reads;
    }
    return finish(*flow, at, Status::local_protection);
  }
  if (!d.last) return;
  flow->refusals = 0;
  finish(*flow, at, Status::success);
}

// --- requests that are over

void RdRequester::finish(Flow& flow, const std::deque<Sent>::iterator& at, Status status) {
  const uint64_t request = at->request;
  if (work::has_response(queue_.at(request).operation)) --flow.reads;
  flow.sent.erase(at);
  blocked_ = false;  // a Read may have waited for this one
  finish(request, status);
  settle(flow);
}

void RdRequester::finish(uint64_t request, Status status) {
  SendWqe& w = queue_.at(request);
  w.answered = true;
  w.status = status;
  if (work::has_response(w.operation)) --reads_;
  consumer_.wants_turn();
  if (request < next_) complete();
}

void RdRequester::fail_all(Flow& flow, Status status) {
  flow.partial = flow.refused = false;
  flow.reads = flow.refusals = 0;
  flow.abandoned.clear();
  for (; !flow.sent.empty(); flow.sent.pop_front()) finish(flow.sent.front().request, status);
  for (; !flow.waiting.empty(); flow.waiting.pop_front()) finish(flow.waiting.front(), status);
  settle(flow);
}

// What is to be done when its last request is answered. Where there is no memory for it, with its
// next turn.
void RdRequester::settle(Flow& flow) {
  if (!flow.idle() || !flow.busy) return;
  if (flow.channel != nullptr) open_again(flow);
  flow.busy = false;
  flow.unlink();
  resting_.push_back(flow);
  ++rest_;
  flow.opens = true;
  flow.pause.reset();
  flow.wait_until = Time{};
  if (flow.channel != nullptr) flow.channel->leave();
}

// A message of nothing: the peer waits for none that it has refused, or no answer is wanted any
// more (spec/wdp-rd 6.3).
void RdRequester::say_end(const Flow& flow, bool opens) {
  WdpData end = message_end(
      {.didx = flow.didx, .sidx = index_of(parameters_.own_qpn), .stride = 1, .opens = opens});
  flow.channel->send(end, true);
}

void RdRequester::open_again(Flow& flow) {
  if (!flow.refused) return;
  say_end(flow, true);
  flow.refused = false;
}

void RdRequester::complete() {
  while (queue_.head() < next_ && queue_.at(queue_.head()).answered) {
    const SendWqe& w = queue_.at(queue_.head());
    consumer_.send_done(w, w.status);
    queue_.free_head();
  }
}

// --- the end

// The peer has taken none of them: what it had taken before was answered, or its channel would not
// have been idle (spec/wdp-rd 2.4). Another channel opens for them with the next turn.
void RdRequester::begin_again(Flow& flow) {
  try {
    for (; !flow.sent.empty(); flow.sent.pop_back()) {
      flow.waiting.push_front(flow.sent.back().request);
    }
  } catch (const std::bad_alloc&) {
    return fail_all(flow, Status::retry_exceeded);
  }
  flow.partial = flow.refused = false;
  flow.opens = true;
  flow.reads = flow.refusals = 0;
  flow.abandoned.clear();
  flow.response.reset();
  blocked_ = false;
  consumer_.wants_turn();
  settle(flow);
}

void RdRequester::channel_ended(const RdChannel& channel) {
  const bool refused = channel.state() == RdChannel::State::refused;
  auto it = by_channel_.lower_bound({&channel, 0});
  while (it != by_channel_.end() && it->first.first == &channel) {
    Flow& flow = *it->second;
    it = by_channel_.erase(it);
    if (flow.busy) flow.channel->leave();
    flow.channel = nullptr;
    if (channel.end() == RdClient::End::undelivered) {
      begin_again(flow);
    } else {
      fail_all(flow, refused ? Status::remote_invalid_rd_request : Status::retry_exceeded);
    }
    if (!flow.busy) forget(flow);
  }
}

// It rests. All of it is known again with the next request: who has nothing unanswered opens.
void RdRequester::forget(Flow& flow) {
  flow.unlink();
  --rest_;
  if (flow.channel != nullptr) by_channel_.erase({flow.channel, flow.didx});
  latest_ = flows_.end();
  flows_.erase({flow.path.to, flow.path.from, flow.didx});
}

Time RdRequester::deadline() {
  Time first = Time::never();
  busy_.for_each([&](const Flow& f) {
    if (!f.waiting.empty() && f.wait_until != Time{}) first = std::min(first, f.wait_until);
  });
  return first;
}

void RdRequester::say_last_words(Flow& flow) {
  if (flow.partial && flow.offset > 0) end_message(flow);
  open_again(flow);
  if (flow.reads > 0) say_end(flow, false);
}

void RdRequester::leave() {
  for (auto& [key, flow] : flows_) {
    if (flow.channel == nullptr || !flow.busy) continue;
    try {
      say_last_words(flow);
    } catch (const std::bad_alloc&) {
      flow.channel->abort();
    }
    flow.channel->leave();
  }
  by_channel_.clear();
  flows_.clear();
  latest_ = flows_.end();
}

}  // namespace weft::wdp
