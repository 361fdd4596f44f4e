#include "cm/connection_id.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/undo.h"
#include "cm/active_start_outcome.h"
#include "cm/call_outcome.h"
#include "cm/connection_terms.h"
#include "cm/lingering_close.h"
#include "cm/stream_settings.h"
#include "config/options.h"
#include "device/device.h"
#include "drive/uc_link.h"
#include "stats/reasons.h"
#include "verbs/context.h"

namespace weft::cm {
namespace {

std::vector<std::byte> copy(Bytes b) {
  return {b.begin(), b.end()};
}

}  // namespace

using engine::Token;
using verbs::QpState;

ConnectionId* ConnectionId::create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel) {
  // Queue pairs take the engines by turns. An id that has none yet does not disturb the order.
  return new ConnectionId(adapter, std::move(channel), adapter.engine(0));
}

bool ConnectionId::on_device() const {
  if (!BasicId::on_device()) return false;
  // The kernel's rdma_cm takes a loopback address for a kind of wildcard until there is a peer, and
  // programs build on that: libfabric binds "localhost" to find out whether there is RDMA, and
  // where that is on a device it tells its peers 127.0.0.1 (spec/abi 4.4).
  const Addresses a = addresses();
  if (a.destination.valid() || !device::is_loopback(a.source_gid)) return true;
  // Not so where loopback is what the device itself comes with: nobody else can be meant. The
  // kernel's siw on `lo` is like that.
  const device::Device d = device::device_of_host(config::options());
  return !d.gids.empty() && device::is_loopback(d.gids.front().gid);
}

// --- its port, listening

int ConnectionId::bind_socket(const port::Address& at) {
  return keep(at, only_rc_ ? port_.bind_tcp(at, one_family_) : port_.bind(at, one_family_));
}

// `at` may be source_ itself.
int ConnectionId::keep(const port::Address& at, int error) {
  if (error != 0) return error;
  source_ = at;
  source_.set_port(port_.number());
  return 0;
}

// As the kernel's rdma_cm does. The connection goes out by this very socket, so that it takes no
// other descriptor. Without a descriptor or a port, connecting takes what there is then.
void ConnectionId::take_port(Token&) {
  (void)keep(source_, port_.bind_tcp(source_, one_family_));
}

int ConnectionId::start_listening(Token& token, int backlog) {
  if (!port_.valid()) {
    const port::Address at = source_.valid() ? source_ : port::Address::any(AF_INET, 0);
    if (const int error = bind_socket(at); error != 0) return error;
  }
  return listening_.start(token, port_, source_,
                          {.backlog = backlog,
                           .type_of_service = type_of_service_,
                           .one_family = one_family_,
                           .only_rc = only_rc_});
}

void ConnectionId::stop(Token& token) {
  set_under_way(false);
  listening_.stop(token);
  port_.close();
  start_.cancel(token);
  // Who wants to connect is not left waiting.
  request_.reject(token, stats::CmRejection::id_gone, {});
  if (on_its_way() && pair_.caller() != nullptr) {
    pair_.fail(token);
  } else {
    pair_.leave(token, state_ == IdState::connected);
  }
  time_wait_.cancel(token);
}

// --- what both sides bring to the connection

ConnectedPair::Use ConnectionId::stream_use(bool initiator) const {
  return {.initiator = initiator, .type_of_service = type_of_service_, .keepalive = keepalive_};
}

void ConnectionId::keepalive_changed() {
  pair_.keep_alive(keepalive_);
}

int ConnectionId::queue_pair_attributes(QpState state, verbs::QpType type,
                                        verbs::QpAttributes& attributes, uint32_t& m) const {
  if (!alive()) return EIO;
  const auto h = hold_home();
  if (device_ == nullptr) return on_no_device("rdma_init_qp_attr");
  if (state != QpState::init && state != QpState::rtr && state != QpState::rts) return EINVAL;
  // Who the peer is, and what it can do, is known from its first word on.
  const bool met = state_ == IdState::requested || state_ == IdState::deserted ||
                   state_ == IdState::responded || state_ == IdState::accepting ||
                   state_ == IdState::connected;
  if (state != QpState::init && !met) {
    WEFT_LOG_REFUSAL("rdma_init_qp_attr: the id is %s: for RTR and RTS it has to know its peer",
                     to_string(state_));
    return EINVAL;
  }
  const verbs::QpTypeTraits* traits =
      pair_.is_of_program() ? &pair_.queue_pair()->traits() : verbs::find_type(type);
  if (traits == nullptr) return EINVAL;
  fill_attributes(setup(), state, *traits, attributes, m);
  return 0;
}

