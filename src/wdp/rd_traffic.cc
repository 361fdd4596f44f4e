#include "wdp/rd_traffic.h"

#include <algorithm>
#include <utility>

#include "wdp/ecn.h"

namespace weft::wdp {

using wire::WdpAck;
using wire::WdpData;
using wire::WdpDrop;
using wire::WdpResponse;

RdTraffic::RdTraffic(const Place& place, size_t window, bool ecn,
                     std::unique_ptr<Congestion> congestion)
    : at_(place),
      window_(window),
      sender_(Csn{static_cast<uint32_t>(place.random.next())}, std::move(congestion), ecn,
              RdExtra{place.shared.budget()}),
      writer_(sender_),
      answers_(writer_, sender_),
      waiters_(place.shared) {}

// --- its life

void RdTraffic::meets_peer() {
  receiver_.emplace(at_.opening.peer().first, window_, RdExtra{at_.shared.budget()});
}

void RdTraffic::opens(Time now) {
  const RdPeer& peer = at_.opening.peer();
  open_ = true;
  active_ = now;
  sender_.open(peer.token, peer.terms.crc, now);
  tell_of_room();
}

void RdTraffic::end(RdClient::End end) {
  open_ = false;
  sender_.abandon([&](const SentDatagram& d) {
    if (end == RdClient::End::lost) messages_lost_ += d.messages;
    if (RdClient* client = at_.shared.client(d.client)) client->message_ended(d.request, end);
  });
  tell_of_room();
  if (receiver_) receiver_->ends();
}

// --- at rest

Time RdTraffic::rests_at() const {
  const bool may = open_ && !kept_awake_ && sender_.is_at_rest() && receiver_->may_rest() &&
                   answers_.empty() && waiters_.empty();
  return may ? active_ + kMemoryRests : Time::never();
}

void RdTraffic::rest(RestingChannel& as) {
  as.sent = sender_.resting();
  as.came = receiver_->resting();
  as.flows_out = writer_.take_flows();
  as.flows_in = receiver_->take_flows();
  as.active = active_;
}

void RdTraffic::wake(RestingChannel&& before, Time now) {
  sender_.wake(before.sent);
  writer_.go_on_with(std::move(before.flows_out));
  receiver_.emplace(before.came.cum, window_, RdExtra{at_.shared.budget()});
  receiver_->wake(before.came, std::move(before.flows_in));
  opens(now);
  active_ = before.active;
}

void RdTraffic::begin_anew() {
  open_ = false;
  writer_.go_on_with({});
  sender_.restart([&](const SentDatagram& d) {
    if (RdClient* client = at_.shared.client(d.client)) {
      client->message_ended(d.request, RdClient::End::undelivered);
    }
  });
}

// --- out

std::byte* RdTraffic::send(const RdMessage& m, ClientId client, uint64_t request) {
  std::byte* const place = writer_.write(m, client, request);
  at_.owner.reached();
  return place;
}

std::byte* RdTraffic::send(WdpData& segment, bool first) {
  std::byte* const place = writer_.write(segment, first, bundle_room());
  at_.owner.reached();
  return place;
}

size_t RdTraffic::segment_room(size_t most, bool certain) {
  const bool ipv4 = goes_by_ipv4();
  if (!certain && search_.begin(most, ipv4, at_.random)) at_.owner.reached();
  return search_.segment_room(most, certain, ipv4);
}

void RdTraffic::respond(const WdpResponse& response) {
  answers_.add(response, active_);
  at_.owner.reached();
}

void RdTraffic::say_answers() {
  answers_.say();
  at_.owner.reached();
}

void RdTraffic::write_answers(Time now) {
  if (answers_.empty()) return;
  if (answers_.write(receiver_->due(now), bundle_room(), now)) at_.owner.reached();
}

void RdTraffic::tell_of_room() {
  // Not for each datagram: those who wait have much to say.
  if (sender_.has_room(kChannelStore / 4)) waiters_.tell_of_room();
}

bool RdTraffic::ready(Time now) {
  return receiver_->due(now) || sender_.wants_to_ask() || sender_.ready(now);
}

// Its traffic class is the channel's own, whatever ECN the program asked for.
Path RdTraffic::path_of_data() const {
  Path p = at_.opening.path();
  p.traffic_class = sender_.says_ect() ? with_ect(p.traffic_class) : without_ecn(p.traffic_class);
  return p;
}

void RdTraffic::fill(Train& train, Time now) {
  if (!sender_.ready(now)) return;
  if (receiver_->pending() && takes_bundles() && sender_.takes_tail(bundle_room())) {
    const WdpAck ack = acknowledgement(now);
    sender_.fill(train, path_of_data(), now, &ack);
  } else {
    sender_.fill(train, path_of_data(), now);
  }
  if (!train.empty()) active_ = now;
}

WdpAck RdTraffic::acknowledgement(Time now) {
  const RdPeer& peer = at_.opening.peer();
  const RoundTrip& trip = sender_.round_trip();
  const Duration least = trip.known() ? trip.least() : Duration::max();
  WdpAck ack = receiver_->acknowledgement(std::min(least, peer.round_trip), now);
  ack.token = peer.token;
  return ack;
}

void RdTraffic::acknowledge(Train& train, Time now) {
  // Behind data an acknowledgement costs no call of the kernel: it goes before it is due.
  if (!receiver_->due(now) && (train.empty() || !receiver_->pending())) return;
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

// --- in

Result<Ok, WdpDrop> RdTraffic::take(const RdDatagram& datagram, const UdReception& how, Time now) {
  active_ = now;
  const Csn csn = datagram.csn();
  if (const auto v = receiver_->admit(csn, datagram.content()); !v.ok()) return v;
  const uint16_t port = port_of(at_.opening.peer().port);
  datagram.each_message([&](const WdpData& d, Bytes payload) {
    const RdArrival arrival{d, make_qpn(port, d.sidx), how};
    const auto v = receiver_->accept(arrival, payload, *this, now);
    if (!v.ok()) at_.shared.dropped(v.error());
    if (receiver_->waits_for(d.didx)) at_.shared.waits(at_.channel, d.didx);
  });
  receiver_->taken(csn, datagram.weight(), datagram.asks_for_ack(), is_marked(how.traffic_class),
                   now);
  return Ok{};
}

bool RdTraffic::take(const RdArrival& arrival, Bytes payload) {
  // A side that says goodbye still hears messages of UD. Nothing can be answered by then.
  if (arrival.header.is_of_rd() && !open_) return true;
  if (!is_resp(arrival.header)) {
    // For the answer, before anything is done that must not be done twice.
    if (arrival.header.is_of_rd()) answers_.reserve();
    return at_.shared.take(at_.channel, arrival, payload);
  }
  for (; !payload.empty(); payload = payload.subspan(WdpResponse::kSize)) {
    at_.shared.answered(at_.channel, WdpResponse::parse(payload.data()));
  }
  return true;
}

Result<bool, WdpDrop> RdTraffic::take_ack(const WdpAck& ack, Time now) {
  bool any = false;
  const auto v = sender_.received(ack, now, [&](const SentDatagram& d) {
    any = true;
    active_ = now;
    if (RdClient* client = at_.shared.client(d.client)) {
      client->message_ended(d.request, RdClient::End::delivered);
    }
  });
  tell_of_room();
  if (!v.ok()) return fail(v.error());
  return any;
}

void RdTraffic::receives_posted(uint8_t index) {
  if (!receiver_ || !receiver_->waits_for(index)) return;
  at_.owner.reached();
  receiver_->resume(index, *this);
  if (receiver_->waits_for(index)) at_.shared.waits(at_.channel, index);
}

void RdTraffic::flush() {
  if (!answers_.empty()) say_answers();
  if (!receiver_ || !receiver_->pending()) return;
  receiver_->flush();
  at_.owner.reached();
}

// --- time

Time RdTraffic::deadline() {
  const bool may_rest = sender_.may_rest() || answers_.may_rest();
  const Time rests = may_rest ? active_ + kMemoryRests : Time::never();
  return std::min({sender_.deadline(), receiver_->deadline(), answers_.deadline(),
                   search_.deadline(), waiters_.deadline(), rests});
}

bool RdTraffic::tick(Time now) {
  receiver_->tick(now);
  waiters_.tick(now);
  if (answers_.tick(now)) at_.owner.reached();
  if (search_.tick(now)) tell_of_room();
  if (now >= active_ + kMemoryRests) {
    if (sender_.may_rest()) sender_.rest();
    if (answers_.may_rest()) answers_.rest();
  }
  return sender_.tick(now);
}

}  // namespace weft::wdp
