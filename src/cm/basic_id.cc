#include "cm/basic_id.h"

#include <cerrno>
#include <new>

#include "base/log.h"
#include "config/options.h"
#include "device/device.h"
#include "port/route.h"
#include "verbs/context.h"

namespace weft::cm {
namespace {

// Requests of one listener that the program has not looked at. When there are more, others have to
// wait until it has caught up.
constexpr int kMostRequests = 1024;
constexpr int kCaughtUp = 512;

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

BasicId::BasicId(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel,
                 engine::Engine& home)
    : adapter_(adapter), home_(&home), channel_(std::move(channel)) {}

engine::Hold BasicId::hold_home() const {
  for (;;) {
    engine::Engine* home = home_.load(std::memory_order_acquire);
    engine::Hold h = home->hold();
    // It may have moved to its queue pair's engine meanwhile.
    if (home_.load(std::memory_order_acquire) == home) return h;
  }
}

// --- addresses

Addresses BasicId::addresses() const {
  if (!alive()) return {};
  const auto h = hold_home();
  Addresses a{.source = source_, .destination = destination_};
  if (source_.valid()) a.source_gid = gid_of(source_.gid());
  if (destination_.valid()) a.destination_gid = gid_of(destination_.gid());
  return a;
}

int BasicId::bind(const port::Address& at) {
  if (!alive()) return EIO;
  const auto h = hold_home();
  if (!can(Step::bind)) return wrong_state(Step::bind);
  if (const int error = bind_socket(at); error != 0) return error;
  take(Step::bind);
  return 0;
}

bool BasicId::on_device() const {
  if (!alive()) return false;
  const auto h = hold_home();
  return source_.valid() && !source_.is_any();
}

int BasicId::resolve_address(const port::Address& source, const port::Address& destination) {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::resolve_address)) return wrong_state(Step::resolve_address);
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
  if (source_.port() == 0) take_port(h.token());
  take(Step::resolve_address);
  report(h.token(), EventKind::addr_resolved);
  return 0;
}

int BasicId::resolve_route() {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::resolve_route)) return wrong_state(Step::resolve_route);
  take(Step::resolve_route);
  report(h.token(), EventKind::route_resolved);
  return 0;
}

int BasicId::listen(int backlog) {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::listen)) return wrong_state(Step::listen);
  if (const int error = start_listening(h.token(), backlog); error != 0) return error;
  take(Step::listen);
  return 0;
}

// --- options

int BasicId::set_option(const IdOption& option) {
  if (!alive()) return EIO;
  const auto h = hold_home();
  switch (option.name) {
    case IdOption::Name::type_of_service:
      type_of_service_ = static_cast<uint8_t>(option.value);
      return 0;
    case IdOption::Name::reuse_address:
      // weft's sockets share addresses as far as the kernel lets them, asked or not
      // (spec/addressing 2.2).
      return option.value != 0 || state_ == IdState::idle ? 0 : EINVAL;
    case IdOption::Name::one_family:
      if (state_ != IdState::idle) return EINVAL;
      one_family_ = option.value != 0;
      return 0;
    case IdOption::Name::ack_timeout:
      ack_timeout_ = static_cast<uint8_t>(option.value & 31);
      return 0;
    case IdOption::Name::asks_again:
      asks_again_ = option.value != 0;
      return 0;
    case IdOption::Name::only_rc:
      if (state_ != IdState::idle) return EINVAL;
      only_rc_ = option.value != 0;
      return 0;
    case IdOption::Name::keepalive:
      if (!option.keepalive.valid()) return EINVAL;
      keepalive_ = option.keepalive;
      keepalive_changed();
      return 0;
  }
  return EINVAL;
}

// --- refusals

int BasicId::wrong_state(Step step) const {
  WEFT_LOG_REFUSAL("%s: the id is %s, and has to be %s", to_string(step), to_string(state_),
                   states_for(step).c_str());
  return EINVAL;
}

int BasicId::on_no_device(const char* call) const {
  WEFT_LOG_REFUSAL("%s: the id is on no device: resolve or bind its address first", call);
  return EINVAL;
}

int BasicId::too_long(Step step, size_t private_data) const {
  return above(step, private_data, config::options().private_data, "option private_data");
}

int BasicId::above(Step step, size_t private_data, size_t most, const char* limit) const {
  if (private_data <= most) return 0;
  adapter_.counters().device().private_data_refused.add_shared();
  WEFT_LOG_REFUSAL("%s: %zu bytes of private data; %zu are possible (%s)", to_string(step),
                   private_data, most, limit);
  return EINVAL;
}

// --- events

// Who waits for an event gets it: with the engine's reserve, when there is no other memory.
void BasicId::report(engine::Token& token, EventKind kind, int status,
                     ConnectionParameters parameters, std::optional<DatagramPeer> peer,
                     void* join) {
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
      e->datagram = peer;
      e->join = join;
    }
    (void)channel_->push(e);
  };
  token.runtime().guard(token, queue, queue);
}

void BasicId::set_under_way(bool on) {
  if (under_way_ == on) return;
  under_way_ = on;
  if (on) {
    channel_->operation_begins();
  } else {
    channel_->operation_ends();
  }
}

