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
      out_(place.shared, place.owner, place.opening, place.random, ecn, std::move(congestion)) {}

// --- its life

void RdTraffic::meets_peer() {
  receiver_.emplace(at_.opening.peer().first, window_, RdExtra{at_.shared.budget()});
}

void RdTraffic::end(RdClient::End end) {
  out_.end(end);
  if (receiver_) receiver_->ends();
}

// --- at rest

Time RdTraffic::rests_at() const {
  const bool may = !kept_awake_ && out_.is_at_rest() && receiver_->may_rest();
  return may ? out_.active_at() + kMemoryRests : Time::never();
}

void RdTraffic::rest(RestingChannel& as) {
  out_.rest(as);
  as.came = receiver_->resting();
  as.flows_in = receiver_->take_flows();
}

void RdTraffic::wake(RestingChannel&& before, Time now) {
  out_.wake(before);
  receiver_.emplace(before.came.cum, window_, RdExtra{at_.shared.budget()});
  receiver_->wake(before.came, std::move(before.flows_in));
  opens(now);
  out_.is_active(before.active);
}

// --- datagrams out

bool RdTraffic::ready(Time now) {
  return receiver_->due(now) || out_.ready(now);
}

void RdTraffic::fill(Train& train, Time now) {
  if (!out_.sender().ready(now)) return;
  if (receiver_->pending() && out_.takes_ack()) {
    const WdpAck ack = acknowledgement(now);
    out_.fill(train, now, &ack);
  } else {
    out_.fill(train, now, nullptr);
  }
}

WdpAck RdTraffic::acknowledgement(Time now) {
  const RdPeer& peer = at_.opening.peer();
  const RoundTrip& trip = out_.sender().round_trip();
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
  Path way = out_.path_of_data();
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
  out_.is_active(now);
  const Csn csn = datagram.csn();
  if (const auto v = receiver_->admit(csn, datagram.content()); !v.ok()) return v;
  const uint16_t port = port_of(at_.opening.peer().port);
  datagram.each_message([&](const WdpData& d, Bytes payload) {
    const RdArrival arrival{d, make_qpn(port, d.sidx), how};
    const auto v = receiver_->accept(arrival, payload, *this, now);
    if (!v.ok()) at_.shared.dropped(v.error());
    if (receiver_->waits_for(d.didx)) at_.shared.waits(at_.channel, d.didx);
  });
  receiver_->taken(csn, datagram.weight(), std::max(1U, datagram.messages_of_ud()),
                   datagram.asks_for_ack(), is_marked(how.traffic_class), now);
  return Ok{};
}

bool RdTraffic::take(const RdArrival& arrival, Bytes payload) {
  // A side that says goodbye still hears messages of UD. Nothing can be answered by then.
  if (arrival.header.is_of_rd() && !out_.is_open()) return true;
  if (!is_resp(arrival.header)) {
    // For the answer, before anything is done that must not be done twice.
    if (arrival.header.is_of_rd()) out_.reserve_answer();
    return at_.shared.take(at_.channel, arrival, payload);
  }
  for (; !payload.empty(); payload = payload.subspan(WdpResponse::kSize)) {
    at_.shared.answered(at_.channel, WdpResponse::parse(payload.data()));
  }
  return true;
}

void RdTraffic::receives_posted(uint8_t index) {
  if (!receiver_ || !receiver_->waits_for(index)) return;
  at_.owner.reached();
  receiver_->resume(index, *this);
  if (receiver_->waits_for(index)) at_.shared.waits(at_.channel, index);
}

void RdTraffic::flush() {
  if (out_.has_answers()) out_.say_answers();
  if (!receiver_ || !receiver_->pending()) return;
  receiver_->flush();
  at_.owner.reached();
}

// --- time

Time RdTraffic::deadline() {
  return std::min(out_.deadline(), receiver_->deadline());
}

bool RdTraffic::tick(Time now) {
  receiver_->tick(now);
  return out_.tick(now);
}

}  // namespace weft::wdp
