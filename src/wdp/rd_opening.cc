#include "wdp/rd_opening.h"

#include <new>

namespace weft::wdp {

using wire::WdpCtl;
using wire::WdpDrop;

namespace {

RdPeer told_of(const Handshake& handshake) {
  const UcParameters agreed = handshake.parameters();
  return {.token = agreed.peer_token,
          .own_port = agreed.own_qpn,
          .port = agreed.peer_qpn,
          .first = *agreed.peer_first_psn,
          .terms = {.crc = agreed.crc,
                    .responses = handshake.peer().features.responses,
                    .starts = handshake.peer().features.starts},
          .round_trip = handshake.round_trip().value_or(Duration::max())};
}

}  // namespace

void RdOpening::call(const Offer& offer, const Path& path, Qpn destination, Time now) {
  path_ = path;
  token_ = offer.token;
  handshake_->connect(offer, path, destination, true, now);
}

void RdOpening::answer(const WdpCtl& req, const Path& path, size_t size, bool validated,
                       const Offer& offer, Time now) {
  path_ = path;
  token_ = offer.token;
  handshake_->requested(req, path, size, validated);
  handshake_->accept(offer, now);
}

void RdOpening::wake(const Path& path, SessionToken own, const RdPeer& peer) {
  path_ = path;
  token_ = own;
  peer_ = peer;
  known_ = over_ = true;
  handshake_.reset();
}

void RdOpening::call_again(const Offer& offer, Time now) {
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->connect(offer, path_, peer_.port, true, now);
  handshake_ = std::move(handshake);
  over_ = false;
  resumes_ = true;
}

std::optional<RdOpening::Verdict> RdOpening::requested_again(const WdpCtl& req, size_t size,
                                                             bool validated, Time now) {
  if (resumes_) {
    // Both do: what follows it will say so.
    if (req.source_token == peer_.token) return Ok{};
    if (!validated) return {};
    // The peer has begun anew, and calls: from now on these are two that do.
    resumes_ = known_ = false;
  }
  if (handshake_ && handshake_->state() == Handshake::State::req_sent) {
    // One REQ was taken at its word, and is not dropped for another one that is.
    const bool other = req.source_token != handshake_->peer().source_token;
    if (handshake_->calls_too() && other && !validated) return {};
    // Both call: spec/wdp 4.6.
    const auto v = handshake_->received(req, size, now);
    // A socket that calls itself.
    if (req.source_token == token_) handshake_->confirmed(now);
    return v;
  }
  // Also its REQ that crossed ours, late: the REP that answered ours has the same token.
  if (req.source_token != peer_.token) return {};
  if (handshake_ && req.xid == handshake_->peer().xid) {
    handshake_->requested_again(size, validated, now);
  }
  return Ok{};
}

RdOpening::Verdict RdOpening::received(const WdpCtl& c, size_t size, Time now) {
  if (!handshake_) return fail(WdpDrop::stale_handshake);
  return handshake_->received(c, size, now);
}

RdOpening::News RdOpening::look() {
  if (over_) return News::none;
  const auto s = handshake_->state();
  if (s == Handshake::State::failed) {
    over_ = true;
    if (handshake_->failure() != Handshake::Failure::rejected) return News::failed;
    const auto reason = static_cast<wire::RejReason>(handshake_->peer().reason);
    return reason == wire::RejReason::application ? News::given_up : News::refused;
  }
  over_ = s == Handshake::State::established;
  if (!over_ && (known_ || !(handshake_->answers() || handshake_->calls_too()))) return News::none;
  // Again when it opens: the REQ that was answered first need not be the peer's.
  peer_ = told_of(*handshake_);
  path_ = handshake_->path();
  known_ = true;
  return over_ ? News::opens : News::peer_known;
}

void RdOpening::withdraw() {
  over_ = true;
  try {
    if (handshake_) handshake_->withdraw();
  } catch (const std::bad_alloc&) {
    // The peer gives up by itself.
  }
}

void RdOpening::forget() {
  over_ = true;
  if (handshake_) handshake_->forget();
}

}  // namespace weft::wdp
