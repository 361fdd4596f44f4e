#include "wdp/rd_responder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/guarded.h"
#include "wdp/pieces.h"
#include "work/atomic.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using wire::WdpDrop;
using work::Access;
using work::Status;

RdResponder::Inbound& RdResponder::flow_of(RdChannel& channel, uint8_t sidx) {
  const auto key = std::pair<const RdChannel*, uint8_t>{&channel, sidx};
  auto it = flows_.find(key);
  if (it == flows_.end()) {
    // Those of which nothing has come for so long that nothing is on its way either.
    std::erase_if(flows_, [&](const auto& f) {
      return !f.second.entered && channel.out().active_at() - f.second.heard >= kIdleChannel;
    });
    it = flows_.try_emplace(key).first;
  }
  Inbound& flow = it->second;
  flow.heard = channel.out().active_at();
  if (flow.channel == nullptr) {
    flow.channel = &channel;
    channel.keep_awake();
    flow.sidx = sidx;
    flow.room = consumer_.room(channel.path());
  }
  return flow;
}

// --- requests in

void RdResponder::take(RdChannel& channel, const RdArrival& arrival, Bytes payload) {
  const WdpData& d = arrival.header;
  consumer_.wants_turn();
  Inbound& flow = flow_of(channel, d.sidx);
  if (d.is_end()) {
    give_back(flow);
    flow.doing = Doing::nothing;
    if (d.mo == MessageOffset{} && d.flow_open) flow.refusing = false;
    if (d.mo == MessageOffset{} && !d.flow_open) cancel(flow);
    return settle(flow);
  }
  // In the middle of a message that another queue pair with this number had: it has answered.
  if (d.mo != MessageOffset{} && flow.doing == Doing::nothing) flow.doing = Doing::skipping;
  if (d.mo == MessageOffset{}) begin(flow, d, payload);
  if (flow.doing == Doing::placing) {
    if (const Fault fault = place_segment(flow, d, payload)) fail(flow, *fault);
  }
  if (d.last) {
    if (flow.doing == Doing::placing) deliver(flow, arrival);
    flow.doing = Doing::nothing;
  } else if (!flow.receive.empty()) {
    flow.silence = 0;
    if (tick_at_.is_never()) tick_at_ = channel.out().active_at() + kPatienceTick;
  }
  settle(flow);
}

// spec/wdp-rd 6.5. Counted in ticks, as for UD (rd_receive_path.h).
void RdResponder::tick(Time now) {
  if (now < tick_at_) return;
  tick_at_ = Time::never();
  for (auto& [key, flow] : flows_) {
    if (flow.receive.empty()) continue;
    tick_at_ = now + kPatienceTick;
    if (++flow.silence < kMessagePatience) continue;
    fail(flow, Code::operation);
    settle(flow);
  }
}

void RdResponder::begin(Inbound& flow, const WdpData& d, Bytes payload) {
  flow.msn = d.msn;
  flow.shape = shape_of(d);
  flow.doing = Doing::skipping;
  // spec/wdp-rd 6.2: it may be behind one that the queue pair's last life has refused.
  if (flow.closed && !d.flow_open) return fail(flow, Code::not_ready);
  flow.closed = false;
  // spec/wdp-rd 6.5: what the sender has said before it heard of the RNR comes again.
  if (flow.refusing && !d.flow_open) return;
  flow.refusing = false;
  flow.doing = Doing::placing;
  if (const Fault fault = accept(flow, d, payload)) fail(flow, *fault);
}

RdResponder::Fault RdResponder::accept(Inbound& flow, const WdpData& d, Bytes payload) {
  switch (d.opcode) {
    case Opcode::send:
    case Opcode::send_se:
      return accept_send(flow, d);
    case Opcode::write:
      return accept_write(flow, d);
    case Opcode::read_request:
      return accept_read(flow, d, payload);
    case Opcode::atomic_request:
      return accept_atomic(flow, d, payload);
    default:
      drops_.count(WdpDrop::bad_opcode);
      return Code::operation;
  }
}

bool RdResponder::next_receive(Inbound& flow) {
  work::TakenReceive one;
  one.emplace_back();
  if (!consumer_.take_receive(one.back())) return false;
  flow.receive = std::move(one);
  return true;
}

void RdResponder::give_back(Inbound& flow) {
  if (flow.receive.empty()) return;
  consumer_.give_back(std::exchange(flow.receive, {}));
  posted();
}

RdResponder::Fault RdResponder::accept_send(Inbound& flow, const WdpData& d) {
  if (d.q_key() != q_key_) {
    drops_.count(WdpDrop::wrong_q_key);
    return Code::key;
  }
  if (!next_receive(flow)) return Code::rnr;
  if (d.mlen <= flow.receive.front().length) return {};
  // As with UD the receive is there for the next one.
  drops_.count(WdpDrop::receive_too_small);
  return Code::length;
}

