#include "wdp/ud_questions.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {

SessionToken UdQuestions::ask(Offer offer, const Path& path, Time now) {
  offer.service = wire::CtlService::ud_resolution;
  offer.token = demux_.fresh_token(random_, now);
  // Not anybody else's as long as it is asked.
  demux_.add(offer.token, {.connection = nullptr, .from = path.to});
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->connect(offer, path, Qpn{}, false, now);
  Handshake& h = *(questions_[offer.token] = std::move(handshake));
  outbox_.say_of(h);
  return offer.token;
}

void UdQuestions::forget(SessionToken question, Time now) {
  if (questions_.erase(question) != 0) demux_.remove(question, now);
}

UdQuestions::Over UdQuestions::port_closed(SessionToken question, Time now) {
  const auto it = questions_.find(question);
  if (it == questions_.end()) return nullptr;
  it->second->port_closed();
  return settle(question, now);
}

Result<UdQuestions::Over, wire::WdpDrop> UdQuestions::received(const wire::WdpCommon& common,
                                                               Bytes datagram, const Endpoint& from,
                                                               Time now) {
  const auto c = wire::WdpCtl::parse(common, datagram);
  if (!c.ok()) return fail(c.error());
  Handshake& question = *questions_.at(common.token);
  if (from != question.path().to) return fail(wire::WdpDrop::wrong_address);
  if (const auto v = question.received(*c, datagram.size(), now); !v) return fail(v.error());
  return settle(common.token, now);
}

UdQuestions::Over UdQuestions::settle(SessionToken question, Time now) {
  const auto it = questions_.find(question);
  outbox_.say_of(*it->second);
  const auto state = it->second->state();
  if (state != Handshake::State::established && state != Handshake::State::failed) return nullptr;
  Over over = std::move(it->second);
  forget(question, now);
  return over;
}

Time UdQuestions::deadline() const {
  Time first = Time::never();
  for (const auto& [token, h] : questions_) first = std::min(first, h->deadline());
  return first;
}

std::vector<SessionToken> UdQuestions::due(Time now) const {
  std::vector<SessionToken> due;
  for (const auto& [token, h] : questions_) {
    if (now >= h->deadline()) due.push_back(token);
  }
  return due;
}

UdQuestions::Over UdQuestions::tick(SessionToken question, Time now) {
  questions_.at(question)->tick(now);
  return settle(question, now);
}

}  // namespace weft::wdp
