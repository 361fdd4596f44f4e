#include "wdp/rd_channel.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {

using wire::CtlType;
using wire::WdpAck;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpDrop;

RdChannel::RdChannel(RdShared& shared, RdChannelOwner& owner, Random& random, size_t window,
                     bool ecn, std::unique_ptr<Congestion> congestion)
    : shared_(shared),
      owner_(owner),
      opening_(random),
      traffic_({shared, *this, owner, opening_, random}, window, ecn, std::move(congestion)),
      control_(opening_, traffic_) {}

// --- set-up

void RdChannel::call(const Offer& offer, const Path& path, Qpn destination, Time now) {
  Offer own = offer;
  own.first_psn = sender().next_csn();
  traffic_.begins(now);
  opening_.call(own, path, destination, now);
}

void RdChannel::answer(const WdpCtl& req, const Path& path, size_t size, bool validated,
                       const Offer& offer, Time now) {
  Offer own = offer;
  own.first_psn = sender().next_csn();
  traffic_.begins(now);
  opening_.answer(req, path, size, validated, own, now);
  look_at_opening(now);
  owner_.reached();
}

bool RdChannel::requested_again(const WdpCtl& req, size_t size, bool validated, Time now) {
  const bool resumed = opening_.resumes();
  const auto v = opening_.requested_again(req, size, validated, now);
  owner_.reached();
  if (resumed && !opening_.resumes()) {
    state_ = State::setting_up;
    traffic_.begin_anew();
  }
  if (!v) return false;
  if (!v->ok()) shared_.dropped(v->error());
  look_at_opening(now);
  return true;
}

void RdChannel::look_at_opening(Time now) {
  switch (opening_.look()) {
    case RdOpening::News::none:
      return;
    case RdOpening::News::peer_known:
      return traffic_.meets_peer();
    case RdOpening::News::opens:
      // A peer that has begun anew: it knew nothing of the channel that was at rest.
      if (speaks()) traffic_.begin_anew();
      traffic_.meets_peer();
      state_ = State::open;
      control_.presence().opens(handshake()->active(), now);
      return traffic_.opens(now);
    case RdOpening::News::refused:
      shared_.refused(path(), now);
      return end_as(State::refused, RdClient::End::returned);
    case RdOpening::News::given_up:
      return end_as(State::gone, RdClient::End::undelivered);
    case RdOpening::News::failed:
      return end_as(State::gone, RdClient::End::lost);
  }
}

void RdChannel::enter() {
  control_.presence().enter();
  if (state_ == State::setting_up) owner_.reached();
}

bool RdChannel::calls_for_connection() const {
  return state_ == State::setting_up && for_connection_ && handshake() != nullptr &&
         handshake()->state() == Handshake::State::req_sent;
}

uint32_t RdChannel::ask_peer() {
  owner_.reached();
  return control_.presence().want();
}

// --- at rest

Time RdChannel::rests_at() const {
  const bool may = speaks() && handshake() == nullptr && control_.may_rest();
  return may ? traffic_.rests_at() : Time::never();
}

RestingChannel RdChannel::rest() {
  const Path& to = path();
  RestingChannel as{.traffic_class = to.traffic_class,
                    .hop_limit = to.hop_limit,
                    .token = token(),
                    .questions = control_.presence().questions(),
                    .rate = to.rate,
                    .peer = peer()};
  traffic_.rest(as);
  return as;
}

void RdChannel::wake(const ChannelEnds& ends, RestingChannel&& before, Time now) {
  opening_.wake(before.path(ends), before.token, before.peer);
  control_.presence().wakes(before.questions, now);
  state_ = State::open;
  traffic_.wake(std::move(before), now);
  owner_.reached();
}

void RdChannel::call_again(const Offer& offer, Time now) {
  Offer own = offer;
  own.token = token();
  own.first_psn = sender().next_csn();
  opening_.call_again(own, now);
  owner_.reached();
}

// --- datagrams in

void RdChannel::received(const WdpCommon& common, Bytes datagram, const UdReception& how,
                         Time now) {
  owner_.reached();
  if (const auto v = take(common, datagram, how, now); !v.ok()) shared_.dropped(v.error());
}

