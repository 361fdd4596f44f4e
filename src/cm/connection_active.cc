// The side that connects: its start-up, and the outcome.
#include <cerrno>

#include "cm/active_start_outcome.h"
#include "cm/connection_id.h"
#include "cm/lingering_close.h"
#include "config/options.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;

// Programs connect to a server of theirs that is about to listen (ib_write_bw -R does): on an
// adapter of hardware, resolving the address takes long enough. So a refusal counts only when it
// stands for a while.
constexpr Duration kRefusalStands = 300ms;
constexpr Duration kFirstPause = 2ms;

}  // namespace

using engine::Token;

int ConnectionId::connect(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::connect, parameters.private_data.size()); e != 0) return e;
  {
    const auto h = hold_home();
    if (!can(Step::connect)) return wrong_state(Step::connect);
    parameters_ = parameters;
  }
  if (pair != nullptr && !ready_pair(*pair)) return EINVAL;
  // Nothing is under way yet, so that the home can be changed.
  engine::Engine& target = engine_for(pair, parameters.qpn);
  home_.store(&target, std::memory_order_release);
  auto h = hold_home();
  pair_ = pair;
  program_leads_ = false;
  if (pair_ == nullptr) {
    pair_ = program_pair(h.token(), parameters.qpn, Way::datagrams);
    program_leads_ = pair_ != nullptr;
    if (program_leads_) pair_->set_cm_managed(h.token());
  }
  if (pair_ != nullptr) pair_->observe(h.token(), this);
  take(Step::connect);
  set_under_way(true);
  refusals_until_ = h.token().now() + kRefusalStands;
  pause_ = kFirstPause;
  h.token().runtime().guard(
      h.token(),
      [&] {
        pair_ != nullptr&& caller_of(*pair_) != nullptr ? call(h.token())
                                                        : begin_active_start(h.token());
      },
      [&] { on_no_memory(h.token()); });
  return 0;
}

void ConnectionId::begin_active_start(Token& token) {
  bound_udp_.reset();
  active_start_ = &ActiveStart::start(token, *this,
                                      {.from = source_,
                                       .any_port = any_port_,
                                       .to = destination_,
                                       .offer = offer(),
                                       .private_data = parameters_.private_data,
                                       .timeout = config::options().connect_timeout,
                                       .type_of_service = type_of_service_},
                                      bound_.release());
}

void ConnectionId::cancel_active_start(Token& token) {
  if (active_start_ != nullptr) std::exchange(active_start_, nullptr)->cancel(token);
  token.runtime().set_deadline(token, *this, Time::never());
}

void ConnectionId::start_connected(Token& token, ActiveStart&, Started&& started) {
  active_start_ = nullptr;
  set_under_way(false);
  source_.set_port(started.tcp.local().port());
  negotiated(started.parameters.ird, started.parameters.ord);
  ConnectionParameters told = parameters_;
  told.private_data = std::move(started.private_data);
  told.qpn = {};
  if (pair_ == nullptr) {
    take(Step::reply_for_program);
    report(token, EventKind::connect_response, 0, std::move(told));
    join(token, nullptr, std::move(started), true);
    return;
  }
  if (pair_->state() == verbs::QpState::err || pair_->state() == verbs::QpState::reset) {
    // The program took it out of service meanwhile.
    LingeringClose::give_up(token, std::move(started));
    fail_connect(token, EventKind::connect_error, -ECONNABORTED);
    return;
  }
  take(Step::reply);
  // Before the connection works, for it may also end at once.
  report(token, EventKind::established, 0, std::move(told));
  join(token, pair_, std::move(started), true);
}

void ConnectionId::start_failed(Token& token, ActiveStart&, ActiveStartFailure&& failure) {
  active_start_ = nullptr;
  if (failure.kind == ActiveStartFailure::Kind::refused && token.now() + pause_ < refusals_until_) {
    token.runtime().set_deadline(token, *this, token.now() + pause_);
    pause_ *= 2;
    return;
  }
  const FailureEvent e = failure_event(failure, config::options().identity);
  fail_connect(token, e.kind, e.status, std::move(failure.private_data));
}

void ConnectionId::fail_connect(Token& token, EventKind kind, int status,
                                std::vector<std::byte> private_data) {
  set_under_way(false);
  take(Step::failure);
  if (verbs::QueuePair* pair = pair_) {
    release_pair(token);
    pair->fail_connection(token, verbs::Status::flushed);
  }
  report(token, kind, status, {.private_data = std::move(private_data)});
}

int ConnectionId::establish() {
  if (!alive()) return EIO;
  Qpn qpn;
  {
    const auto h = hold_home();
    if (!can(Step::establish)) return wrong_state(Step::establish);
    qpn = parameters_.qpn;
  }
  engine::Engine& target = engine_for(nullptr, qpn);
  Started started;
  {
    auto h = hold_home();
    if (!can(Step::establish)) return EINVAL;  // the peer went away
    take(Step::establish);
    if (parked_connection_ == nullptr) return 0;  // of UC: it works already
    if (&target == &h.token().runtime()) {
      verbs::QueuePair* pair = program_pair(h.token(), qpn, Way::stream);
      if (pair != nullptr) {
        join(h.token(), pair, std::exchange(parked_connection_, nullptr)->release(h.token()), true);
      }
      return 0;
    }
    started = std::exchange(parked_connection_, nullptr)->release(h.token());
    home_.store(&target, std::memory_order_release);
  }
  auto h = hold_home();
  join(h.token(), program_pair(h.token(), qpn, Way::stream), std::move(started), true);
  return 0;
}

}  // namespace weft::cm
