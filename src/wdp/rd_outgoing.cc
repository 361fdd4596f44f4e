#include "wdp/rd_outgoing.h"

#include <algorithm>
#include <utility>

#include "wdp/ecn.h"

namespace weft::wdp {

using wire::WdpAck;
using wire::WdpData;
using wire::WdpDrop;
using wire::WdpResponse;

RdOutgoing::RdOutgoing(RdShared& shared, RdChannelOwner& owner, const RdOpening& opening,
                       Random& random, bool ecn, std::unique_ptr<Congestion> congestion)
    : shared_(shared),
      owner_(owner),
      opening_(opening),
      random_(random),
      sender_(Csn{static_cast<uint32_t>(random.next())}, std::move(congestion), ecn,
              RdExtra{shared.budget()}),
      writer_(sender_),
      answers_(writer_, sender_),
      waiters_(shared) {}

// --- messages and answers

std::byte* RdOutgoing::send(const RdMessage& m, ClientId client, uint64_t request) {
  std::byte* const place = writer_.write(m, client, request);
  owner_.reached();
  return place;
}

std::byte* RdOutgoing::send_shared(const RdMessage& m, ClientId client, uint64_t request) {
  std::byte* const place =
      writer_.write_shared(m, client, request, takes_bundles() ? bundle_room() : 0);
  owner_.reached();
  return place;
}

bool RdOutgoing::lacks_room(const RdMessage& m, ClientId client, uint64_t request) {
  if (search_.has_begun() || !takes_bundles()) return false;
  return sender_.size_with(WdpData::kSize + size_t{m.length}, client, request) > bundle_room();
}

std::byte* RdOutgoing::send(WdpData& segment, bool first) {
  std::byte* const place = writer_.write(segment, first, bundle_room());
  owner_.reached();
  return place;
}

size_t RdOutgoing::segment_room(const PathRoom& room) {
  const bool ipv4 = goes_by_ipv4();
  if (!room.certain && search_.begin(room.most, ipv4, random_)) owner_.reached();
  return search_.segment_room(room, ipv4);
}

void RdOutgoing::respond(const WdpResponse& response) {
  answers_.add(response, active_);
  owner_.reached();
}

void RdOutgoing::say_answers() {
  answers_.say();
  owner_.reached();
}

void RdOutgoing::write_answers(bool company, Time now) {
  if (answers_.empty()) return;
  if (answers_.write(company, bundle_room(), now)) owner_.reached();
}

// --- its life

void RdOutgoing::opens(Time now) {
  const RdPeer& peer = opening_.peer();
  open_ = true;
  active_ = now;
  sender_.open(peer.token, peer.terms.crc, now);
  tell_of_room();
}

void RdOutgoing::end(RdClient::End end) {
  open_ = false;
  sender_.abandon([&](const SentDatagram& d) {
    if (end == RdClient::End::lost) messages_lost_ += d.messages;
    messages_ended(d, end);
  });
  tell_of_room();
}

void RdOutgoing::begin_anew() {
  open_ = false;
  writer_.go_on_with({});
  sender_.restart([&](const SentDatagram& d) { messages_ended(d, RdClient::End::undelivered); });
}

void RdOutgoing::messages_ended(const SentDatagram& d, RdClient::End end) {
  RdClient* const client = shared_.client(d.client);
  if (client == nullptr) return;
  for (uint64_t i = 0; i < d.messages; ++i) client->message_ended(d.request + i, end);
}

void RdOutgoing::rest(RestingChannel& as) {
  as.sent = sender_.resting();
  as.flows_out = writer_.take_flows();
  as.active = active_;
}

void RdOutgoing::wake(RestingChannel& before) {
  sender_.wake(before.sent);
  writer_.go_on_with(std::move(before.flows_out));
}

void RdOutgoing::tell_of_room() {
  // Not for each datagram: those who wait have much to say.
  if (sender_.has_room(kChannelStore / 4)) waiters_.tell_of_room();
}

void RdOutgoing::path_carries(size_t size) {
  sender_.path_carries(size);
  search_.limit(size);
}

// --- datagrams

Path RdOutgoing::path_of_data() const {
  Path p = opening_.path();
  p.traffic_class = sender_.says_ect() ? with_ect(p.traffic_class) : without_ecn(p.traffic_class);
  return p;
}

void RdOutgoing::fill(Train& train, Time now, const WdpAck* ack) {
  sender_.fill(train, path_of_data(), now, ack);
  if (!train.empty()) active_ = now;
}

Result<bool, WdpDrop> RdOutgoing::take_ack(const WdpAck& ack, Time now) {
  bool any = false;
  const auto v = sender_.received(ack, now, [&](const SentDatagram& d) {
    any = true;
    active_ = now;
    messages_ended(d, RdClient::End::delivered);
  });
  tell_of_room();
  if (!v.ok()) return fail(v.error());
  return any;
}

// --- time

Time RdOutgoing::deadline() {
  const bool may_rest = sender_.may_rest() || answers_.may_rest();
  const Time rests = may_rest ? active_ + kMemoryRests : Time::never();
  return std::min(
      {sender_.deadline(), answers_.deadline(), search_.deadline(), waiters_.deadline(), rests});
}

bool RdOutgoing::tick(Time now) {
  waiters_.tick(now);
  if (answers_.tick(now)) owner_.reached();
  if (search_.tick(now)) tell_of_room();
  if (now >= active_ + kMemoryRests) {
    if (sender_.may_rest()) sender_.rest();
    if (answers_.may_rest()) answers_.rest();
  }
  return sender_.tick(now);
}

}  // namespace weft::wdp