RdResponder::Fault RdResponder::accept_write(Inbound& flow, const WdpData& d) {
  // All of it before anything is written.
  if (d.mlen > 0 && !consumer_.memory().remote(d.stag, d.to, d.mlen, Access::remote_write).ok()) {
    drops_.count(WdpDrop::protection);
    return Code::access;
  }
  if (d.flags.immediate && !next_receive(flow)) return Code::rnr;
  return {};
}

RdResponder::Fault RdResponder::accept_read(Inbound& flow, const WdpData& d, Bytes payload) {
  const auto range = wire::WdpReadRange::parse(payload.data());
  if (flow.responses.size() >= kFlowReads || range.length != d.mlen ||
      d.read_id().value() != d.msn.value() || wire::wdp_stride(flow.room.most) == 0) {
    drops_.count(WdpDrop::too_many_reads);
    return Code::operation;
  }
  if (d.mlen > 0 && !consumer_.memory().remote(d.stag, d.to, d.mlen, Access::remote_read).ok()) {
    drops_.count(WdpDrop::protection);
    return Code::access;
  }
  flow.responses.push_back({.request = d.msn, .stag = d.stag, .to = d.to, .length = d.mlen});
  answering_.push_back(flow);
  blocked_ = false;
  return {};
}

RdResponder::Fault RdResponder::accept_atomic(Inbound& flow, const WdpData& d, Bytes payload) {
  const auto request = wire::AtomicRequest::parse(payload.data());
  if (flow.responses.size() >= kFlowReads || request.request_id != d.msn.value() ||
      wire::wdp_stride(flow.room.most) == 0) {
    drops_.count(WdpDrop::too_many_reads);
    return Code::operation;
  }
  // Before it takes place: memory for what is to be said of it.
  flow.responses.push_back({.request = d.msn, .atomic = true});
  const auto original = work::execute_atomic(consumer_.memory(), request);
  if (original.ok()) {
    flow.responses.back().original = *original;
    answering_.push_back(flow);
    blocked_ = false;
    return {};
  }
  flow.responses.pop_back();
  drops_.count(WdpDrop::protection);
  return original.error().kind == work::AtomicFault::Kind::memory ? Code::access : Code::operation;
}

RdResponder::Fault RdResponder::place_segment(Inbound& flow, const WdpData& d, Bytes payload) {
  // What was checked with the first segment has to be so of the message.
  if (shape_of(d) != flow.shape) return Code::operation;
  if (d.opcode == Opcode::read_request || d.opcode == Opcode::atomic_request) return {};
  if (d.opcode == Opcode::write) {
    if (payload.empty()) return {};
    const auto p = consumer_.memory().remote(d.stag, d.to, payload.size(), Access::remote_write);
    if (p.ok() && copy_guarded(*p, payload.data(), payload.size())) return {};
    drops_.count(WdpDrop::protection);
    return Code::access;
  }
  PieceList places;
  if (receive_pieces(consumer_.memory(), flow.receive.front(), d.mo.value(), payload.size(), places)
          .ok() &&
      place(payload, places)) {
    return {};
  }
  drops_.count(WdpDrop::own_memory);
  consumer_.receive_done(flow.receive.front(), Status::local_protection, {});
  flow.receive.clear();
  return Code::operation;
}

void RdResponder::deliver(Inbound& flow, const RdArrival& arrival) {
  const WdpData& d = arrival.header;
  // These are acknowledged by their responses.
  if (d.opcode == Opcode::read_request || d.opcode == Opcode::atomic_request) return;
  if (!flow.receive.empty()) {
    consumer_.receive_done(
        flow.receive.front(), Status::success,
        {.write = d.opcode == Opcode::write,
         .solicited = d.solicited(),
         .immediate = d.has_immediate() ? std::optional{d.imm_or_read} : std::nullopt,
         .length = d.mlen,
         .source = arrival.source,
         .from = arrival.how.from});
    flow.receive.clear();
  }
  say(flow, Code::ack, d.msn);
}

// What follows of the message is not looked at.
void RdResponder::fail(Inbound& flow, Code code) {
  say(flow, code, flow.msn, code == Code::rnr ? kRnrDelay : uint8_t{0});
  give_back(flow);
  flow.doing = Doing::skipping;
  if (code == Code::rnr) {
    untold_.push_back(flow);
    flow.refusing = true;
    ++refused_;
  }
}

void RdResponder::say(const Inbound& flow, Code code, Msn msn, uint8_t delay) {
  flow.channel->out().respond(
      {.qidx = flow.sidx, .ridx = index_of(own_qpn_), .code = code, .delay = delay, .msn = msn});
}