RdChannel::Verdict RdChannel::take(const WdpCommon& common, Bytes datagram, const UdReception& how,
                                   Time now) {
  if (left_bytes() > 0) return control_.disown(common, datagram);
  if (state_ == State::refused || state_ == State::gone) return fail(WdpDrop::stale_handshake);
  if (common.wdp_class == wire::WdpBundle::kClass) return take_data(common, datagram, how, now);
  switch (common.wdp_class) {
    case WdpClass::ctl:
      return take_ctl(common, datagram, now);
    case WdpClass::rd:
      return take_data(common, datagram, how, now);
    case WdpClass::rd_ack: {
      if (receiver() == nullptr) return fail(WdpDrop::unknown_token);
      WdpAck ack;
      if (const auto v = ack.read(common, datagram); !v.ok()) return v;
      return take_ack(ack, now);
    }
    default:
      return fail(WdpDrop::wrong_class);
  }
}

// Something of the peer's came that only who is set up can say.
void RdChannel::confirm(Time now) {
  if (handshake() != nullptr) {
    opening_.confirmed(now);
    look_at_opening(now);
    opening_.let_go();
  }
  control_.presence().heard(now);
}

RdChannel::Verdict RdChannel::take_data(const WdpCommon& common, Bytes datagram,
                                        const UdReception& how, Time now) {
  // Who is idle and leaves: the peer sends it by another channel, for it has heard, or will, that
  // this one takes nothing more.
  if (receiver() == nullptr || control_.goodbye().takes_nothing()) {
    return fail(WdpDrop::unknown_token);
  }
  RdDatagram d{common, datagram};
  if (const auto v = d.check(peer().terms); !v.ok()) return v;
  confirm(now);
  Verdict v = fail(WdpDrop::window_exceeded);
  if (traffic_.may_take(d)) {
    control_.presence().exchanged();
    v = traffic_.take(d, how, now);
    if (d.is_bundle()) owner_.small_messages_came(datagram.size());
  }
  // No transmission says it again: that of a copy counts as well.
  if (const auto& ack = d.ack()) {
    if (const auto heard = take_ack(*ack, now); !heard.ok()) shared_.dropped(heard.error());
  }
  return v;
}

RdChannel::Verdict RdChannel::take_ack(const WdpAck& ack, Time now) {
  confirm(now);
  const auto any = out().take_ack(ack, now);
  if (any.ok() && *any) control_.presence().exchanged();
  if (control_.goodbye().waits() && out().all_is_said()) say_goodbye(now);
  return any.ok() ? Verdict{Ok{}} : Verdict{fail(any.error())};
}

RdChannel::Verdict RdChannel::take_ctl(const WdpCommon& common, Bytes datagram, Time now) {
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok()) return fail(c.error());
  if (c->type <= CtlType::wait) {
    const auto v = opening_.received(*c, datagram.size(), now);
    look_at_opening(now);
    return v;
  }
  if (receiver() == nullptr) return fail(WdpDrop::unwanted_ctl);
  // It disowns the channel. A peer that has begun anew answers the REQ as well, and what came
  // before says nothing of what it agrees on then.
  if (c->type == CtlType::drep && (opening_.resumes() || c->source_token != peer().token)) {
    return fail(WdpDrop::unwanted_ctl);
  }
  const auto if_forgotten = end_by_other_life();
  confirm(now);
  out().sender().heard();
  const auto event = control_.received(*c, now);
  if (!event.ok()) return fail(event.error());
  switch (*event) {
    case RdControl::Event::none:
      break;
    case RdControl::Event::peer_leaves:
      peer_leaves(*c, now);
      break;
    case RdControl::Event::peer_forgets:
      if (state_ == State::closing) state_ = State::gone;
      // Nobody has said goodbye: the peer does not know the channel.
      if (speaks() && c->source_token == peer().token) end_now(if_forgotten);
  }
  return Ok{};
}

// --- trains

bool RdChannel::ready(Time now) {
  // spec/wdp-rd 2.2: somebody waits for the channel.
  if (state_ == State::setting_up &&
      (!sender().idle() || control_.presence().is_needed() || out().any_wants_room())) {
    opening_.call_too(now);
  }
  if (opening_.ready() || !control_.empty()) return true;
  if (!speaks()) return false;
  traffic_.write_answers(now);
  return control_.ready(now) || traffic_.ready(now);
}

