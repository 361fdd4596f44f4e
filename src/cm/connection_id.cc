// Addresses, options, events and the end of an Id. Connecting: connection_active.cc and
// connection_passive.cc; what both have in common, and disconnecting: connection_join.cc.
#include "cm/connection_id.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.h"
#include "config/options.h"
#include "port/route.h"

namespace weft::cm {
namespace {

// Connections that the kernel completes before the engine takes them: programs say 0 or 3, and mean
// "some". A short queue would cost the peers a second, for TCP drops what does not fit.
constexpr int kLeastBacklog = 128;
constexpr int kDefaultBacklog = 1024;  // as the kernel's rdma_cm

port::Address loopback(const port::Address& like) {
  Gid gid = Gid::from_ipv4(0x7f000001);
  if (like.family() == AF_INET6) {
    gid = {};
    gid.raw[15] = 1;
  }
  return port::Address::from_gid(gid, like.port());
}

int two_families(const port::Address& source, const port::Address& destination) {
  WEFT_LOG_REFUSAL("rdma_resolve_addr: from %s to %s: both have to be IPv4, or both IPv6",
                   source.to_string().c_str(), destination.to_string().c_str());
  return EINVAL;
}

}  // namespace

ConnectionId* ConnectionId::create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel) {
  // Queue pairs take the engines by turns; who has none yet does not disturb the order.
  return new ConnectionId(adapter, std::move(channel), adapter.engine(0));
}

ConnectionId::ConnectionId(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel,
                           engine::Engine& home)
    : adapter_(adapter), home_(&home), channel_(std::move(channel)) {}

engine::Hold ConnectionId::hold_home() const {
  for (;;) {
    engine::Engine* home = home_.load(std::memory_order_acquire);
    engine::Hold h = home->hold();
    // It may have moved to its queue pair's engine meanwhile.
    if (home_.load(std::memory_order_acquire) == home) return h;
  }
}

// --- addresses

Addresses ConnectionId::addresses() const {
  if (!alive()) return {};
  const auto h = hold_home();
  Addresses a{.source = source_, .destination = destination_};
  if (source_.valid()) a.source_gid = source_.gid();
  if (destination_.valid()) a.destination_gid = destination_.gid();
  return a;
}

int ConnectionId::bind_socket(const port::Address& at) {
  auto bound = port::TcpListener::bind(at, one_family_);
  if (!bound.ok()) return bound.error().code;
  bound_ = std::move(*bound);
  source_ = at;
  source_.set_port(bound_.local().port());
  return 0;
}

int ConnectionId::bind(const port::Address& at) {
  if (!alive()) return EIO;
  const auto h = hold_home();
  if (!can(Step::bind)) return misplaced(Step::bind);
  if (const int error = bind_socket(at); error != 0) return error;
  take(Step::bind);
  return 0;
}

bool ConnectionId::on_device() const {
  if (!alive()) return false;
  const auto h = hold_home();
  return source_.valid() && !source_.is_any();
}

int ConnectionId::resolve_address(const port::Address& source, const port::Address& destination) {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::resolve_address)) return misplaced(Step::resolve_address);
  if (state_ == IdState::idle && source.valid()) {
    if (source.family() != destination.family()) return two_families(source, destination);
    if (source.port() != 0) {
      if (const int error = bind_socket(source); error != 0) return error;
    } else {
      if (!source.is_any()) {
        if (const int error = port::check_local(source); error != 0) return error;
      }
      source_ = source;
    }
  }
  if (source_.valid() && source_.family() != destination.family()) {
    return two_families(source_, destination);
  }
  if (state_ == IdState::idle) take(Step::bind);

  const port::Address there = destination.is_any() ? loopback(destination) : destination;
  auto here = port::source_towards(there, source_);
  if (!here.ok()) {
    report(h.token(), EventKind::addr_error, -here.error().code);
    return 0;
  }
  here->set_port(source_.valid() ? source_.port() : uint16_t{0});
  source_ = *here;
  destination_ = there;
  take(Step::resolve_address);
  report(h.token(), EventKind::addr_resolved);
  return 0;
}

int ConnectionId::resolve_route() {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::resolve_route)) return misplaced(Step::resolve_route);
  take(Step::resolve_route);
  report(h.token(), EventKind::route_resolved);
  return 0;
}

int ConnectionId::listen(int backlog) {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::listen)) return misplaced(Step::listen);
  if (!bound_.valid()) {
    const port::Address at = source_.valid() ? source_ : port::Address::any(AF_INET, 0);
    if (const int error = bind_socket(at); error != 0) return error;
  }
  if (type_of_service_) bound_.set_type_of_service(*type_of_service_);
  const auto started =
      bound_.start(backlog > 0 ? std::max(backlog, kLeastBacklog) : kDefaultBacklog);
  if (!started.ok()) return started.error().code;
  listener_ = &Listener::start(h.token(), *this, std::move(bound_));
  take(Step::listen);
  return 0;
}

