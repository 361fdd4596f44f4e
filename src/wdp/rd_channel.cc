#include "wdp/rd_channel.h"

#include <algorithm>
#include <new>
#include <utility>

#include "wdp/ecn.h"

namespace weft::wdp {

using wire::CtlType;
using wire::Opcode;
using wire::WdpAck;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpData;
using wire::WdpDrop;
using wire::WdpResponse;

RdChannel::RdChannel(RdShared& shared, RdChannelOwner& owner, Random& random, size_t window,
                     bool ecn, std::unique_ptr<Congestion> congestion)
    : shared_(shared),
      owner_(owner),
      random_(random),
      window_(window),
      opening_(random),
      sender_(Csn{static_cast<uint32_t>(random.next())}, std::move(congestion), ecn,
              RdExtra{shared.budget()}),
      writer_(sender_),
      waiters_(shared),
      answers_(writer_, sender_) {}

// --- set-up

void RdChannel::call(const Offer& offer, const Path& path, Qpn destination, Time now) {
  Offer own = offer;
  own.first_psn = sender_.next_csn();
  active_ = now;
  opening_.call(own, path, destination, now);
}

void RdChannel::answer(const WdpCtl& req, const Path& path, size_t size, bool validated,
                       const Offer& offer, Time now) {
  Offer own = offer;
  own.first_psn = sender_.next_csn();
  active_ = now;
  opening_.answer(req, path, size, validated, own, now);
  look_at_opening(now);
  owner_.reached();
}

bool RdChannel::requested_again(const WdpCtl& req, size_t size, bool validated, Time now) {
  const auto v = opening_.requested_again(req, size, validated, now);
  owner_.reached();
  if (!v) return false;
  if (!v->ok()) shared_.dropped(v->error());
  look_at_opening(now);
  return true;
}

void RdChannel::look_at_opening(Time now) {
  const auto news = opening_.look();
  switch (news) {
    case RdOpening::News::none:
      return;
    case RdOpening::News::refused:
      state_ = State::refused;
      shared_.refused(path(), now);
      return end_all(RdClient::End::returned);
    case RdOpening::News::failed:
      state_ = State::gone;
      return end_all(RdClient::End::lost);
    case RdOpening::News::peer_known:
    case RdOpening::News::opens:
      receiver_.emplace(peer().first, window_, RdExtra{shared_.budget()});
  }
  if (news == RdOpening::News::opens) opens(now);
}

void RdChannel::opens(Time now) {
  state_ = State::open;
  active_ = now;
  presence_.opens(handshake()->active(), now);
  sender_.open(peer().token, peer().terms.crc, now);
  tell_of_room();
}

// --- messages

std::byte* RdChannel::send(const RdMessage& m, ClientId client, uint64_t request) {
  std::byte* const at = writer_.write(m, client, request);
  owner_.reached();
  return at;
}

std::byte* RdChannel::send(WdpData& segment, bool first) {
  std::byte* const at = writer_.write(segment, first, bundle_room());
  owner_.reached();
  return at;
}

// --- what the path carries (spec/wdp-rd 5.5)

size_t RdChannel::segment_room(size_t most, bool certain) {
  if (!certain && search_.begin(most, goes_by_ipv4(), random_)) owner_.reached();
  return search_.segment_room(most, certain, goes_by_ipv4());
}

void RdChannel::say_probe(Time now) {
  const auto probe = search_.take(now);
  if (!probe) return tell_of_room();
  WdpCtl c = message(CtlType::probe);
  c.xid = probe->xid;
  c.length = static_cast<uint16_t>(probe->size);
  outbox_.say(c);
}

void RdChannel::respond(const WdpResponse& response) {
  answers_.add(response, active_);
  owner_.reached();
}

void RdChannel::say_answers() {
  answers_.say();
  owner_.reached();
}

void RdChannel::tell_of_room() {
  // Not for each datagram: those who wait have much to say.
  if (sender_.has_room(kChannelStore / 4)) waiters_.tell_of_room();
}

void RdChannel::end_all(RdClient::End end) {
  end_ = end;
  sender_.abandon([&](const SentDatagram& d) {
    if (end == RdClient::End::lost) messages_lost_ += d.messages;
    if (RdClient* client = shared_.client(d.client)) client->message_ended(d.request, end);
  });
  tell_of_room();
  if (receiver_) receiver_->ends();
  shared_.ended(*this);
}

void RdChannel::receives_posted(uint8_t index) {
  if (!receiver_ || !receiver_->waits_for(index)) return;
  owner_.reached();
  receiver_->resume(index, *this);
  if (receiver_->waits_for(index)) shared_.waits(*this, index);
}

void RdChannel::flush() {
  if (!answers_.empty()) say_answers();
  if (!receiver_ || !receiver_->pending()) return;
  receiver_->flush();
  owner_.reached();
}

// --- datagrams in

// Something of the peer's came that only who is set up can say.
void RdChannel::confirm(Time now) {
  if (handshake() != nullptr) {
    opening_.confirmed(now);
    look_at_opening(now);
    opening_.let_go();
  }
  presence_.heard(now);
}

void RdChannel::received(const WdpCommon& common, Bytes datagram, const UdReception& how,
                         Time now) {
  owner_.reached();
  if (const auto v = take(common, datagram, how, now); !v.ok()) shared_.dropped(v.error());
}

Result<Ok, WdpDrop> RdChannel::take(const WdpCommon& common, Bytes datagram, const UdReception& how,
                                    Time now) {
  if (left_bytes() > 0) return disown(common, datagram);
  if (state_ == State::refused || state_ == State::gone) return fail(WdpDrop::stale_handshake);
  if (common.wdp_class == wire::WdpBundle::kClass) return take_data(common, datagram, how, now);
  switch (common.wdp_class) {
    case WdpClass::ctl:
      return take_ctl(common, datagram, now);
    case WdpClass::rd:
      return take_data(common, datagram, how, now);
    case WdpClass::rd_ack: {
      if (!receiver_) return fail(WdpDrop::unknown_token);
      const auto ack = WdpAck::parse(datagram);
      if (!ack.ok()) return fail(ack.error());
      return take_ack(*ack, now);
    }
    default:
      return fail(WdpDrop::wrong_class);
  }
}

Result<Ok, WdpDrop> RdChannel::take_data(const WdpCommon& common, Bytes bytes,
                                         const UdReception& how, Time now) {
  // Who is idle and leaves: the peer sends it by another channel, for it has heard, or will, that
  // this one takes nothing more.
  if (!receiver_ || goodbye_.takes_nothing()) return fail(WdpDrop::unknown_token);
  RdDatagram datagram{common, bytes};
  if (const auto v = datagram.check(peer().terms); !v.ok()) return v;
  confirm(now);
  Result<Ok, WdpDrop> v = fail(WdpDrop::window_exceeded);
  // A peer that does not acknowledge its answers must not make us keep more and more of them. The
  // request is not acknowledged either, and comes again.
  if (!datagram.wants_response() || !answers_.full()) {
    presence_.exchanged();
    active_ = now;
    v = accept(datagram, how, now);
  }
  // No transmission says it again: that of a copy counts as well.
  if (const auto& ack = datagram.ack()) {
    if (const auto heard = take_ack(*ack, now); !heard.ok()) shared_.dropped(heard.error());
  }
  return v;
}

Result<Ok, WdpDrop> RdChannel::accept(const RdDatagram& datagram, const UdReception& how,
                                      Time now) {
  const Csn csn = datagram.csn();
  if (const auto v = receiver_->admit(csn, datagram.content()); !v.ok()) return v;
  datagram.each_message([&](const WdpData& d, Bytes payload) {
    const RdArrival arrival{d, make_qpn(port_of(peer().port), d.sidx), how};
    const auto v = receiver_->accept(arrival, payload, *this, now);
    if (!v.ok()) shared_.dropped(v.error());
    if (receiver_->waits_for(d.didx)) shared_.waits(*this, d.didx);
  });
  receiver_->taken(csn, datagram.weight(), datagram.asks_for_ack(), is_marked(how.traffic_class),
                   now);
  return Ok{};
}

bool RdChannel::take(const RdArrival& arrival, Bytes payload) {
  // A side that says goodbye still hears messages of UD. Nothing can be answered by then.
  if (arrival.header.is_of_rd() && !speaks()) return true;
  if (!is_resp(arrival.header)) {
    // For the answer, before anything is done that must not be done twice.
    answers_.reserve();
    return shared_.take(*this, arrival, payload);
  }
  for (; !payload.empty(); payload = payload.subspan(WdpResponse::kSize)) {
    shared_.answered(*this, WdpResponse::parse(payload.data()));
  }
  return true;
}

// It has ended, and is there for what waits for receives alone: as a port that does not know the
// token (spec/wdp-rd 2.4).
Result<Ok, WdpDrop> RdChannel::disown(const WdpCommon& common, Bytes datagram) {
  if (common.wdp_class != WdpClass::ctl) return fail(WdpDrop::unknown_token);
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok()) return fail(c.error());
  if (c->type != CtlType::ka && c->type != CtlType::dreq) return fail(WdpDrop::unknown_token);
  WdpCtl answer = message(CtlType::drep);
  answer.xid = c->xid;
  outbox_.say(answer);
  return Ok{};
}