PairSetup ConnectionId::setup() const {
  return {.parameters = parameters_,
          .to_peer = destination_.valid() ? vector_to(destination_.gid()) : verbs::AddressVector{},
          .path_mtu = static_cast<uint8_t>(device_->device().port.active_mtu),
          .ack_timeout = ack_timeout_};
}

bool ConnectionId::ready_pair(verbs::QueuePair& pair) const {
  const bool on_device = device_ != nullptr;
  return may_connect(pair, on_device) && on_device && bring_to_rts(pair, setup());
}

engine::Engine& ConnectionId::engine_for(verbs::QueuePair* pair, Qpn qpn) const {
  if (pair != nullptr) return pair->engine();
  engine::Engine* e = qpn != Qpn{} ? adapter_.ports().engine_of(qpn) : nullptr;
  return e != nullptr ? *e : *home_.load(std::memory_order_acquire);
}

// --- the side that connects

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
  verbs::QueuePair* own = pair;
  if (own == nullptr) {
    own = program_pair(adapter_, h.token(), parameters.qpn, Carrier::datagrams);
  }
  if (own != nullptr) pair_.attach(h.token(), *own, pair == nullptr);
  take(Step::connect);
  set_under_way(true);
  const bool by_datagram = pair_.caller() != nullptr;
  h.token().runtime().guard(
      h.token(), [&] { by_datagram ? call(h.token()) : start_stream(h.token()); },
      [&] { on_no_memory(h.token()); });
  return 0;
}

void ConnectionId::start_stream(Token& token) {
  const bool any_port = port_.any();
  const verbs::QueuePair* pair = pair_.queue_pair();
  mpa::Offer offered = stream_offer(parameters_);
  offered.established_later = pair == nullptr;
  ActiveStartPlan plan{.from = source_,
                       .any_port = any_port,
                       .to = destination_,
                       .offer = offered,
                       .private_data = parameters_.private_data,
                       .timeout = config::options().connect_timeout,
                       .type_of_service = type_of_service_};
  const wdp::Path path = path_to_peer();
  if (pair != nullptr) plan.rd = rd_offer(*pair, path);
  if (!plan.rd || !offered.extension) {
    return start_.begin(token, std::move(plan), port_, asks_again_);
  }
  ChannelStartPlan channel{.path = path,
                           .interface = interface_to_peer(),
                           .to = make_qpn(path.to.port, wdp::kListenerIndex),
                           .own = *plan.rd,
                           .offer = offered,
                           .private_data = parameters_.private_data,
                           .timeout = plan.timeout,
                           .caller = source_.port()};
  drive::DatagramDriver* driver = nullptr;
  token.runtime().guard(
      token, [&] { driver = &adapter_.ports().datagrams(token, pair->number()); }, [] {});
  if (driver == nullptr)
    return stream_not_started(token,
                              {.kind = ActiveStartFailure::Kind::unreachable, .error = ENOMEM});
  start_.begin(token, std::move(plan), port_, asks_again_, *driver, std::move(channel));
}

wdp::Path ConnectionId::path_to_peer() const {
  return {.to = {.address = destination_.gid(), .port = destination_.port()},
          .from = source_.gid(),
          .traffic_class = type_of_service_.value_or(0)};
}

uint32_t ConnectionId::interface_to_peer() const {
  return source_.scope() != 0 ? source_.scope() : destination_.scope();
}

void ConnectionId::call(Token& token) {
  port_.close();  // its datagrams go by the queue pair's own port
  verbs::DatagramCaller& caller = *pair_.caller();
  const wdp::Path path = path_to_peer();
  source_.set_port(port_of(pair_.queue_pair()->number()));
  caller.driver().set_interface(path.from, interface_to_peer());
  wdp::Offer offer = session_offer(caller, caller.driver(), path, parameters_, type_of_service_);
  // The side that accepts has none to say: rdma_accept(3).
  offer.retry_count = std::min<uint8_t>(parameters_.retry_count, 7);
  // "dst QPN ... 0 = listener on that port"
  caller.call(token, caller.driver(), offer, path, Qpn{}, false);
}