// --- options

int ConnectionId::set_option(const IdOption& option) {
  if (!alive()) return EIO;
  const auto h = hold_home();
  switch (option.name) {
    case IdOption::Name::type_of_service:
      type_of_service_ = static_cast<uint8_t>(option.value);
      return 0;
    case IdOption::Name::reuse_address:
      // weft's sockets share addresses as far as the kernel lets them, asked or not (wire.md 12).
      return option.value != 0 || state_ == IdState::idle ? 0 : EINVAL;
    case IdOption::Name::one_family:
      if (state_ != IdState::idle) return EINVAL;
      one_family_ = option.value != 0;
      return 0;
    case IdOption::Name::ack_timeout:
      ack_timeout_ = static_cast<uint8_t>(option.value & 31);
      return 0;
  }
  return EINVAL;
}

// --- refusals

int ConnectionId::misplaced(Step step) const {
  WEFT_LOG_REFUSAL("%s: the id is %s, and has to be %s", to_string(step), to_string(state_),
                   states_for(step).c_str());
  return EINVAL;
}

int ConnectionId::too_long(Step step, size_t private_data) const {
  const uint32_t most = config::options().private_data;
  if (private_data <= most) return 0;
  adapter_.counters().device().private_data_refused.add_shared();
  WEFT_LOG_REFUSAL("%s: %zu bytes of private data; %u are possible (option private_data)",
                   to_string(step), private_data, most);
  return EINVAL;
}

// --- events

// Who waits for an event gets it: with the engine's reserve, when there is no other memory.
void ConnectionId::report(engine::Token& token, EventKind kind, int status,
                          ConnectionParameters parameters) {
  std::unique_ptr<Event> e;
  const auto queue = [&] {
    if (!e) {
      e.reset(new (std::nothrow) Event);
      if (!e) e = std::move(spare_);
      if (!e) throw std::bad_alloc{};
      e->kind = kind;
      e->status = status;
      e->id = this;
      e->parameters = std::move(parameters);
    }
    (void)channel_->push(e);
  };
  token.engine().guard(token, queue, queue);
}

void ConnectionId::set_under_way(bool on) {
  if (under_way_ == on) return;
  under_way_ = on;
  if (on) {
    channel_->operation_begins();
  } else {
    channel_->operation_ends();
  }
}

void ConnectionId::event_taken() {
  const std::lock_guard guard{counting_};
  ++taken_;
}

void ConnectionId::event_acknowledged() {
  if (!alive()) return;
  const std::lock_guard guard{counting_};
  ++acknowledgements_;
  acknowledged_.notify_all();
}

void ConnectionId::await_acknowledgements() {
  std::unique_lock guard{counting_};
  acknowledged_.wait(guard, [this] { return acknowledgements_ >= taken_; });
}

int ConnectionId::migrate(Channel& to) {
  if (!alive()) return EIO;
  auto& target = static_cast<EventChannel&>(to);
  {
    const auto h = hold_home();
    const bool busy = under_way_;
    set_under_way(false);
    // A request that nobody took yet is at home where its listener is.
    for (ConnectionId* request : channel_->move_events(*this, target)) {
      request->channel_ = target.shared_from_this();
    }
    channel_ = target.shared_from_this();
    set_under_way(busy);
  }
  await_acknowledgements();
  return 0;
}

// --- the end

void ConnectionId::stop_everything(engine::Token& token) {
  set_under_way(false);
  bound_.close();
  if (listener_ != nullptr) std::exchange(listener_, nullptr)->stop(token);
  stop_dial(token);
  // Who wants to connect is not left waiting.
  if (answer_ != nullptr) {
    stats::count(token.engine().counters().cm_rejected, stats::CmRejection::id_gone);
    std::exchange(answer_, nullptr)->reject(token, {});
  }
  if (tether_ != nullptr) std::exchange(tether_, nullptr)->close(token);
  if (verbs::QueuePair* pair = pair_) {
    let_go_of_pair(token);
    if (state_ == IdState::connected) pair->disconnect(token);
  }
}

int ConnectionId::destroy() {
  // What a child of fork(2) has of it is memory that nothing refers to.
  if (!alive()) return 0;
  {
    auto h = hold_home();
    stop_everything(h.token());
  }
  for (ConnectionId* request : channel_->withdraw(*this)) request->destroy();
  await_acknowledgements();
  {
    auto h = hold_home();
    h.token().engine().forget(h.token(), *this);
  }
  delete this;
  return 0;
}

}  // namespace weft::cm