Result<Ok, WdpDrop> RdChannel::take_ctl(const WdpCommon& common, Bytes datagram, Time now) {
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok()) return fail(c.error());
  if (c->type <= CtlType::wait) {
    const auto v = opening_.received(*c, datagram.size(), now);
    look_at_opening(now);
    return v;
  }
  if (!receiver_) return fail(WdpDrop::unwanted_ctl);
  confirm(now);
  sender_.heard();
  switch (c->type) {
    case CtlType::ka: {
      // Who has said goodbye does not say that it is there.
      if (!speaks()) return fail(WdpDrop::unwanted_ctl);
      active_ = now;
      presence_.rested();
      WdpCtl answer = message(CtlType::kaa);
      answer.xid = c->xid;
      outbox_.say(answer);
      receiver_->acknowledge_now();
      return Ok{};
    }
    case CtlType::kaa:
      active_ = now;
      if (presence_.answered(c->xid.value())) tell_of_room();
      return Ok{};
    case CtlType::probe: {
      WdpCtl answer = message(CtlType::probea);
      answer.xid = c->xid;
      answer.max_payload = c->length;
      outbox_.say(answer);
      return Ok{};
    }
    case CtlType::probea:
      if (search_.answered(c->xid, c->max_payload)) tell_of_room();
      return Ok{};
    case CtlType::dreq:
      peer_leaves(*c, now);
      return Ok{};
    case CtlType::drep:
      if (state_ == State::closing) state_ = State::gone;
      // Nobody has said goodbye: the peer does not know the channel.
      if (speaks() && c->source_token == peer().token) abort();
      return Ok{};
    default:
      return fail(WdpDrop::unwanted_ctl);
  }
}

