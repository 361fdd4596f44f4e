// The side that is connected to: requests come to a listener as children, and wait for the
// program's start.
#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "cm/connection_id.h"
#include "config/options.h"
#include "device/device.h"
#include "stats/reasons.h"

namespace weft::cm {
namespace {

uint8_t reads(std::optional<uint16_t> told) {
  return static_cast<uint8_t>(
      std::min<uint32_t>(told.value_or(device::kMaxReads), device::kMaxReads));
}

}  // namespace

using engine::Token;

void ConnectionId::connection_requested(Token& token, PassiveStart& start,
                                        const mpa::Responder::Request& request) {
  // First what may find no memory: after that nothing is left half done.
  Made made = make_child(token);
  // What one side may have outstanding the other has to serve.
  made->parameters_ = {.responder_resources = reads(request.ord),
                       .initiator_depth = reads(request.ird)};
  begin_request(*made, start.tcp().local(), start.tcp().peer());
  made->passive_start_ = &start;
  if (!announce(token, *made, request.private_data)) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::channel_gone);
    start.reject(token, {});
    return;
  }
  // Whoever takes the event has to get the engine before he can do anything to the child.
  start.hand_over(*made.release());
  if (crowded()) {
    stats::count(token.runtime().counters().accept_paused, stats::AcceptPause::backlog);
    listener_->pause(token, true);
  }
}

ConnectionId::Made ConnectionId::make_child(Token& token) {
  return Made{new ConnectionId(adapter_, channel_, engine::Engine::of(token)),
              [](ConnectionId* id) { delete id; }};
}

void ConnectionId::caught_up(Token& token) {
  if (listener_ != nullptr) listener_->pause(token, false);
}

void ConnectionId::start_gone(Token& token, PassiveStart&) {
  passive_start_ = nullptr;
  if (channel_->withdraw_request(*this)) {
    // The program never heard of it.
    token.runtime().forget(token, *this);
    delete this;
    return;
  }
  if (can(Step::peer_gone)) take(Step::peer_gone);
}

int ConnectionId::accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::accept, parameters.private_data.size()); e != 0) return e;
  bool by_datagram;
  {
    const auto h = hold_home();
    by_datagram = call_.has_value();
  }
  if (by_datagram) return accept_call(pair, parameters);
  bool deserted;
  {
    const auto h = hold_home();
    deserted = state_ == IdState::deserted;
    if (!deserted && (!can(Step::accept) || passive_start_ == nullptr))
      return wrong_state(Step::accept);
    if (const int e = too_long_for_peer(Step::accept, parameters.private_data); e != 0) return e;
    parameters_ = parameters;
  }
  if (pair != nullptr && pair->transport().stream_adopter() == nullptr) {
    WEFT_LOG_REFUSAL("rdma_accept: the peer asks for RC; queue pair 0x%06x is of another type",
                     pair->number().value());
    return EINVAL;
  }
  if (pair != nullptr && !ready_pair(*pair)) return deserted ? ECONNRESET : EINVAL;
  if (deserted) return no_peer(pair);
  engine::Engine& target = engine_for(pair, parameters.qpn);
  std::optional<Started> started;
  {
    auto h = hold_home();
    if (passive_start_ != nullptr) {
      started = passive_start_->accept(h.token(), offer(), parameters.private_data);
      passive_start_ = nullptr;
      if (!started) take(Step::peer_gone);
    }
    if (started && &target == &h.token().runtime()) {
      accepted(h.token(), pair, std::move(*started));
      return 0;
    }
    if (started) home_.store(&target, std::memory_order_release);
  }
  if (!started) return no_peer(pair);
  auto h = hold_home();
  accepted(h.token(), pair, std::move(*started));
  return 0;
}

// Whoever asked is gone. What the program posted for him comes back.
int ConnectionId::no_peer(verbs::QueuePair* pair) {
  if (pair != nullptr) {
    auto h = pair->engine().hold();
    pair->fail_connection(h.token(), verbs::Status::flushed);
  }
  return ECONNRESET;
}

void ConnectionId::accepted(Token& token, verbs::QueuePair* pair, Started&& started) {
  take(Step::accept);
  negotiated(started.parameters.ird, started.parameters.ord);
  ConnectionParameters told = parameters_;
  told.private_data.clear();
  told.qpn = {};
  // At once, and not with the peer's first FPDU: an iWARP initiator may wait for this side to do
  // something first, and a program that is slow to come back would be taken for one that is not
  // there. What is posted waits for that FPDU by itself.
  report(token, EventKind::established, 0, std::move(told));
  join(token, pair != nullptr ? pair : program_pair(token, parameters_.qpn, Way::stream),
       std::move(started), false);
}

int ConnectionId::too_long_for_peer(Step step, Bytes private_data) const {
  if (passive_start_ == nullptr) return 0;
  return above(step, private_data.size(), passive_start_->most_private_data(),
               "the peer is not weft, and may be siw");
}

int ConnectionId::reject(Bytes private_data) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::reject, private_data.size()); e != 0) return e;
  auto h = hold_home();
  if (!can(Step::reject)) return wrong_state(Step::reject);
  if (const int e = too_long_for_peer(Step::reject, private_data); e != 0) return e;
  if (passive_start_ != nullptr) {
    stats::count(h.token().runtime().counters().cm_rejected, stats::CmRejection::by_program);
    std::exchange(passive_start_, nullptr)->reject(h.token(), private_data);
  }
  if (call_) {
    stats::count(h.token().runtime().counters().cm_rejected, stats::CmRejection::by_program);
    call_->reject(h.token(), wire::RejReason::application, private_data);
    call_.reset();
  }
  take(Step::reject);
  return 0;
}

}  // namespace weft::cm
