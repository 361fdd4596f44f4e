// The side that is connected to: requests come to a listener as children, and wait for the
// program's answer.
#include <algorithm>
#include <cerrno>

#include "cm/connection_id.h"
#include "config/options.h"
#include "device/device.h"
#include "stats/reasons.h"

namespace weft::cm {
namespace {

// Requests of one listener that the program has not looked at. When there are more, the peers wait
// in the kernel's queue until it has caught up, so that nobody is refused for coming in a crowd.
constexpr int kMostRequests = 1024;
constexpr int kCaughtUp = 512;

uint8_t reads(std::optional<uint16_t> told) {
  return static_cast<uint8_t>(
      std::min<uint32_t>(told.value_or(device::kMaxReads), device::kMaxReads));
}

}  // namespace

using engine::Token;

void ConnectionId::connection_requested(Token& token, Answer& answer,
                                        const mpa::Responder::Request& request) {
  // First what may find no memory: after that nothing is left half done.
  std::unique_ptr<ConnectionId, void (*)(ConnectionId*)> made{
      new ConnectionId(adapter_, channel_, token.engine()), [](ConnectionId* id) { delete id; }};
  ConnectionId* const child = made.get();
  // What one side may have outstanding the other has to serve.
  child->parameters_ = {.responder_resources = reads(request.ord),
                        .initiator_depth = reads(request.ird)};
  auto e = std::make_unique<Event>();
  e->kind = EventKind::connect_request;
  e->id = child;
  e->listener = this;
  e->parameters = child->parameters_;
  e->parameters.private_data = request.private_data;

  // A socket for both families shows IPv4 peers in their mapped form.
  const port::Address local = answer.tcp().local();
  const port::Address peer = answer.tcp().peer();
  child->source_ = port::Address::from_gid(local.gid(), local.port(), local.scope());
  child->destination_ = port::Address::from_gid(peer.gid(), peer.port(), peer.scope());
  child->type_of_service_ = type_of_service_;
  child->ack_timeout_ = ack_timeout_;
  child->state_ = IdState::requested;
  child->answer_ = &answer;
  const int waiting = requests_.fetch_add(1, std::memory_order_relaxed) + 1;
  bool pushed = false;
  const auto push = [&] { pushed = channel_->push(e); };
  token.engine().guard(token, push, push);
  if (!pushed) {
    requests_.fetch_sub(1, std::memory_order_relaxed);
    stats::count(token.engine().counters().cm_rejected, stats::CmRejection::channel_gone);
    answer.reject(token, {});
    return;
  }
  // Whoever takes the event has to get the engine before he can do anything to the child.
  answer.hand_over(*made.release());
  if (waiting >= kMostRequests) {
    stats::count(token.engine().counters().accept_paused, stats::AcceptPause::backlog);
    listener_->pause(token, true);
  }
}

void ConnectionId::request_left() {
  if (requests_.fetch_sub(1, std::memory_order_relaxed) - 1 == kCaughtUp) {
    home_.load(std::memory_order_acquire)->ring(*this);
  }
}

void ConnectionId::on_doorbell(Token& token) {
  if (listener_ != nullptr) listener_->pause(token, false);
}

void ConnectionId::answer_gone(Token& token, Answer&) {
  answer_ = nullptr;
  if (channel_->withdraw_request(*this)) {
    // The program never heard of it.
    token.engine().forget(token, *this);
    delete this;
    return;
  }
  if (can(Step::peer_gone)) take(Step::peer_gone);
}

int ConnectionId::accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::accept, parameters.private_data.size()); e != 0) return e;
  bool deserted;
  {
    const auto h = hold_home();
    deserted = state_ == IdState::deserted;
    if (!deserted && (!can(Step::accept) || answer_ == nullptr)) return misplaced(Step::accept);
    parameters_ = parameters;
  }
  if (pair != nullptr && !ready_pair(*pair)) return deserted ? ECONNRESET : EINVAL;
  if (deserted) return no_peer(pair);
  engine::Engine& target = engine_for(pair, parameters.qpn);
  std::optional<Started> started;
  {
    auto h = hold_home();
    if (answer_ != nullptr) {
      started = answer_->accept(h.token(), offer(), parameters.private_data);
      answer_ = nullptr;
      if (!started) take(Step::peer_gone);
    }
    if (started && &target == &h.token().engine()) {
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
  negotiated(started.parameters);
  ConnectionParameters told = parameters_;
  told.private_data.clear();
  told.qpn = {};
  // At once, and not with the peer's first FPDU: an iWARP initiator may wait for this side to do
  // something first, and a program that is slow to come back would be taken for one that is not
  // there. What is posted waits for that FPDU by itself.
  report(token, EventKind::established, 0, std::move(told));
  join(token, pair != nullptr ? pair : program_pair(token, parameters_.qpn), std::move(started),
       false);
}

int ConnectionId::reject(Bytes private_data) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::reject, private_data.size()); e != 0) return e;
  auto h = hold_home();
  if (!can(Step::reject)) return misplaced(Step::reject);
  if (answer_ != nullptr) {
    stats::count(h.token().engine().counters().cm_rejected, stats::CmRejection::by_program);
    std::exchange(answer_, nullptr)->reject(h.token(), private_data);
  }
  take(Step::reject);
  return 0;
}

}  // namespace weft::cm
