#include "mpa/startup.h"

#include <algorithm>

namespace weft::mpa {
namespace {

using wire::HostOffer;
using wire::MpaEnhanced;
using wire::MpaStart;
using wire::RdOffer;

std::vector<std::byte> make_frame(MpaStart start, const std::optional<MpaEnhanced>& enhanced,
                                  Bytes private_data, const std::optional<HostOffer>& host = {},
                                  const std::optional<RdOffer>& rd = {}) {
  const size_t block = (enhanced ? MpaEnhanced::kSize : 0) + (host ? HostOffer::kSize : 0) +
                       (rd ? RdOffer::kSize : 0);
  std::vector<std::byte> out(MpaStart::kSize + block + private_data.size());
  start.private_data_length = static_cast<uint16_t>(block + private_data.size());
  start.enhanced = enhanced.has_value();
  start.host_offered = host.has_value();
  start.rd_offered = rd.has_value();
  start.encode(out.data());
  if (enhanced) enhanced->encode(out.data() + MpaStart::kSize);
  if (host) host->encode(out.data() + MpaStart::kSize + MpaEnhanced::kSize);
  if (rd) rd->encode(out.data() + MpaStart::kSize + block - RdOffer::kSize);
  std::copy(private_data.begin(), private_data.end(),
            out.begin() + static_cast<ptrdiff_t>(MpaStart::kSize + block));
  return out;
}

std::optional<uint16_t> negotiated(uint16_t v) {
  if (v == MpaEnhanced::kNotNegotiated) return {};
  return v;
}

FrameReader::Error to_reader_error(MpaStart::Error e) {
  switch (e) {
    case MpaStart::Error::bad_key:
      return FrameReader::Error::bad_key;
    case MpaStart::Error::bad_revision:
      return FrameReader::Error::bad_revision;
    case MpaStart::Error::private_data_too_long:
      break;
  }
  return FrameReader::Error::private_data_too_long;
}

}  // namespace

const char* to_string(FrameReader::Error e) {
  switch (e) {
    case FrameReader::Error::bad_key:
      return "the peer does not speak MPA";
    case FrameReader::Error::bad_revision:
      return "the peer's MPA revision is neither 1 nor 2";
    case FrameReader::Error::private_data_too_long:
      return "the peer announces more than 512 bytes of private data";
    case FrameReader::Error::enhanced_block_missing:
      return "the peer announces an enhanced block and leaves it out";
  }
  return "?";
}

Result<std::optional<FrameReader::Frame>, FrameReader::Error> FrameReader::received(Bytes& bytes) {
  auto take_until = [&](size_t size) {
    const size_t n = std::min(size - have_.size(), bytes.size());
    have_.insert(have_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    return have_.size() == size;
  };
  if (have_.size() < MpaStart::kSize && !take_until(MpaStart::kSize)) {
    return std::optional<Frame>{};
  }
  const auto start = MpaStart::parse(kind_, have_.data());
  if (!start.ok()) return fail(to_reader_error(start.error()));
  if (!take_until(MpaStart::kSize + start->private_data_length)) return std::optional<Frame>{};

  Frame frame{.start = *start};
  Bytes data = Bytes{have_}.subspan(MpaStart::kSize);
  if (start->enhanced) {
    if (data.size() < MpaEnhanced::kSize) return fail(Error::enhanced_block_missing);
    frame.enhanced = MpaEnhanced::parse(data.data());
    data = data.subspan(MpaEnhanced::kSize);
  }
  if (start->host_offered) {
    if (data.size() < HostOffer::kSize) return fail(Error::enhanced_block_missing);
    frame.host = HostOffer::parse(data.data());
    data = data.subspan(HostOffer::kSize);
  }
  if (start->rd_offered) {
    if (data.size() < RdOffer::kSize) return fail(Error::enhanced_block_missing);
    frame.rd = RdOffer::parse(data.data());
    data = data.subspan(RdOffer::kSize);
  }
  frame.private_data.assign(data.begin(), data.end());
  return std::optional<Frame>{std::move(frame)};
}

std::optional<MpaStart> FrameReader::start() const {
  if (have_.size() < MpaStart::kSize) return {};
  const auto start = MpaStart::parse(kind_, have_.data());
  if (!start.ok()) return {};
  return *start;
}

std::vector<std::byte> Initiator::request(Bytes private_data, bool same_host, bool rd) {
  MpaStart start{
      .kind = MpaStart::Kind::request,
      .crc = offer_.crc,
      .extension_requested = offer_.extension && offer_.revision == 2,
      .host_requested = same_host && offer_.extension && offer_.revision == 2,
      .rd_requested = rd && offer_.extension && offer_.revision == 2,
      .established_later = offer_.established_later && offer_.extension && offer_.revision == 2,
      .revision = offer_.revision};
  asked_host_ = start.host_requested;
  asked_rd_ = start.rd_requested;
  std::optional<MpaEnhanced> enhanced;
  if (offer_.revision == 2) {
    enhanced = MpaEnhanced{.peer_to_peer = offer_.peer_to_peer,
                           .rtr_fpdu = offer_.peer_to_peer,
                           .rtr_write = offer_.peer_to_peer,
                           .rtr_read = offer_.peer_to_peer,
                           .ird = offer_.ird,
                           .ord = offer_.ord};
  }
  return make_frame(start, enhanced, private_data);
}

std::optional<Initiator::Outcome> Initiator::received(Bytes& bytes) {
  auto frame = reader_.received(bytes);
  if (!frame.ok()) {
    return Outcome{.refused = Refused{wire::term::kMpaBadFrame, frame.error()}};
  }
  if (!*frame) return {};
  return judge(**frame);
}

Initiator::Outcome Initiator::judge(FrameReader::Frame& reply) const {
  Outcome o;
  if (reply.start.rejected) {
    o.rejected = Rejected{std::move(reply.private_data)};
    return o;
  }
  if (reply.start.revision < offer_.revision) {
    o.retry_revision_1 = true;
    return o;
  }
  // A Reply may only grant what the Request had: revision 1 asks for no extension and sends no
  // enhanced block.
  const bool enhanced = offer_.revision == 2;
  Parameters p{.revision = std::min(offer_.revision, reply.start.revision),
               .crc = offer_.crc || reply.start.crc,
               .send_markers = reply.start.markers,
               // siw echoes XR, so XA alone is an agreement (spec/mpa 2.7).
               .extension = offer_.extension && enhanced && reply.start.extension_accepted &&
                            !reply.start.extension_requested,
               .ird = offer_.ird,
               .ord = offer_.ord};
  p.established_later = offer_.established_later && p.extension;
  if (asked_host_ && reply.start.host_offered) {
    o.host_offered = true;
    if (!reply.start.markers) o.host = reply.host;
  }
  if (asked_rd_ && reply.start.rd_offered) {
    o.rd_offered = true;
    o.rd = reply.rd;
  }
  if (reply.enhanced && enhanced) {
    const MpaEnhanced& e = *reply.enhanced;
    if (const auto ird = negotiated(e.ird)) p.ord = std::min(offer_.ord, *ird);
    if (offer_.peer_to_peer && e.peer_to_peer) {
      p.peer_to_peer = true;
      if (e.rtr_write) {
        p.rtr = Rtr::write;
      } else if (e.rtr_read) {
        p.rtr = Rtr::read;
      } else if (e.rtr_fpdu) {
        p.rtr = Rtr::fpdu;
      } else {
        o.refused = Refused{.error = wire::term::kMpaNoMatchingRtr, .parameters = p};
        return o;
      }
    }
    if (const auto ord = negotiated(e.ord)) {
      // RFC 6581 section 9.1: an Initiator that cannot serve the Responder's ORD ends the
      // connection.
      if (*ord > kMostIrdOrd) {
        o.refused = Refused{.error = wire::term::kMpaInsufficientIrd, .parameters = p};
        return o;
      }
      p.ird = std::max(p.ird, *ord);
      p.peer_ord = ord;
    }
  }
  o.accepted = Accepted{p, std::move(reply.private_data)};
  return o;
}

Result<std::optional<Responder::Request>, Responder::Error> Responder::received(Bytes& bytes) {
  auto frame = reader_.received(bytes);
  if (!frame.ok()) return fail(frame.error());
  if (!*frame) return std::optional<Request>{};
  FrameReader::Frame& f = **frame;
  start_ = f.start;
  enhanced_ = f.enhanced;
  Request r{.private_data = std::move(f.private_data),
            .extension = start_.extension_requested && start_.revision == 2};
  if (enhanced_) {
    r.ird = negotiated(enhanced_->ird);
    r.ord = negotiated(enhanced_->ord);
    r.peer_to_peer = enhanced_->peer_to_peer;
  }
  return std::optional<Request>{std::move(r)};
}

bool Responder::may_offer_host(const Offer& limits, size_t private_data) const {
  // A stream with markers (RFC 5044 section 4.3) is one of TCP's: in memory FPDUs have another
  // form.
  return start_.host_requested && start_.extension_requested && limits.extension && enhanced_ &&
         !start_.markers &&
         MpaEnhanced::kSize + HostOffer::kSize + private_data <= MpaStart::kMaxPrivateData;
}

bool Responder::may_offer_rd(const Offer& limits, size_t private_data) const {
  return start_.rd_requested && limits.extension && enhanced_ &&
         MpaEnhanced::kSize + RdOffer::kSize + private_data <= MpaStart::kMaxPrivateData;
}

Responder::Reply Responder::accept(const Offer& limits, Bytes private_data,
                                   const std::optional<HostOffer>& host,
                                   const std::optional<RdOffer>& rd) const {
  Parameters p{.revision = start_.revision,
               .crc = limits.crc || start_.crc,
               .send_markers = start_.markers,
               .extension = limits.extension && start_.extension_requested && start_.revision == 2,
               .ird = limits.ird,
               .ord = limits.ord};
  p.established_later = start_.established_later && p.extension;
  std::optional<MpaEnhanced> answer;
  if (enhanced_) {
    // RFC 6581 section 9.1; never an ORD above the request's IRD (spec/mpa 2.3.3).
    if (const auto ord = negotiated(enhanced_->ord)) p.ird = std::min(*ord, limits.ird);
    if (const auto ird = negotiated(enhanced_->ird)) p.ord = std::min(*ird, limits.ord);
    answer = MpaEnhanced{.ird = p.ird, .ord = p.ord};
    // What the Initiator leaves to the ULP stays with it: RFC 6581 section 9.1.
    if (!negotiated(enhanced_->ord)) answer->ird = MpaEnhanced::kNotNegotiated;
    if (!negotiated(enhanced_->ird)) answer->ord = MpaEnhanced::kNotNegotiated;
    if (enhanced_->peer_to_peer) {
      p.peer_to_peer = answer->peer_to_peer = true;
      // An Initiator that names no kind gets the Write, as from siw (spec/mpa 2.4).
      if (enhanced_->rtr_write || (!enhanced_->rtr_read && !enhanced_->rtr_fpdu)) {
        p.rtr = Rtr::write;
        answer->rtr_write = true;
      } else if (enhanced_->rtr_read) {
        p.rtr = Rtr::read;
        answer->rtr_read = true;
      } else {
        p.rtr = Rtr::fpdu;
        answer->rtr_fpdu = true;
      }
    }
  }
  const MpaStart start{.kind = MpaStart::Kind::reply,
                       .crc = p.crc,
                       .extension_accepted = p.extension,
                       .revision = start_.revision};
  return {make_frame(start, answer, private_data, host, rd), p};
}

std::vector<std::byte> Responder::reject(Bytes private_data) const {
  const MpaStart asked = reader_.start().value_or(start_);
  std::optional<MpaEnhanced> answer;
  if (asked.enhanced) answer = MpaEnhanced{};
  const MpaStart start{.kind = MpaStart::Kind::reply,
                       .crc = asked.crc,
                       .rejected = true,
                       .revision = asked.revision};
  return make_frame(start, answer, private_data);
}

}  // namespace weft::mpa