void RdChannel::fill(Train& train, Time now) {
  if (opening_.ready()) return opening_.fill(train);
  control_.fill(train, now);
  if (!train.empty() || !speaks()) return;
  traffic_.fill(train, now);
  if (train.empty() && sender().wants_to_ask()) {
    out().sender().asked();
    control_.ask();
    return control_.fill(train, now);
  }
  traffic_.acknowledge(train, now);
}

// --- time

Time RdChannel::deadline() {
  const Time first = std::min(control_.deadline(), opening_.deadline());
  if (!speaks()) return first;
  return std::min({first, traffic_.deadline(), idle_until()});
}

void RdChannel::tick(Time now) {
  if (now >= opening_.deadline()) {
    opening_.tick(now);
    look_at_opening(now);
  }
  if (control_.tick_goodbye(now)) state_ = State::gone;
  if (!speaks()) return;
  if (!traffic_.tick(now)) return abort();
  switch (control_.tick(now)) {
    case RdControl::Due::nothing:
      break;
    case RdControl::Due::late:
      return say_goodbye(now);
    case RdControl::Due::gone:
      return abort();
  }
  if (now >= idle_until()) end_for_want_of_messages(now);
}

// --- the end

void RdChannel::close(Time now) {
  closed_ = true;
  owner_.reached();
  if (!speaks()) return abort();
  if (out().all_is_said()) return say_goodbye(now);
  out().say_answers();
  control_.goodbye().wait(now);
}

// spec/wdp-rd 2.4: what the peer sends just now is not lost, if CUM says all that was taken. No
// answer is on its way either, so the peer's requests that have come are complete.
void RdChannel::end_for_want_of_messages(Time now) {
  if (!out().has_answers() && receiver()->has_all_before_cum()) {
    control_.goodbye().take_nothing();
  }
  close(now);
}

void RdChannel::say_goodbye(Time now) {
  state_ = State::closing;
  control_.say_dreq(now);
  end_as(State::closing, RdClient::End::lost);
}

// spec/wdp-rd 2.4: DREQ names CUM, so that what has come is known at last. Of a channel that was
// idle, so is what has not.
void RdChannel::peer_leaves(const WdpCtl& dreq, Time now) {
  WdpAck ack;
  ack.cum = next(dreq.highest_psn);
  (void)take_ack(ack, now);
  control_.peer_left();
  const bool idle = dreq.reason == static_cast<uint32_t>(wire::DreqReason::idle);
  end_as(State::gone, idle ? RdClient::End::undelivered : RdClient::End::lost);
}

// spec/wdp-rd 2.4: a REQ says what a DREQ said that was lost.
void RdChannel::replaced(const WdpCtl& req, Time now) {
  const auto ended = wire::WdpEnded::find(req.tlvs);
  if (!speaks() || !ended || ended->token != token()) return end_now(end_by_other_life());
  owner_.reached();
  peer_leaves(
      {.reason = static_cast<uint32_t>(wire::DreqReason::idle), .highest_psn = ended->taken}, now);
}

std::optional<wire::WdpEnded> RdChannel::ended_when_idle() const {
  if (state_ != State::closing || !control_.goodbye().takes_nothing()) return std::nullopt;
  return wire::WdpEnded{.token = peer().token, .taken = Psn{traffic_.cum().value() - 1}};
}

void RdChannel::abort() {
  end_now(RdClient::End::lost);
}

void RdChannel::end_now(RdClient::End end) {
  if (state_ == State::gone || state_ == State::refused) return;
  owner_.reached();
  opening_.withdraw();
  control_.goodbye().stop();
  end_as(State::gone, end);
}

void RdChannel::forget() {
  opening_.forget();
  abort();
}

void RdChannel::end_as(State state, RdClient::End end) {
  state_ = state;
  end_ = end;
  traffic_.end(end);
  shared_.ended(*this);
}

bool RdChannel::is_gone() const {
  return (state_ == State::gone || state_ == State::refused) && control_.empty() &&
         !opening_.ready() && left_bytes() == 0;
}

}  // namespace weft::wdp
