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
  flows_.for_each_busy([&](const Flow& f) {
    if (f.pause || f.requests.idle()) {
      any = true;
    } else if (f.wait_until != Time{}) {
      any |= now >= f.wait_until;
    } else {
      any |= !blocked_ && f.requests.has_more();
    }
  });
  return any;
}

RdFlows::Flow& RdRequester::flow_to(const UdDestination& to) {
  Flow& flow = flows_.to(to);
  if (!flow.busy && flow.channel == nullptr) flow.room = consumer_.room(to.path);
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
    if (found) to_there->requests.add(next_);
    if (work::has_response(w.operation)) ++reads_;
    if (!found) {
      finish(next_, Status::remote_invalid_rd_request);
      continue;
    }
    flows_.set_busy(*to_there);
    blocked_ = false;
  }
}

void RdRequester::send(Time now) {
  dispatch();
  flows_.for_each_busy([&](Flow& flow) { send(flow, now); });
  flows_.turn();
  blocked_ = true;
}

// --- a flow

// False: not yet, or never.
bool RdRequester::find_channel(Flow& flow, Time now) {
  if (flow.channel == nullptr) {
    const UdCarriage carriage = consumer_.carriage(flow.path, now);
    if (carriage.channel == nullptr) {
      if (!carriage.later) fail_all(flow, Status::remote_invalid_rd_request);
      return false;
    }
    flows_.carry(flow, *carriage.channel);
  }
  if (flow.channel->state() == RdChannel::State::setting_up) {
    flow.channel->out().want_room(parameters_.client);
    return false;
  }
  if (flow.channel->has_responses() && wire::wdp_stride(flow.room.most) > 0) return true;
  fail_all(flow, Status::remote_invalid_rd_request);
  return false;
}

void RdRequester::send(Flow& flow, Time now) {
  if (flow.requests.idle()) return settle(flow);
  if (flow.pause) flow.wait_until = now + *std::exchange(flow.pause, {});
  if (now < flow.wait_until) return;
  flow.wait_until = Time{};
  if (!find_channel(flow, now)) return;
  while (flow.requests.has_more()) {
    if (!flow.requests.partial() && !begin_message(flow)) return;
    if (!put_segment(flow)) return;
  }
}

// None: the message is long, and how it is to be cut is not known yet.
std::optional<uint16_t> RdRequester::stride(const Flow& flow, const SendWqe& w) {
  const size_t room = flow.channel->out().segment_room(flow.room);
  const uint16_t stride = wire::wdp_stride(room);
  const bool is_read = w.operation == Operation::read;
  if (is_read || message_length(w) <= stride || !flow.channel->out().finds_path()) return stride;
  flow.channel->out().want_room(parameters_.client);
  return std::nullopt;
}

// False: the next one has to wait.
bool RdRequester::begin_message(Flow& flow) {
  const SendWqe& w = queue_.at(flow.requests.next());
  const auto cut = stride(flow, w);
  return cut && flow.requests.begin(*cut, work::has_response(w.operation));
}

// The next one of the message that is under way.
RdSegment RdRequester::segment(const Flow& flow) const {
  RdSegment next = flow.requests.segment();
  next.didx = flow.didx;
  next.sidx = index_of(parameters_.own_qpn);
  return next;
}

// False: the channel has no room.
bool RdRequester::put_segment(Flow& flow) {
  SendWqe& w = queue_.at(flow.requests.current());
  const RdSegment next = segment(flow);
  const bool first = next.offset == 0;
  WdpData d = request_header(w, next, consumer_.destination(w), parameters_.q_key);
  if (!flow.channel->out().has_room(d.payload_size())) {
    flow.channel->out().want_room(parameters_.client);
    return false;
  }
  std::byte* const at = flow.channel->out().send(d, first);
  // The RID of a Read is its MSN, which is known now.
  if (d.opcode == Opcode::read_request) {
    d.imm_or_read = d.msn.value();
    d.encode(at - WdpData::kSize);
  }
  if (!write_request(consumer_.memory(), w, d, at)) {
    flow.channel->out().take_back(d, first);
    if (first) {
      flow.requests.drop_message();
    } else {
      end_message(flow);
    }
    finish(flow, flow.requests.take_current(), Status::local_protection);
    return true;
  }
  flow.requests.said(d);
  return true;
}

// The message whose segments are under way is given up.
void RdRequester::end_message(Flow& flow) {
  WdpData end = message_end(segment(flow));
  flow.channel->out().send(end, false);
  flow.requests.end_message();
}

// --- what peers say

void RdRequester::answered(RdChannel& channel, const WdpResponse& r) {
  using Code = WdpResponse::Code;
  Flow* const flow = flows_.find(channel, r.ridx);
  if (flow == nullptr) return;
  consumer_.wants_turn();
  blocked_ = false;
  if (r.code == Code::ready) {
    flow->pause.reset();
    flow->wait_until = Time{};
    return;
  }
  if (r.code == Code::ack) return acknowledged(*flow, r.msn);
  const auto at = flow->requests.find(r.msn);
  if (!at) {
    if (r.code != Code::rnr) forget_abandoned(*flow, r.msn);
    return;
  }
  if (r.code == Code::rnr) return refused(*flow, *at, std::chrono::microseconds{r.delay_us()});
  flow->requests.taken();
  if (flow->requests.is_partial(*at)) end_message(*flow);
  if (r.code == Code::not_ready) flow->requests.unknown_at(r.msn);
  finish(*flow, flow->requests.take(*at), status_of(r.code));
}