void BasicId::event_taken() {
  const std::lock_guard guard{counting_};
  ++taken_;
}

uint64_t BasicId::events_taken() const {
  const std::lock_guard guard{counting_};
  return taken_;
}

void BasicId::event_acknowledged() {
  if (!alive()) return;
  const std::lock_guard guard{counting_};
  ++acknowledgements_;
  acknowledged_.notify_all();
}

void BasicId::await_acknowledgements(uint64_t taken) {
  if (!alive()) return;
  std::unique_lock guard{counting_};
  acknowledged_.wait(guard, [&] { return acknowledgements_ >= taken; });
}

int BasicId::migrate(Channel& to, uint64_t& taken) {
  if (!alive()) return EIO;
  auto& target = static_cast<EventChannel&>(to);
  const auto h = hold_home();
  const EventChannel::Moved moved = channel_->move_events(*this, target);
  taken = moved.taken;
  const bool busy = under_way_;
  set_under_way(false);
  // A request that nobody took yet is at home where its listener is.
  for (BasicId* request : moved.requests) request->channel_ = target.shared_from_this();
  channel_ = target.shared_from_this();
  set_under_way(busy);
  return 0;
}

Gid BasicId::gid_of(const Gid& address) const {
  if (device_ == nullptr || !device::is_loopback(address)) return address;
  const device::Device& d = device_->device();
  if (d.find(address) != nullptr) return address;
  const auto own = std::find_if(d.gids.begin(), d.gids.end(), [&](const device::GidEntry& e) {
    return e.gid.is_ipv4() == address.is_ipv4();
  });
  return own != d.gids.end() ? own->gid : address;
}

verbs::AddressVector BasicId::vector_to(const Gid& gid) const {
  const device::Device& d = device_->device();
  const Gid own = source_.gid();
  const device::GidEntry* source = d.find(own);
  // Loopback addresses are in no table, but they are the host's all the same.
  for (const device::GidEntry& e : d.gids) {
    if (source == nullptr && e.gid.is_ipv4() == own.is_ipv4()) source = &e;
  }
  verbs::AddressVector v;
  v.global = true;
  v.dgid = gid_of(gid);
  v.sgid_index = source == nullptr ? uint8_t{0} : static_cast<uint8_t>(source - d.gids.data());
  v.hop_limit = 64;
  v.traffic_class = type_of_service_.value_or(0);
  v.port = device::kPort;
  return v;
}

// --- a listener's requests

void BasicId::begin_request(BasicId& child, const port::Address& local,
                            const port::Address& peer) const {
  // A socket for both families shows IPv4 peers in their mapped form.
  child.source_ = port::Address::from_gid(local.gid(), local.port(), local.scope());
  child.destination_ = port::Address::from_gid(peer.gid(), peer.port(), peer.scope());
  child.type_of_service_ = type_of_service_;
  child.ack_timeout_ = ack_timeout_;
  child.state_ = IdState::requested;
}

bool BasicId::announce(engine::Token& token, BasicId& child, std::vector<std::byte> private_data) {
  auto e = std::make_unique<Event>();
  e->kind = EventKind::connect_request;
  e->id = &child;
  e->listener = this;
  e->parameters = child.parameters_;
  e->parameters.private_data = std::move(private_data);
  requests_.fetch_add(1, std::memory_order_relaxed);
  bool pushed = false;
  const auto push = [&] { pushed = channel_->push(e); };
  token.runtime().guard(token, push, push);
  if (!pushed) request_left();
  return pushed;
}

bool BasicId::crowded() const {
  return requests_.load(std::memory_order_relaxed) >= kMostRequests;
}

void BasicId::request_left() {
  if (requests_.fetch_sub(1, std::memory_order_relaxed) - 1 == kCaughtUp) {
    home_.load(std::memory_order_acquire)->ring(*this);
  }
}

// --- multicast is for datagrams

int BasicId::join_multicast(const port::Address&, void*) {
  WEFT_LOG_REFUSAL(
      "rdma_join_multicast: the id is one of RDMA_PS_TCP, and has to be of RDMA_PS_UDP");
  return EINVAL;
}

int BasicId::leave_multicast(void*) {
  return EINVAL;
}

// --- the end

bool BasicId::silent() const {
  if (!alive()) return true;
  const auto h = hold_home();
  return (state_ == IdState::closed || state_ == IdState::failed) && channel_->empty();
}

int BasicId::destroy() {
  // What a child of fork(2) has of it is memory that nothing refers to.
  if (!alive()) return 0;
  {
    auto h = hold_home();
    stop(h.token());
    // A deadline would report an event of an Id that is gone by the time somebody takes it.
    h.token().runtime().forget(h.token(), *this);
  }
  while (BasicId* request = channel_->withdraw_request_to(*this)) request->destroy();
  channel_->withdraw(*this);
  await_acknowledgements(events_taken());
  {
    auto h = hold_home();
    h.token().runtime().forget(h.token(), *this);
  }
  delete this;
  return 0;
}

}  // namespace weft::cm
