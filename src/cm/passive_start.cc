#include "cm/passive_start.h"

#include <array>
#include <utility>

#include "base/log.h"
#include "cm/peer_user.h"
#include "shared/agreement.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using stats::StartRefusal;
constexpr Duration kRequestWithin = 5s;  // spec/mpa 2.8
constexpr Duration kLinger = 1s;
constexpr Duration kReplySettles = 50ms;
constexpr size_t kMostOfAPlainPeer = 256;  // PD_Length

}  // namespace

using engine::Token;

PassiveStart& PassiveStart::start(Token& token, PassiveStartHandler& handler,
                                  port::TcpStream&& tcp) {
  auto owned = std::unique_ptr<PassiveStart>{new PassiveStart(handler)};
  PassiveStart& a = *owned;
  const int fd = tcp.fd();
  token.runtime().add(token, std::move(owned), fd, true, false);
  // A deadline finds its place also without memory (engine/deadlines.h).
  token.runtime().set_deadline(token, a, token.now() + kRequestWithin);
  a.tcp_ = std::move(tcp);
  a.begun_ = token.now();
  return a;
}

void PassiveStart::on_ready(Token& token, bool readable, bool) {
  if (!readable) return;
  std::array<std::byte, 1024> buffer;
  const IoVec piece{buffer.data(), buffer.size()};
  const auto t = tcp_.receive({&piece, 1});
  if (t.would_block) return;
  if (t.end || t.error != 0) {
    gone(token, StartRefusal::peer_left);
    return;
  }
  if (state_ == State::rejected) return;  // whatever it still says
  Bytes bytes{buffer.data(), t.bytes};
  if (state_ == State::parked) {
    WEFT_LOG(info, "%s sent FPDUs before the MPA Reply; closing", tcp_.peer().to_string().c_str());
    gone(token, StartRefusal::fpdu_before_reply);
    return;
  }
  auto request = responder_.received(bytes);
  if (!request.ok()) {
    WEFT_LOG(info, "connection from %s: %s; closing", tcp_.peer().to_string().c_str(),
             mpa::to_string(request.error()));
    gone(token, refusal_of(request.error()));
    return;
  }
  if (!*request) return;
  if (!bytes.empty()) {
    // spec/mpa 2.5.1: nothing may follow the Request before the Reply.
    gone(token, StartRefusal::bytes_behind_request);
    return;
  }
  state_ = State::parked;
  plain_ = !(*request)->extension;
  token.runtime().set_deadline(token, *this, Time::never());
  handler_->request_came(token, *this, **request);
}

// Said as a rejection, and not by closing: see Listener::request_came(). But a Reply has the
// revision of its Request, and an enhanced block where that has one: a peer that has not said that
// much cannot be answered.
void PassiveStart::on_no_memory(Token& token) {
  const auto asked = responder_.asked();
  if (state_ == State::rejected || !asked) return gone(token, StartRefusal::no_memory);
  plain_ = !asked->extension_requested || asked->revision != 2;
  handler_->count_no_memory(token);
  reject(token, {});
  handler_->start_gone(token, *this);
}

bool PassiveStart::speaks_for(const verbs::Context& context, Qpn peer) const {
  return cm::speaks_for(context, tcp_, peer);
}

void PassiveStart::wait_until(Token& token, Time when) {
  token.runtime().set_deadline(token, *this, when);
}

void PassiveStart::on_deadline(Token& token) {
  switch (state_) {
    case State::reading:
      gone(token, StartRefusal::request_late);
      break;
    case State::parked:
      handler_->start_overdue(token, *this);
      break;
    case State::rejected:
      if (std::exchange(shut_, true)) {
        drop(token);
      } else {
        tcp_.shut_write();
        token.runtime().set_deadline(token, *this, token.now() + kLinger);
      }
      break;
  }
}

void PassiveStart::gone(Token& token, StartRefusal why) {
  const bool told = state_ == State::rejected;
  if (!told) stats::count(token.runtime().counters().start_refused, why);
  drop(token);
  if (!told) handler_->start_gone(token, *this);
}

void PassiveStart::drop(Token& token) {
  token.runtime().remove(token, *this);
  tcp_.close();
}

bool PassiveStart::write(const std::vector<std::byte>& frame) {
  const IoVec piece{const_cast<std::byte*>(frame.data()), frame.size()};
  // A socket that has sent nothing yet takes half a kilobyte at once, or is broken.
  return tcp_.send({&piece, 1}).bytes == frame.size();
}

size_t PassiveStart::most_private_data() const {
  const auto asked = responder_.asked();
  if (!plain_ || !asked) return wire::MpaStart::kMaxPrivateData;
  return kMostOfAPlainPeer - (asked->enhanced ? wire::MpaEnhanced::kSize : 0);
}

std::optional<Started> PassiveStart::accept(Token& token, const mpa::Offer& limits,
                                            Bytes private_data,
                                            const std::optional<wire::RdOffer>& rd) {
  const bool offers_rd = rd && responder_.may_offer_rd(limits, private_data.size());
  std::optional<shared::Offered> host;
  const shared::Outlook outlook = shared::outlook(tcp_);
  const bool may_offer =
      !offers_rd && outlook.may_share() && responder_.may_offer_host(limits, private_data.size());
  if (may_offer) host = shared::offer(tcp_, token.runtime().counters());
  const auto reply =
      responder_.accept(limits, private_data, host ? std::optional{host->offer} : std::nullopt,
                        offers_rd ? rd : std::nullopt);
  // What is to go by datagrams has no use for it.
  if (!may_offer && !rd) {
    shared::count_unoffered(outlook, reply.parameters.extension, token.runtime().counters());
  }
  const bool written = write(reply.bytes);
  token.runtime().remove(token, *this);
  if (!written) {
    stats::count(token.runtime().counters().start_refused, StartRefusal::reply_unsent);
    tcp_.close();
    return {};
  }
  Started s;
  s.tcp = std::move(tcp_);
  s.parameters = reply.parameters;
  if (host) s.segment = std::move(host->segment);
  if (offers_rd) s.rd = wire::RdOffers{.own = *rd, .peer = {}};
  return s;
}

void PassiveStart::reject(Token& token, Bytes private_data) {
  bool written = false;
  token.runtime().guard(
      token, [&] { written = write(responder_.reject(private_data)); }, [] {});
  if (!written) {
    stats::count(token.runtime().counters().start_refused, StartRefusal::reply_unsent);
    drop(token);
    return;
  }
  // Closed when the peer closes, so that a reset does not overtake the Reply.
  state_ = State::rejected;
  if (plain_) {
    // siw forgets a Reply that it has not read when the FIN comes.
    const Time when = token.now() + kReplySettles;
    token.runtime().set_deadline(token, *this, when);
    token.runtime().closes_at(token, when);
    return;
  }
  tcp_.shut_write();
  shut_ = true;
  token.runtime().set_deadline(token, *this, token.now() + kLinger);
}

}  // namespace weft::cm
