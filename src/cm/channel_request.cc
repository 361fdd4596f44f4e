#include "cm/channel_request.h"

#include "base/log.h"
#include "drive/rd_bytes.h"
#include "verbs/address_handle.h"

namespace weft::cm {

using engine::Token;
using stats::StartRefusal;

ChannelRequest::Came ChannelRequest::start(Token& token, ChannelRequestHandler& handler,
                                           drive::DatagramDriver& driver,
                                           const wdp::RdStart& start) {
  wdp::RdChannels& channels = driver.wdp_socket().channels();
  wdp::RdChannel* const channel = channels.find(start.channel);
  if (channel == nullptr || !channel->is_usable()) return {};
  Bytes frame{start.frame};
  const auto count = [&](StartRefusal why) {
    stats::count(token.runtime().counters().start_refused, why);
    return Came{};
  };
  const Qpn own = make_qpn(channels.setup()->own_port, start.index);
  auto owned =
      std::unique_ptr<ChannelRequest>{new ChannelRequest(handler, driver, *channel, start, own)};
  ChannelRequest& r = *owned;
  auto request = r.responder_.received(frame);
  if (!request.ok()) return count(refusal_of(request.error()));
  // It comes whole, and alone.
  if (!*request || !frame.empty()) return count(StartRefusal::bytes_behind_request);
  token.runtime().add(token, std::move(owned), -1, false, false);
  // Until end() the channel neither rests nor ends by itself.
  channel->enter();
  return {.request = &r, .frame = std::move(**request)};
}

bool ChannelRequest::channel_has_ended() const {
  const wdp::RdChannel* const c = driver_.wdp_socket().channels().find(channel_);
  return c == nullptr || !c->is_usable();
}

bool ChannelRequest::is_cancelled_by(const wdp::RdStart& start) const {
  return start.channel == channel_ && start.index == index_of(own_) && start.offer == peer_;
}

// spec/addressing 6.2: the port in the number is bound as long as its process lives, and whoever
// calls does so from there.
bool ChannelRequest::speaks_for(const verbs::Context&, Qpn peer) const {
  if (path_.to.port == port_of(peer)) return true;
  WEFT_LOG_REFUSAL(
      "QPN 0x%06x calls from UDP port %u of %s, which is not in its number: refused; "
      "WEFT_PEER_CHECK=address allows it, for a network that translates ports",
      peer.value(), path_.to.port, path_.to.address.to_string().c_str());
  return false;
}

wdp::RdChannel* ChannelRequest::channel() const {
  wdp::RdChannel* const c = driver_.wdp_socket().channels().find(channel_);
  return c != nullptr && c->is_usable() && c->out().has_room(wdp::kMostOfStart) ? c : nullptr;
}

std::optional<Started> ChannelRequest::accept(Token& token, const mpa::Offer& limits,
                                              Bytes private_data,
                                              const std::optional<wire::RdOffer>& rd) {
  wdp::RdChannel* const by = channel();
  if (by == nullptr || !rd || !responder_.may_offer_rd(limits, private_data.size())) {
    stats::count(token.runtime().counters().start_refused, StartRefusal::reply_unsent);
    drop(token);
    return {};
  }
  Started started;
  started.bytes =
      std::make_unique<drive::RdBytes>(driver_, *by, wire::RdOffers{.own = *rd, .peer = peer_});
  const auto reply = responder_.accept(limits, private_data, {}, rd);
  started.bytes->stream().reply(reply.bytes);
  started.parameters = reply.parameters;
  token.runtime().counters().channel_starts_accepted.add();
  end(token);
  return started;
}

void ChannelRequest::reject(Token& token, Bytes private_data) {
  if (wdp::RdChannel* const by = channel()) {
    say(*by, responder_.reject(private_data));
  }
  drop(token);
}

void ChannelRequest::say(wdp::RdChannel& by, Bytes reply) {
  const auto m = wdp::start_message(own_, peer_.qpn, peer_.session, wire::RdStreamWord::reply,
                                    static_cast<uint32_t>(reply.size()));
  std::copy(reply.begin(), reply.end(), by.out().send(m, wdp::kNoClient, 0));
}

std::optional<mpa::Parameters> ChannelRequest::accept_there(Token& token, const mpa::Offer& limits,
                                                            Bytes private_data,
                                                            const wire::RdOffer& own,
                                                            drive::GivenUp given_up) {
  wdp::RdChannel* const by = channel();
  if (by == nullptr || !responder_.may_offer_rd(limits, private_data.size())) {
    stats::count(token.runtime().counters().start_refused, StartRefusal::reply_unsent);
    drop(token);
    return {};
  }
  const auto reply = responder_.accept(limits, private_data, {}, own);
  if (keeper_ != nullptr) keeper_->request_accepted(token, *this, std::move(given_up));
  say(*by, reply.bytes);
  token.runtime().counters().channel_starts_accepted.add();
  drop(token);
  return reply.parameters;
}

void ChannelRequest::gone(Token& token) {
  ChannelRequestHandler& handler = *handler_;
  stats::count(token.runtime().counters().start_refused, StartRefusal::peer_left);
  drop(token);
  handler.request_gone(token, *this);
}

void ChannelRequest::wait_until(Token& token, Time when) {
  token.runtime().set_deadline(token, *this, when);
}

void ChannelRequest::drop(Token& token) {
  if (gone_) return;
  drive::DatagramDriver& driver = driver_;
  end(token);
  driver.settle(token);
}

void ChannelRequest::end(Token& token) {
  gone_ = true;
  if (wdp::RdChannel* const by = driver_.wdp_socket().channels().find(channel_)) by->leave();
  if (keeper_ != nullptr) keeper_->request_over(token, *this);
  token.runtime().remove(token, *this);
}

}  // namespace weft::cm