Result<Ok, WdpDrop> RdChannel::take_ack(const WdpAck& ack, Time now) {
  confirm(now);
  const auto v = sender_.received(ack, now, [&](const SentDatagram& d) {
    active_ = now;
    presence_.exchanged();
    if (RdClient* client = shared_.client(d.client)) {
      client->message_ended(d.request, RdClient::End::delivered);
    }
  });
  tell_of_room();
  if (goodbye_.waits() && sender_.idle() && answers_.empty()) say_goodbye(now);
  return v;
}

// spec/wdp-rd 2.4: DREQ names CUM, so that what has come is known at last. Of a channel that was
// idle, so is what has not.
void RdChannel::peer_leaves(const WdpCtl& dreq, Time now) {
  WdpAck ack;
  ack.cum = next(dreq.highest_psn);
  (void)take_ack(ack, now);
  outbox_.say(message(CtlType::drep));
  state_ = State::gone;
  goodbye_.stop();
  const bool idle = dreq.reason == static_cast<uint32_t>(wire::DreqReason::idle);
  end_all(idle ? RdClient::End::undelivered : RdClient::End::lost);
}

// --- what is said

WdpCtl RdChannel::message(CtlType type) const {
  return {.type = type,
          .token = peer().token,
          .source_token = token(),
          .source = peer().own_port,
          .destination = peer().port,
          .service = wire::CtlService::rd_channel,
          .highest_psn = Psn{receiver_ ? receiver_->cum().value() - 1 : 0}};
}

