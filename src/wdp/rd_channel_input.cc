// Messages in: a datagram of one, or a bundle of several. Part of RdChannel.

#include <algorithm>
#include <utility>

#include "wdp/ecn.h"
#include "wdp/rd_channel.h"
#include "wire/wdp_bundle.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpAck;
using wire::WdpBundle;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpData;
using wire::WdpDrop;
using wire::WdpResponse;

namespace {

constexpr uint32_t kMostMessage = uint32_t{1} << 31;

bool is_queue_pair(uint8_t index) {
  return index != wire::kPortIndex && index != wire::kMulticastIndex;
}

bool is_resp(const WdpData& d) {
  return d.opcode == Opcode::terminate && !d.is_end();
}

// Calls f(const WdpCommon&, Bytes) for each part of a bundle that was checked.
template <class F>
void each_part(Bytes datagram, F&& f) {
  for (Bytes rest = datagram.subspan(WdpBundle::kSize); !rest.empty();) {
    const Bytes part = *WdpBundle::take(rest);
    f(*WdpCommon::parse(part), part);
  }
}

}  // namespace

Result<Ok, WdpDrop> RdChannel::check_crc(const WdpCommon& common, Bytes datagram) const {
  if (peer_.crc && !common.flags.crc) return fail(WdpDrop::crc_missing);
  if (common.flags.crc && !wire::wdp_crc_matches(datagram)) return fail(WdpDrop::bad_crc);
  return Ok{};
}

// What one that is right alone may not be on a channel.
Result<Ok, WdpDrop> RdChannel::check_message(const WdpData& d) const {
  if (!is_resp(d) && (!is_queue_pair(d.didx) || !is_queue_pair(d.sidx))) {
    return fail(WdpDrop::index_mismatch);
  }
  // Whatever is not UD's is a request with R, or answers one, or is a RESP.
  if (d.is_of_rd() && !(has_responses() && (d.wants_response || d.is_response() || is_resp(d)))) {
    return fail(WdpDrop::bad_opcode);
  }
  if (!d.is_of_rd() && d.segment_count() != 1) return fail(WdpDrop::too_many_segments);
  // spec/wdp-rd 6.1
  if (d.is_of_rd() && d.mlen > kMostMessage) return fail(WdpDrop::message_length);
  if (is_resp(d) && d.wants_response) return fail(WdpDrop::bad_opcode);
  // It is for the whole Read.
  if (d.opcode == Opcode::read_request && d.mo != MessageOffset{}) {
    return fail(WdpDrop::read_range);
  }
  return Ok{};
}

Result<Ok, WdpDrop> RdChannel::accept(const WdpData& d, Bytes payload, const UdReception& how,
                                      Time now) {
  const RdArrival arrival{d, make_qpn(port_of(peer_.port), d.sidx), how};
  const auto v = receiver_->accept(arrival, payload, *this, now);
  if (receiver_->waits_for(d.didx)) shared_.waits(*this, d.didx);
  return v;
}

Result<Ok, WdpDrop> RdChannel::take_data(const WdpCommon& common, Bytes datagram,
                                         const UdReception& how, Time now) {
  if (!receiver_) return fail(WdpDrop::unknown_token);
  const auto d = WdpData::parse(common, datagram, datagram.size());
  if (!d.ok()) return fail(d.error());
  if (const auto v = check_crc(common, datagram); !v.ok()) return v;
  if (const auto v = check_message(*d); !v.ok()) return v;
  confirm(now);
  // A peer that does not acknowledge its answers must not make us keep more and more of them. The
  // request is not acknowledged either, and comes again.
  if (d->wants_response && answers_.full()) return fail(WdpDrop::window_exceeded);
  watch_.exchanged();
  active_ = now;
  const Bytes payload = datagram.subspan(WdpData::kSize);
  if (const auto v = receiver_->admit(d->psn, payload.size()); !v.ok()) return v;
  const auto v = accept(*d, payload, how, now);
  receiver_->taken(d->psn, datagram.size() + kDatagramOverhead, common.flags.ack_requested,
                   is_marked(how.traffic_class), now);
  return v;
}

// spec/wdp-rd 6.7: all of it is right, or nothing is looked at.
Result<Ok, WdpDrop> RdChannel::take_bundle(const WdpCommon& common, Bytes datagram,
                                           const UdReception& how, Time now) {
  if (!receiver_) return fail(WdpDrop::unknown_token);
  if (!has_responses()) return fail(WdpDrop::unknown_class);
  if (const auto v = WdpBundle::check(common, datagram); !v.ok()) return v;
  if (const auto v = check_crc(common, datagram); !v.ok()) return v;
  Result<Ok, WdpDrop> good = Ok{};
  bool wants_response = false;
  std::optional<WdpAck> ack;
  each_part(datagram, [&](const WdpCommon& front, Bytes part) {
    if (front.wdp_class == WdpClass::rd_ack) {
      ack = *WdpAck::parse(part);
      return;
    }
    const WdpData d = *WdpData::parse(front, part, part.size());
    wants_response = wants_response || d.wants_response;
    if (good.ok()) good = check_message(d);
  });
  if (!good.ok()) return good;
  confirm(now);
  // No transmission says it again.
  const auto heed_ack = [&] {
    if (!ack) return;
    if (const auto v = take_ack(*ack, now); !v.ok()) shared_.dropped(v.error());
  };
  // As above.
  if (wants_response && answers_.full()) {
    heed_ack();
    return fail(WdpDrop::window_exceeded);
  }
  watch_.exchanged();
  active_ = now;
  const Csn csn{common.class_word};
  good = receiver_->admit(csn, datagram.size() - WdpBundle::kSize);
  if (good.ok()) {
    size_t weight = WdpBundle::kSize;
    each_part(datagram, [&](const WdpCommon& front, Bytes part) {
      if (front.wdp_class != WdpClass::rd) return;
      weight += WdpBundle::kFrame + part.size() + kDatagramOverhead;
      const WdpData d = *WdpData::parse(front, part, part.size());
      const auto v = accept(d, part.subspan(WdpData::kSize), how, now);
      if (!v.ok()) shared_.dropped(v.error());
    });
    receiver_->taken(csn, weight, common.flags.ack_requested, is_marked(how.traffic_class), now);
  }
  heed_ack();  // a copy's as well
  return good;
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

}  // namespace weft::wdp