// Its answer is over.
void RdRequester::forget_abandoned(Flow& flow, Msn msn) {
  if (!flow.requests.forget_abandoned(msn)) return;
  consumer_.wants_turn();
  blocked_ = false;  // a Read may have waited for this
  settle(flow);
}

void RdRequester::acknowledged(Flow& flow, Msn msn) {
  flow.requests.taken();
  while (const auto request = flow.requests.take_acknowledged(msn)) {
    finish(*request, Status::success);
  }
  settle(flow);
}

// spec/wdp-rd 6.5: the peer drops all behind it, too.
void RdRequester::refused(Flow& flow, size_t at, Duration pause) {
  if (flow.requests.peer_has_part()) end_message(flow);
  flow.requests.refuse(at);
  if (flow.requests.may_try_again(parameters_.rnr_retry)) {
    flow.pause = pause;
    return;
  }
  finish(flow.requests.take_next(), Status::rnr_retry_exceeded);
  settle(flow);
}

void RdRequester::take(RdChannel& channel, const WdpData& d, Bytes payload) {
  Flow* const flow = flows_.find(channel, d.sidx);
  if (flow == nullptr) return;
  if (d.is_end()) return flow->requests.end_response();
  const Msn msn = answered_request(d, payload);
  // All segments are of one request.
  if (!flow->requests.take_response(msn, d.mo == MessageOffset{})) return;
  const auto at = flow->requests.find(msn);
  if (!at) {
    if (d.last) forget_abandoned(*flow, msn);
    return;
  }
  if (flow->requests.is_partial(*at)) return;
  SendWqe& w = queue_.at(flow->requests.request(*at));
  if (!answers(d, w)) return;
  consumer_.wants_turn();
  if (!place_answer(consumer_.memory(), w, d, payload)) {
    if (!d.last) flow->requests.abandon(msn);
    return finish(*flow, flow->requests.take(*at), Status::local_protection);
  }
  if (!d.last) return;
  flow->requests.taken();
  finish(*flow, flow->requests.take(*at), Status::success);
}

// --- requests that are over

void RdRequester::finish(Flow& flow, uint64_t request, Status status) {
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
  flow.requests.reset();
  while (const auto request = flow.requests.take_any()) finish(*request, status);
  settle(flow);
}

// What is to be done when its last request is answered. Where there is no memory for it, with its
// next turn.
void RdRequester::settle(Flow& flow) {
  if (!flow.requests.idle() || !flow.busy) return;
  if (flow.channel != nullptr) open_again(flow);
  flow.requests.open_next();
  flow.pause.reset();
  flow.wait_until = Time{};
  flows_.set_resting(flow);
}

// A message of nothing: the peer waits for none that it has refused, or no answer is wanted any
// more (spec/wdp-rd 6.3).
void RdRequester::say_end(const Flow& flow, bool opens) {
  WdpData end = message_end(
      {.didx = flow.didx, .sidx = index_of(parameters_.own_qpn), .stride = 1, .opens = opens});
  flow.channel->out().send(end, true);
}

void RdRequester::open_again(Flow& flow) {
  if (!flow.requests.refused()) return;
  say_end(flow, true);
  flow.requests.opened();
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
    flow.requests.begin_again();
  } catch (const std::bad_alloc&) {
    return fail_all(flow, Status::retry_exceeded);
  }
  blocked_ = false;
  consumer_.wants_turn();
  settle(flow);
}

void RdRequester::channel_ended(const RdChannel& channel) {
  const bool refused = channel.state() == RdChannel::State::refused;
  while (Flow* const flow = flows_.take_from(channel)) {
    if (channel.end() == RdClient::End::undelivered) {
      begin_again(*flow);
    } else {
      fail_all(*flow, refused ? Status::remote_invalid_rd_request : Status::retry_exceeded);
    }
    // All of it is known again with the next request: who has nothing unanswered opens.
    if (!flow->busy) flows_.forget(*flow);
  }
}

Time RdRequester::deadline() {
  Time first = Time::never();
  flows_.for_each_busy([&](const Flow& f) {
    if (f.requests.any_waits() && f.wait_until != Time{}) first = std::min(first, f.wait_until);
  });
  return first;
}

void RdRequester::say_last_words(Flow& flow) {
  if (flow.requests.peer_has_part()) end_message(flow);
  open_again(flow);
  if (flow.requests.any_unanswered()) say_end(flow, false);
}

void RdRequester::leave() {
  flows_.for_each_busy([this](Flow& flow) {
    if (flow.channel == nullptr) return;
    try {
      say_last_words(flow);
    } catch (const std::bad_alloc&) {
      flow.channel->abort();
    }
    flow.channel->leave();
  });
  flows_.clear();
}

}  // namespace weft::wdp