void RdChannel::say_dreq(Time now) {
  // Who has sent nothing knows that of the handshake.
  RoundTrip trip = sender_.round_trip();
  if (!trip.known() && peer().round_trip) trip.sample(*peer().round_trip, Duration{});
  const auto dreq = goodbye_.say(trip.probe_pause(), now);
  WdpCtl c = message(CtlType::dreq);
  c.attempt = dreq.attempt;
  c.reason = static_cast<uint32_t>(dreq.reason);
  outbox_.say(c);
}

void RdChannel::ask() {
  WdpCtl c = message(CtlType::ka);
  c.xid = Xid{presence_.next()};
  outbox_.say(c);
}

uint32_t RdChannel::ask_peer() {
  owner_.reached();
  return presence_.want();
}

// Does anybody wait for it?
bool RdChannel::is_wanted() const {
  return !sender_.idle() || presence_.is_needed() || waiters_.any_wants_room();
}

bool RdChannel::ready(Time now) {
  // spec/wdp-rd 2.2
  if (state_ == State::setting_up && is_wanted()) opening_.call_too(now);
  if (opening_.ready() || !outbox_.empty()) return true;
  if (speaks() && answers_.write(receiver_->due(now), bundle_room(), now)) owner_.reached();
  if (speaks() && presence_.due()) return true;
  if (speaks() && search_.ready(now)) return true;
  return speaks() && (receiver_->due(now) || sender_.wants_to_ask() || sender_.ready(now));
}

// Its traffic class is the channel's own, whatever ECN the program asked for.
Path RdChannel::path_of_data() const {
  Path p = path();
  p.traffic_class = sender_.says_ect() ? with_ect(p.traffic_class) : without_ecn(p.traffic_class);
  return p;
}

WdpAck RdChannel::acknowledgement(Time now) {
  const RoundTrip& trip = sender_.round_trip();
  WdpAck ack = receiver_->acknowledgement(std::min(trip.known() ? trip.least() : Duration::max(),
                                                   peer().round_trip.value_or(Duration::max())),
                                          now);
  ack.token = peer().token;
  return ack;
}

void RdChannel::put_ack(Train& train, Time now) {
  // RFC 3168 6.1.4: alone it says nothing of ECN. Nobody would hear of its mark, nor find out that
  // the path drops such datagrams.
  Path way = path_of_data();
  if (train.empty()) way.traffic_class = without_ecn(way.traffic_class);
  // As long as it can get: what does not fit behind data goes alone.
  if (!train.takes(WdpAck::kMaxSize, way) && !train.takes(WdpAck::kSize, way)) return;
  const WdpAck ack = acknowledgement(now);
  if (!train.takes(ack.size(), way)) return receiver_->acknowledge_now();
  ack.encode(train.stage(ack.size()));
  train.begin(ack.size(), way);
  train.close();
}

void RdChannel::fill(Train& train, Time now) {
  if (opening_.ready()) return opening_.fill(train);
  if (speaks() && presence_.due()) {
    presence_.said(now);
    ask();
  }
  if (speaks() && outbox_.empty() && search_.ready(now)) say_probe(now);
  if (!outbox_.empty()) return outbox_.fill(train, path());
  if (!speaks()) return;
  if (sender_.ready(now)) {
    if (receiver_->pending() && sender_.takes_tail(bundle_room())) {
      const WdpAck ack = acknowledgement(now);
      sender_.fill(train, path_of_data(), now, &ack);
    } else {
      sender_.fill(train, path_of_data(), now);
    }
    if (!train.empty()) active_ = now;
  }
  if (train.empty() && sender_.wants_to_ask()) {
    sender_.asked();
    ask();
    return outbox_.fill(train, path());
  }
  // Behind data an acknowledgement costs no call of the kernel: it goes before it is due.
  if (receiver_->due(now) || (!train.empty() && receiver_->pending())) put_ack(train, now);
}