void ConnectionId::stream_started(Token& token, Started&& started) {
  set_under_way(false);
  if (started.bytes == nullptr) {
    source_.set_port(started.tcp.local().port());
  } else if (!port_.valid()) {
    source_.set_port(port_of(pair_.queue_pair()->number()));
  } else if (port_.any()) {
    // Nothing goes by it. One that the program has chosen stays its own.
    port_.close();
  }
  ConnectionParameters told = take_answer(parameters_, started);
  verbs::QueuePair* pair = pair_.queue_pair();
  if (pair == nullptr) {
    take(Step::reply_for_program);
    report(token, EventKind::connect_response, 0, std::move(told));
  } else if (pair->state() == verbs::QpState::err || pair->state() == verbs::QpState::reset) {
    // The program took it out of service meanwhile.
    LingeringClose::give_up(token, std::move(started));
    fail_connect(token, {EventKind::connect_error, -ECONNABORTED});
    return;
  } else {
    take(Step::reply);
    // Before the connection works, for it may also end at once.
    report(token, EventKind::established, 0, std::move(told));
  }
  pair_.carry(token, pair, std::move(started), stream_use(true));
}

void ConnectionId::stream_not_started(Token& token, ActiveStartFailure&& failure) {
  fail_connect(token, failure_event(failure, config::options().identity),
               std::move(failure.private_data));
}

void ConnectionId::no_memory_to_start(Token& token) {
  fail_connect(token, {EventKind::unreachable, -ENOMEM});
}

void ConnectionId::fail_connect(Token& token, const FailureEvent& failure,
                                std::vector<std::byte> private_data) {
  set_under_way(false);
  take(Step::failure);
  pair_.fail(token);
  report(token, failure.kind, failure.status, {.private_data = std::move(private_data)});
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
    if (!pair_.is_parked()) return 0;  // of UC: it works already
    if (&target == &h.token().runtime()) {
      verbs::QueuePair* pair = program_pair(adapter_, h.token(), qpn, Carrier::stream);
      if (pair != nullptr) {
        pair_.carry(h.token(), pair, pair_.unpark(h.token()), stream_use(true));
      } else {
        pair_.say_ready(h.token());
      }
      return 0;
    }
    started = pair_.unpark(h.token());
    home_.store(&target, std::memory_order_release);
  }
  auto h = hold_home();
  if (state_ != IdState::connected) {
    // Another thread has disconnected it meanwhile.
    LingeringClose::give_up(h.token(), std::move(started));
    return 0;
  }
  pair_.carry(h.token(), program_pair(adapter_, h.token(), qpn, Carrier::stream),
              std::move(started), stream_use(true));
  pair_.say_ready(h.token());
  return 0;
}

// --- the side that is connected to: requests come to a listener as children, and wait for the
// program's answer

PendingRequestHandler* ConnectionId::connection_requested(Token& token,
                                                          const ConnectionRequest& request) {
  std::unique_ptr<ConnectionId, void (*)(ConnectionId*)> child{
      new ConnectionId(adapter_, channel_, engine::Engine::of(token)),
      [](ConnectionId* id) { delete id; }};
  // What one side may have outstanding the other has to serve.
  child->parameters_ = {.responder_resources = reads_told(request.ord),
                        .initiator_depth = reads_told(request.ird)};
  begin_request(*child, request.local, request.peer);
  child->request_ = request.pending;
  if (!announce(token, *child, copy(request.private_data))) return nullptr;
  // The thread that takes the event has to get the engine before it can do anything to the child.
  return child.release();
}

void ConnectionId::caught_up(Token& token) {
  listening_.resume(token);
}

void ConnectionId::peer_gone(Token& token) {
  request_.gone();
  if (channel_->withdraw_request(*this)) {
    // The program never heard of it.
    token.runtime().forget(token, *this);
    delete this;
    return;
  }
  if (can(Step::peer_gone)) take(Step::peer_gone);
}

// The session is on the listener's socket, so the queue pair has to be on the listener's engine.
void ConnectionId::prefer_home(bool on) const {
  if (!alive()) return;
  const auto h = hold_home();
  verbs::Adapter::prefer(on && request_.by_datagram() ? home_.load(std::memory_order_acquire)
                                                      : nullptr);
}

