#include "wdp/rd_control.h"

#include <algorithm>

namespace weft::wdp {

using wire::CtlType;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpDrop;

WdpCtl RdControl::message(CtlType type) const {
  const RdPeer& peer = opening_.peer();
  return {.type = type,
          .token = peer.token,
          .source_token = opening_.token(),
          .source = peer.own_port,
          .destination = peer.port,
          .service = wire::CtlService::rd_channel,
          .highest_psn = Psn{traffic_.cum().value() - 1}};
}

// --- what comes

Result<RdControl::Event, WdpDrop> RdControl::received(const WdpCtl& c, Time now) {
  switch (c.type) {
    case CtlType::ka:
      // Who has said goodbye does not say that it is there.
      if (!traffic_.out().is_open()) return fail(WdpDrop::unwanted_ctl);
      traffic_.out().is_active(now);
      presence_.rested();
      answer(c, CtlType::kaa);
      traffic_.receiver()->acknowledge_now();
      return Event::none;
    case CtlType::kaa:
      traffic_.out().is_active(now);
      if (presence_.answered(c.xid.value())) traffic_.out().tell_of_room();
      return Event::none;
    case CtlType::probe:
      answer(c, CtlType::probea);
      return Event::none;
    case CtlType::probea:
      if (traffic_.out().search().answered(c.xid, c.max_payload)) traffic_.out().tell_of_room();
      return Event::none;
    case CtlType::dreq:
      return Event::peer_leaves;
    case CtlType::drep:
      return Event::peer_forgets;
    default:
      return fail(WdpDrop::unwanted_ctl);
  }
}

void RdControl::answer(const WdpCtl& c, CtlType type) {
  WdpCtl answer = message(type);
  answer.xid = c.xid;
  if (type == CtlType::probea) answer.max_payload = c.length;
  outbox_.say(answer);
}

Result<Ok, WdpDrop> RdControl::disown(const WdpCommon& common, Bytes datagram) {
  if (common.wdp_class != WdpClass::ctl) return fail(WdpDrop::unknown_token);
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok()) return fail(c.error());
  if (c->type != CtlType::ka && c->type != CtlType::dreq) return fail(WdpDrop::unknown_token);
  answer(*c, CtlType::drep);
  return Ok{};
}

// --- what goes

void RdControl::say_dreq(Time now) {
  // Who has sent nothing knows that of the handshake.
  RoundTrip trip = traffic_.out().sender().round_trip();
  const Duration first = opening_.peer().round_trip;
  if (!trip.known() && first != Duration::max()) trip.sample(first, Duration{});
  const auto dreq = goodbye_.say(trip.probe_pause(), now);
  WdpCtl c = message(CtlType::dreq);
  c.attempt = dreq.attempt;
  c.reason = static_cast<uint32_t>(dreq.reason);
  outbox_.say(c);
}

void RdControl::peer_left() {
  outbox_.say(message(CtlType::drep));
  goodbye_.stop();
}

void RdControl::ask() {
  WdpCtl c = message(CtlType::ka);
  c.xid = Xid{presence_.next()};
  outbox_.say(c);
}

void RdControl::say_probe(Time now) {
  const auto probe = traffic_.out().search().take(now);
  if (!probe) return traffic_.out().tell_of_room();
  WdpCtl c = message(CtlType::probe);
  c.xid = probe->xid;
  c.length = static_cast<uint16_t>(probe->size);
  outbox_.say(c);
}

std::vector<std::byte> RdControl::question() const {
  const WdpCtl ka = message(CtlType::ka);
  std::vector<std::byte> bytes(ka.size());
  ka.encode(bytes.data());
  return bytes;
}

bool RdControl::ready(Time now) const {
  if (!outbox_.empty()) return true;
  return traffic_.out().is_open() && (presence_.due() || traffic_.out().search().ready(now));
}

void RdControl::fill(Train& train, Time now) {
  const RdOutgoing& out = traffic_.out();
  if (out.is_open() && presence_.due()) {
    presence_.said(now);
    ask();
  }
  if (out.is_open() && outbox_.empty() && out.search().ready(now)) say_probe(now);
  outbox_.fill(train, opening_.path());
}

// --- time

Time RdControl::deadline() const {
  if (!traffic_.out().is_open()) return goodbye_.deadline();
  return std::min({goodbye_.deadline(), goodbye_.waits_until(), presence_.deadline()});
}

bool RdControl::tick_goodbye(Time now) {
  const auto due = goodbye_.tick(now);
  if (due == RdGoodbye::Due::again) say_dreq(now);
  return due == RdGoodbye::Due::over;
}

RdControl::Due RdControl::tick(Time now) {
  if (presence_.tick_first(traffic_.out().active_at(), now)) ask();
  if (presence_.follows(traffic_.out().sender().unanswered())) ask();
  if (goodbye_.is_late(now)) return Due::late;
  switch (presence_.tick(now)) {
    case PeerWatch::Due::nothing:
      break;
    case PeerWatch::Due::question:
      ask();
      break;
    case PeerWatch::Due::end:
      return Due::gone;
  }
  return Due::nothing;
}

}  // namespace weft::wdp