// --- time

Time RdChannel::deadline() {
  Time first = std::min(goodbye_.deadline(), opening_.deadline());
  if (!speaks()) return first;
  first = std::min({first, presence_.deadline(), sender_.deadline(), receiver_->deadline(),
                    goodbye_.waits_until(), search_.deadline(), answers_.deadline(),
                    waiters_.deadline()});
  if (sender_.may_rest()) first = std::min(first, active_ + kLogRests);
  if (presence_.is_needed()) return first;
  if (sender_.idle() && receiver_->holds_nothing()) first = std::min(first, active_ + kIdleChannel);
  return first;
}

void RdChannel::tick(Time now) {
  if (now >= opening_.deadline()) {
    opening_.tick(now);
    look_at_opening(now);
  }
  const auto due = goodbye_.tick(now);
  if (due == RdGoodbye::Due::again) say_dreq(now);
  if (due == RdGoodbye::Due::over) state_ = State::gone;
  if (!speaks()) return;
  if (presence_.tick_first(active_, now)) ask();
  receiver_->tick(now);
  waiters_.tick(now);
  if (answers_.tick(now)) owner_.reached();
  if (search_.tick(now)) tell_of_room();
  if (sender_.may_rest() && now >= active_ + kLogRests) sender_.rest();
  if (!sender_.tick(now)) return abort();
  if (presence_.follows(sender_.unanswered())) ask();
  if (goodbye_.is_late(now)) return say_goodbye(now);
  if (presence_.is_needed()) return keep_alive(now);
  if (sender_.idle() && receiver_->holds_nothing() && now >= active_ + kIdleChannel) {
    end_for_want_of_messages(now);
  }
}

void RdChannel::keep_alive(Time now) {
  switch (presence_.tick(now)) {
    case PeerWatch::Due::nothing:
      return;
    case PeerWatch::Due::question:
      return ask();
    case PeerWatch::Due::end:
      return abort();
  }
}

uint32_t RdChannel::silence() const {
  return speaks() ? presence_.silence(sender_.unanswered()) : 0;
}

std::vector<std::byte> RdChannel::question() const {
  const WdpCtl ka = message(CtlType::ka);
  std::vector<std::byte> bytes(ka.size());
  ka.encode(bytes.data());
  return bytes;
}

// --- the end

void RdChannel::close(Time now) {
  closed_ = true;
  owner_.reached();
  if (!speaks()) return abort();
  if (sender_.idle() && answers_.empty()) return say_goodbye(now);
  answers_.say();
  goodbye_.wait(now);
}

// spec/wdp-rd 2.4: what the peer sends just now is not lost, if CUM says all that was taken. No
// answer is on its way either, so the peer's requests that have come are complete.
void RdChannel::end_for_want_of_messages(Time now) {
  if (answers_.empty() && receiver_->has_all_before_cum()) goodbye_.take_nothing();
  close(now);
}

void RdChannel::say_goodbye(Time now) {
  state_ = State::closing;
  say_dreq(now);
  end_all(RdClient::End::lost);
}

void RdChannel::abort() {
  if (state_ == State::gone || state_ == State::refused) return;
  owner_.reached();
  try {
    opening_.withdraw();
  } catch (const std::bad_alloc&) {
    // The peer gives up by itself.
  }
  state_ = State::gone;
  goodbye_.stop();
  end_all(RdClient::End::lost);
}

void RdChannel::forget() {
  opening_.forget();
  abort();
}

bool RdChannel::is_gone() const {
  return (state_ == State::gone || state_ == State::refused) && outbox_.empty() &&
         !opening_.ready() && left_bytes() == 0;
}

}  // namespace weft::wdp