int ConnectionId::accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::accept, parameters.private_data.size()); e != 0) return e;
  bool by_datagram;
  {
    const auto h = hold_home();
    by_datagram = request_.by_datagram();
  }
  if (by_datagram) return accept_call(pair, parameters);
  bool deserted;
  {
    const auto h = hold_home();
    deserted = state_ == IdState::deserted;
    if (!deserted && (!can(Step::accept) || !request_.waits())) return wrong_state(Step::accept);
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
  std::optional<wdp::Path> path;
  wire::RdOffer caller;
  {
    const auto h = hold_home();
    if (const ChannelRequest* const by_channel = request_.by_channel()) {
      path = by_channel->path();
      caller = by_channel->peer();
    }
  }
  if (path) return accept_by_channel(pair, target, *path, caller);
  std::optional<Started> started;
  {
    auto h = hold_home();
    if (request_.waits()) {
      started = request_.accept(h.token(), stream_offer(parameters_), parameters.private_data,
                                pair != nullptr ? rd_offer(pair->number()) : std::nullopt);
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

// The queue pair's socket waits for the peer before it hears of that: its first message may come as
// soon as the Reply.
int ConnectionId::accept_by_channel(verbs::QueuePair* pair, engine::Engine& target,
                                    const wdp::Path& path, const wire::RdOffer& peer) {
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  Started started;
  // Of the queue pair's engine.
  Undo unused{[&] {
    auto h = target.hold();
    started.bytes.reset();
  }};
  std::optional<wire::RdOffer> own;
  verbs::QueuePair* carrier = pair;
  {
    auto h = target.hold();
    if (carrier == nullptr) {
      carrier = program_pair(adapter_, h.token(), parameters_.qpn, Carrier::stream);
    }
    if (carrier != nullptr) own = rd_offer(*carrier, path);
    if (own) {
      drive::DatagramDriver& driver = adapter_.ports().datagrams(h.token(), own->qpn);
      driver.set_interface(path.from, interface_to_peer());
      started.bytes = std::make_unique<drive::RdBytes>(
          driver, path, wire::RdOffers{.own = *own, .peer = peer}, given_up);
      driver.settle(h.token());
    }
  }
  if (!own) {
    WEFT_LOG_REFUSAL(
        "rdma_accept: the peer asks for RC over UDP: give the id an RC queue pair first, or the "
        "number of one that is in INIT");
    return EINVAL;
  }
  std::optional<mpa::Parameters> agreed_on;
  {
    auto h = hold_home();
    if (ChannelRequest* const request = request_.by_channel()) {
      agreed_on = request->accept_there(h.token(), stream_offer(parameters_),
                                        parameters_.private_data, *own, given_up);
      request_.gone();
      if (!agreed_on) take(Step::peer_gone);
    }
    if (agreed_on) home_.store(&target, std::memory_order_release);
  }
  if (!agreed_on) return no_peer(pair);
  unused.done();
  started.parameters = *agreed_on;
  auto h = hold_home();
  accepted(h.token(), carrier, std::move(started));
  return 0;
}

int ConnectionId::accept_call(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (&engine_for(pair, parameters.qpn) != home_.load()) {
    // The session stays on the listener's socket.
    WEFT_LOG_REFUSAL(
        "rdma_accept: queue pair 0x%06x is on another engine than the UC listener: make it by "
        "rdma_create_qp with the request's id, or run with WEFT_ENGINES=1",
        (pair != nullptr ? pair->number() : parameters.qpn).value());
    return EINVAL;
  }
  verbs::QueuePair* own = pair;
  if (own == nullptr) {
    auto h = hold_home();
    own = program_pair(adapter_, h.token(), parameters.qpn, Carrier::datagrams);
  }
  if (own == nullptr || caller_of(*own) == nullptr) {
    WEFT_LOG_REFUSAL(
        "rdma_accept: the peer asks for UC: give the id a UC queue pair by rdma_create_qp first");
    return EINVAL;
  }
  if (pair != nullptr && !ready_pair(*pair)) return EINVAL;
  auto h = hold_home();
  if (!can(Step::answer)) return wrong_state(Step::accept);
  parameters_ = parameters;
  pair_.attach(h.token(), *own, pair == nullptr);
  take(Step::answer);
  set_under_way(true);
  const DatagramCall call = request_.take_call();
  bool there = false;
  h.token().runtime().guard(
      h.token(),
      [&] {
        verbs::DatagramCaller& caller = *pair_.caller();
        there = call.accept(h.token(), caller,
                            session_offer(caller, call.listener->driver(), call.path, parameters_,
                                          type_of_service_));
      },
      [&] { call.reject(h.token(), wire::RejReason::no_resources, {}); });
  if (there) return 0;
  set_under_way(false);
  take(Step::failure);
  pair_.fail(h.token());
  return ECONNRESET;
}

// The peer that asked is gone. What the program posted for it comes back.
int ConnectionId::no_peer(verbs::QueuePair* pair) {
  if (pair != nullptr) {
    auto h = pair->engine().hold();
    pair->fail_connection(h.token(), verbs::Status::flushed);
  }
  return ECONNRESET;
}

void ConnectionId::accepted(Token& token, verbs::QueuePair* pair, Started&& started) {
  agree_on(parameters_, started.parameters.ird, started.parameters.ord);
  if (pair == nullptr) pair = program_pair(adapter_, token, parameters_.qpn, Carrier::stream);
  if (pair == nullptr && started.parameters.established_later) {
    // The peer's program is not ready, and says when it is (spec/mpa 2.9).
    take(Step::answer);
    set_under_way(true);
    pair_.carry(token, nullptr, std::move(started), stream_use(false));
    return;
  }
  take(Step::accept);
  // At once, and not with the peer's first FPDU: an iWARP initiator may wait for this side to do
  // something first, and a program that is slow to come back would be taken for one that is not
  // there. What is posted waits for that FPDU by itself.
  report(token, EventKind::established, 0, agreed(parameters_));
  pair_.carry(token, pair, std::move(started), stream_use(false));
}

int ConnectionId::too_long_for_peer(Step step, Bytes private_data) const {
  const auto most = request_.most_private_data();
  return most ? above(step, private_data.size(), *most, "the peer is not weft, and may be siw") : 0;
}

int ConnectionId::reject(Bytes private_data) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::reject, private_data.size()); e != 0) return e;
  auto h = hold_home();
  if (!can(Step::reject)) return wrong_state(Step::reject);
  if (const int e = too_long_for_peer(Step::reject, private_data); e != 0) return e;
  request_.reject(h.token(), stats::CmRejection::by_program, private_data);
  take(Step::reject);
  return 0;
}

