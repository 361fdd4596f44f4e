#include "wdp/waiting_requests.h"

#include <utility>

namespace weft::wdp {

void WaitingRequests::add(const RequestKey& key, std::unique_ptr<Handshake> handshake) {
  Handshake& h = *(handshakes_[key] = std::move(handshake));
  demux_.add(key, {.waiting = &h});
}

std::unique_ptr<Handshake> WaitingRequests::take(const RequestKey& key) {
  const auto it = handshakes_.find(key);
  if (it == handshakes_.end()) return nullptr;
  // A question is no call: it makes no session.
  if (it->second->peer().service != wire::CtlService::uc) return nullptr;
  auto handshake = std::move(it->second);
  demux_.remove(key);
  handshakes_.erase(it);
  return handshake;
}

bool WaitingRequests::reject(const RequestKey& key, wire::RejReason reason, Bytes private_data) {
  const auto it = handshakes_.find(key);
  if (it == handshakes_.end() || it->second->state() != Handshake::State::req_received) {
    return false;
  }
  it->second->reject(reason, private_data);
  outbox_.say_of(*it->second);
  demux_.remove(key);
  handshakes_.erase(it);
  return true;
}

bool WaitingRequests::tell(const RequestKey& key, const Offer& offer, Time now) {
  const auto it = handshakes_.find(key);
  if (it == handshakes_.end()) return false;
  if (it->second->peer().service != wire::CtlService::ud_resolution) return false;
  if (it->second->state() != Handshake::State::req_received) return false;
  it->second->accept(offer, now);
  told_.push_back({key, it->second->deadline()});
  outbox_.say_of(*it->second);
  demux_.established(key);
  return true;
}

void WaitingRequests::tick(Time now) {
  for (; !told_.empty() && now >= told_.front().until; told_.pop_front()) {
    demux_.remove(told_.front().key);
    handshakes_.erase(told_.front().key);
  }
}

}  // namespace weft::wdp
