#include "cm/connected_pair.h"

#include <cerrno>
#include <utility>

#include "cm/pair_setup.h"
#include "cm/stream_settings.h"

namespace weft::cm {

using engine::Token;

void ConnectedPair::attach(Token& token, verbs::QueuePair& pair, bool of_program) {
  pair_ = &pair;
  of_program_ = of_program;
  pair.set_cm_managed(token);
  pair.observe(token, this);
}

verbs::QueuePair* ConnectedPair::release(Token& token) {
  if (pair_ != nullptr) pair_->observe(token, nullptr);
  return std::exchange(pair_, nullptr);
}

verbs::DatagramCaller* ConnectedPair::caller() const {
  return pair_ != nullptr ? caller_of(*pair_) : nullptr;
}

// --- a stream

void ConnectedPair::carry(Token& token, verbs::QueuePair* pair, Started&& started, const Use& use) {
  if (use.type_of_service && started.bytes == nullptr)
    started.tcp.set_type_of_service(*use.type_of_service);
  if (pair == nullptr) {
    token.runtime().guard(
        token, [&] { parked_ = &ParkedConnection::start(token, *this, std::move(started)); },
        [&] { parked_connection_lost(token); });
    return;
  }
  attach(token, *pair, false);
  if (auto* adopter = pair->transport().stream_adopter()) {
    adopter->adopt(token, {.tcp = std::move(started.tcp),
                           .segment = std::move(started.segment),
                           .rd = started.rd,
                           .bytes = std::move(started.bytes),
                           .config = stream_settings(started.parameters, use.initiator),
                           .keepalive = use.keepalive,
                           .early = started.early});
  } else {
    pair->fail_connection(token, verbs::Status::local_qp_operation);
  }
}

Started ConnectedPair::unpark(Token& token) {
  return std::exchange(parked_, nullptr)->release(token);
}

bool ConnectedPair::close_parked(Token& token) {
  if (parked_ == nullptr) return false;
  std::exchange(parked_, nullptr)->close(token);
  return true;
}

void ConnectedPair::say_ready(Token& token) {
  if (parked_ == nullptr) return;
  token.runtime().guard(
      token, [&] { parked_->say_ready(); },
      [&] {
        close_parked(token);
        parked_connection_lost(token);
      });
}

void ConnectedPair::keep_alive(const Keepalive& keepalive) {
  if (pair_ == nullptr) return;
  if (auto* adopter = pair_->transport().stream_adopter()) adopter->keep_alive(keepalive);
}

// --- what the two say

void ConnectedPair::stream_ready(Token& token) {
  if (caller() != nullptr) handler_.peer_confirmed(token);
}

void ConnectedPair::stream_ended(Token& token, const work::StreamEnd& end) {
  const bool unanswered = end.kind == work::StreamEnd::Kind::unanswered;
  // Before it was there, it was for want of memory: a call by datagrams fails otherwise.
  handler_.connection_lost(token, {.unestablished = {EventKind::unreachable, -ENOMEM},
                                   .status = unanswered ? -ETIMEDOUT : 0});
}

void ConnectedPair::parked_connection_lost(Token& token) {
  parked_ = nullptr;
  handler_.connection_lost(token, {.unestablished = {EventKind::rejected, -ECONNRESET}});
}

void ConnectedPair::pair_gone(Token& token) {
  pair_ = nullptr;
  handler_.connection_lost(token, {.unestablished = {EventKind::connect_error, -ECONNABORTED}});
}

// --- the end

bool ConnectedPair::disconnect(Token& token) {
  if (close_parked(token) || pair_ == nullptr) return true;
  pair_->disconnect(token);
  // A queue pair that had no connection any more says nothing.
  return pair_ != nullptr && !pair_->connected();
}

void ConnectedPair::fail(Token& token) {
  close_parked(token);
  if (verbs::QueuePair* pair = release(token)) {
    pair->fail_connection(token, verbs::Status::flushed);
  }
}

void ConnectedPair::leave(Token& token, bool established) {
  close_parked(token);
  verbs::QueuePair* pair = release(token);
  if (pair != nullptr && established) pair->disconnect(token);
}

}  // namespace weft::cm