// Sends are posted, too: who is told of receives that are not there sends in vain.
void RdResponder::posted() {
  if (untold_.empty() || !consumer_.has_receive()) return;
  while (Inbound* const flow = untold_.pop_front()) {
    if (!flow->refusing) continue;
    try {
      say(*flow, Code::ready, flow->msn);
    } catch (const std::bad_alloc&) {
      // The sender comes again after its delay.
    }
  }
}

// --- responses out

void RdResponder::send(Time now) {
  tick(now);
  answering_.for_each([&](Inbound& flow) {
    while (!flow.responses.empty() && put_response(flow)) {
    }
    if (flow.responses.empty()) flow.ListHook<AnsweringTag>::unlink();
    settle(flow);
  });
  // Another one is the first next time.
  if (Inbound* const first = answering_.pop_front()) answering_.push_back(*first);
  blocked_ = true;
}

// False: the channel has no room.
bool RdResponder::put_response(Inbound& flow) {
  Response& r = flow.responses.front();
  const bool first = r.offset == 0;
  if (first) {
    r.stride = wire::wdp_stride(flow.channel->out().segment_room(flow.room));
    if (r.length > r.stride && flow.channel->out().finds_path()) {
      flow.channel->out().want_room(client_);
      return false;
    }
  }
  WdpData d{.didx = flow.sidx,
            .sidx = index_of(own_qpn_),
            .msn = r.msn,
            .mo = MessageOffset{r.offset},
            .mlen = r.length,
            .last = true,
            .opcode = Opcode::read_response,
            .stride = r.stride,
            .imm_or_read = r.request.value(),
            .to = TaggedOffset{r.offset}};
  if (r.atomic) {
    d.opcode = Opcode::atomic_response;
    d.mlen = wire::AtomicResponse::kSize;
  } else {
    d.last = r.length - r.offset <= r.stride;
  }
  if (!flow.channel->out().has_room(d.payload_size())) {
    flow.channel->out().want_room(client_);
    return false;
  }
  std::byte* const at = flow.channel->out().send(d, first);
  const uint32_t n = d.payload_size();
  if (r.atomic) {
    wire::AtomicResponse{.request_id = r.request.value(), .original = r.original}.encode(at);
  } else if (n > 0) {
    const auto p = consumer_.memory().remote(r.stag, r.to + r.offset, n, Access::remote_read);
    if (!p.ok() || !copy_guarded(at, *p, n)) {
      flow.channel->out().take_back(d, first);
      drops_.count(WdpDrop::protection);
      if (!first) end_response(flow);
      say(flow, Code::access, r.request);
      flow.responses.pop_front();
      return true;
    }
  }
  r.msn = d.msn;
  r.offset += n;
  if (d.last) flow.responses.pop_front();
  return true;
}

// Nobody waits for them any more.
void RdResponder::cancel(Inbound& flow) {
  if (!flow.responses.empty() && flow.responses.front().offset > 0) end_response(flow);
  flow.responses.clear();
  flow.ListHook<AnsweringTag>::unlink();
}

void RdResponder::end_response(Inbound& flow) {
  const Response& r = flow.responses.front();
  WdpData end{.didx = flow.sidx,
              .sidx = index_of(own_qpn_),
              .msn = r.msn,
              .mo = MessageOffset{r.offset},
              .last = true,
              .opcode = Opcode::terminate,
              .stride = r.stride};
  flow.channel->out().send(end, false);
}

// --- the end

// A channel that a peer waits on, or this side, does not end for want of messages.
void RdResponder::settle(Inbound& flow) {
  const bool busy = flow.refusing || flow.doing != Doing::nothing || !flow.responses.empty();
  if (busy == flow.entered) return;
  flow.entered = busy;
  busy ? flow.channel->enter() : flow.channel->leave();
}

void RdResponder::channel_ended(const RdChannel& channel) {
  auto it = flows_.lower_bound({&channel, 0});
  while (it != flows_.end() && it->first.first == &channel) {
    Inbound& flow = it->second;
    give_back(flow);
    if (flow.entered) flow.channel->leave();
    it = flows_.erase(it);
  }
}

void RdResponder::say_last_words(Inbound& flow) {
  if (flow.doing == Doing::placing) say(flow, Code::not_ready, flow.msn);
  if (!flow.responses.empty() && flow.responses.front().offset > 0) end_response(flow);
  for (const Response& r : flow.responses) say(flow, Code::not_ready, r.request);
}

void RdResponder::leave() {
  for (auto& [key, flow] : flows_) {
    try {
      say_last_words(flow);
    } catch (const std::bad_alloc&) {
      flow.channel->abort();
    }
    if (!flow.receive.empty()) consumer_.give_back(std::exchange(flow.receive, {}));
    if (flow.entered) flow.channel->leave();
  }
  flows_.clear();
}

}  // namespace weft::wdp