// --- a connection that is there

void ConnectionId::peer_confirmed(Token& token) {
  if (!on_its_way()) return;
  const bool active = state_ == IdState::connecting;
  const verbs::DatagramCaller* caller = pair_.caller();
  ConnectionParameters told = caller != nullptr
                                  ? take_answer(parameters_, caller->link()->connection(), active)
                                  : agreed(parameters_);
  set_under_way(false);
  if (active && pair_.is_of_program()) {
    take(Step::reply_for_program);
    report(token, EventKind::connect_response, 0, std::move(told));
  } else {
    take(Step::reply);
    report(token, EventKind::established, 0, std::move(told));
  }
}

void ConnectionId::call_failed(Token& token, const wdp::Handshake& handshake) {
  if (!on_its_way()) return;
  fail_connect(token, uc_failure(handshake, config::options().identity),
               copy(handshake.peer().private_data));
}

// --- the end

int ConnectionId::disconnect() {
  if (!alive()) return EIO;
  auto h = hold_home();
  Token& token = h.token();
  if (!can(Step::disconnect)) return wrong_state(Step::disconnect);
  // What waits for the peer's program alone ends as a connection does.
  if (state_ == IdState::accepting && pair_.is_parked()) take(Step::reply);
  switch (state_) {
    case IdState::accepting:
    case IdState::connecting:
      start_.cancel(token);
      fail_connect(token, {EventKind::connect_error, -ECONNABORTED});
      return 0;
    case IdState::connected:
    case IdState::responded:
      take(Step::disconnect);
      set_under_way(true);
      if (pair_.disconnect(token)) ended(token);
      return 0;
    default:
      time_wait_.disconnected(token);
      return 0;  // it is over, or will be
  }
}

void ConnectionId::ended(Token& token, int status) {
  const bool program_asked = state_ == IdState::closing;
  take(Step::stream_ended);
  set_under_way(false);
  pair_.detach(token);
  report(token, EventKind::disconnected, status);
  time_wait_.ended(token, program_asked);
}

void ConnectionId::connection_lost(Token& token, const ConnectionLoss& loss) {
  if (on_its_way()) {
    start_.cancel(token);
    fail_connect(token, loss.unestablished);
  } else if (can(Step::stream_ended)) {
    ended(token, loss.status);
  }
}

// No memory to connect again, to call over UC, or to answer such a call.
void ConnectionId::on_no_memory(Token& token) {
  if (on_its_way() && !start_.connecting()) {
    fail_connect(token, {EventKind::unreachable, -ENOMEM});
  }
}

}  // namespace weft::cm
