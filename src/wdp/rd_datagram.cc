#include "wdp/rd_datagram.h"

#include "wire/wdp_crc.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpBundle;
using wire::WdpData;
using wire::WdpDrop;

namespace {

constexpr uint32_t kMostMessage = uint32_t{1} << 31;

// What one that is right alone may not be on a channel.
Result<Ok, WdpDrop> check_message(const WdpData& d, const RdTerms& terms) {
  if (!is_resp(d) && (!wire::is_queue_pair(d.didx) || !wire::is_queue_pair(d.sidx))) {
    return fail(WdpDrop::index_mismatch);
  }
  // Whatever is not UD's is a request with R, or answers one, or is a RESP.
  if (d.is_of_rd() && !(terms.responses && (d.wants_response || d.is_response() || is_resp(d)))) {
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

}  // namespace

Result<Ok, WdpDrop> RdDatagram::check(const RdTerms& terms) {
  return is_bundle() ? check_bundle(terms) : check_one(terms);
}

Result<Ok, WdpDrop> RdDatagram::check_crc(const RdTerms& terms) const {
  if (terms.crc && !common_.flags.crc) return fail(WdpDrop::crc_missing);
  if (common_.flags.crc && !wire::wdp_crc_matches(bytes_)) return fail(WdpDrop::bad_crc);
  return Ok{};
}

Result<Ok, WdpDrop> RdDatagram::check_one(const RdTerms& terms) {
  if (const auto v = first_.read(common_, bytes_, bytes_.size()); !v.ok()) return v;
  if (const auto v = check_crc(terms); !v.ok()) return v;
  messages_ = 1;
  payload_ = bytes_.subspan(WdpData::kSize);
  weight_ = bytes_.size() + kDatagramOverhead;
  messages_of_ud_ = first_.is_of_rd() ? 0 : 1;
  wants_response_ = first_.wants_response;
  return check_message(first_, terms);
}

// spec/wdp-rd 6.7
Result<Ok, WdpDrop> RdDatagram::check_bundle(const RdTerms& terms) {
  if (!terms.responses) return fail(WdpDrop::unknown_class);
  Result<Ok, WdpDrop> good = Ok{};
  weight_ = WdpBundle::kSize;
  const auto message = [&](const WdpData& d, Bytes part) {
    weight_ += WdpBundle::kFrame + part.size() + kDatagramOverhead;
    wants_response_ = wants_response_ || d.wants_response;
    if (!d.is_of_rd()) ++messages_of_ud_;
    if (good.ok()) good = check_message(d, terms);
    if (messages_++ > 0) return;
    first_ = d;
    payload_ = part.subspan(WdpData::kSize);
  };
  if (const auto v = WdpBundle::read(common_, bytes_, message, ack_); !v.ok()) return v;
  if (const auto v = check_crc(terms); !v.ok()) return v;
  return good;
}

}  // namespace weft::wdp
