#include "cm/datagram_id.h"

#include <cerrno>

#include "base/log.h"
#include "cm/call_outcome.h"
#include "cm/port_taken.h"
#include "port/udp_bind.h"
#include "wdp/multicast.h"
#include "wire/wdp_ud.h"

namespace weft::cm {

using engine::Token;
using verbs::QpState;
namespace mask = verbs::qp_mask;

DatagramId* DatagramId::create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel) {
  return new DatagramId(adapter, std::move(channel), adapter.engine(0));
}

int DatagramId::bind_socket(const port::Address& at) {
  // Groups are joined, and nothing is bound to one.
  if (wdp::is_multicast(at.gid())) return EADDRNOTAVAIL;
  auto bound = port::bind_udp(at, one_family_);
  if (!bound.ok()) {
    if (bound.error().code == EADDRINUSE) say_udp_port_taken(at);
    return bound.error().code;
  }
  bound_ = std::move(*bound);
  const port::Address name = port::Address::of_socket(bound_.get());
  if (!name.valid()) return errno;
  source_ = at;
  source_.set_port(name.port());
  return 0;
}

int DatagramId::queue_pair_attributes(QpState state, verbs::QpType, verbs::QpAttributes& a,
                                      uint32_t& m) const {
  if (!alive()) return EIO;
  const auto h = hold_home();
  if (device_ == nullptr) return on_no_device("rdma_init_qp_attr");
  a.state = state;
  m = mask::kState;
  switch (state) {
    case QpState::init:
      a.port = device::kPort;
      a.pkey_index = 0;
      a.qkey = kDefaultQKey.value();
      m |= mask::kPort | mask::kPkeyIndex | mask::kQkey;
      return 0;
    case QpState::rtr:
      return 0;
    case QpState::rts:
      m |= mask::kSqPsn;
      return 0;
    default:
      return EINVAL;
  }
}

// The one that its questions come from: all of this process have one socket, and the peer sees its
// port.
void DatagramId::take_port(Token& token) {
  source_.set_port(Inquiries::on(token).own_port(token));
}

// --- asking

int DatagramId::connect(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::connect, parameters.private_data.size()); e != 0) return e;
  const Qpn own = pair != nullptr ? pair->number() : parameters.qpn;
  auto h = hold_home();
  if (!can(Step::connect)) return wrong_state(Step::connect);
  parameters_ = parameters;
  take(Step::connect);
  set_under_way(true);
  h.token().runtime().guard(
      h.token(), [&] { ask(h.token(), own); }, [&] { on_no_memory(h.token()); });
  return 0;
}

void DatagramId::ask(Token& token, Qpn own) {
  const wdp::Path path{.to = {.address = destination_.gid(), .port = destination_.port()},
                       .from = source_.gid(),
                       .traffic_class = type_of_service_.value_or(0)};
  const wdp::Offer offer{.own_qpn = own, .private_data = parameters_.private_data};
  const uint32_t interface = source_.scope() != 0 ? source_.scope() : destination_.scope();
  const auto question = Inquiries::on(token).ask(token, *this, offer, path, interface);
  if (!question.ok()) {
    fail_connect(token, EventKind::unreachable, -question.error().code);
  } else if (state_ == IdState::connecting) {
    question_ = *question;
  }
}

void DatagramId::answered(Token& token, const wdp::Handshake& handshake) {
  question_.reset();
  if (state_ != IdState::connecting) return;
  const wire::WdpCtl& peer = handshake.peer();
  std::vector<std::byte> told{peer.private_data.begin(), peer.private_data.end()};
  if (handshake.state() != wdp::Handshake::State::established) {
    const FailureEvent e = ud_failure(handshake);
    return fail_connect(token, e.kind, e.status, std::move(told));
  }
  set_under_way(false);
  take(Step::reply);
  report(token, EventKind::established, 0, {.qpn = peer.source, .private_data = std::move(told)},
         DatagramPeer{.address = vector_to(handshake.path().to.address),
                      .qpn = peer.source,
                      .q_key = peer.q_key()});
}

void DatagramId::fail_connect(Token& token, EventKind kind, int status,
                              std::vector<std::byte> private_data) {
  set_under_way(false);
  take(Step::failure);
  report(token, kind, status, {.private_data = std::move(private_data)}, DatagramPeer{});
}

void DatagramId::on_no_memory(Token& token) {
  if (state_ == IdState::connecting && !question_) {
    fail_connect(token, EventKind::unreachable, -ENOMEM);
  }
}

// --- answering

int DatagramId::start_listening(Token& token, int) {
  if (!bound_.valid()) {
    const port::Address at = source_.valid() ? source_ : port::Address::any(AF_INET, 0);
    if (const int error = bind_socket(at); error != 0) return error;
  }
  // It keeps its port where there is no memory to listen there.
  port::Fd shared = bound_.duplicate();
  if (!shared.valid()) return errno;
  listener_ =
      &DatagramListener::start(token, *this, wire::CtlService::ud_resolution, std::move(shared));
  bound_.reset();
  return 0;
}

std::optional<wire::RejReason> DatagramId::datagram_requested(Token& token,
                                                              const DatagramCall& call,
                                                              const wdp::Handshake& handshake) {
  if (BasicId::crowded()) return wire::RejReason::no_resources;
  std::unique_ptr<DatagramId, void (*)(DatagramId*)> made{
      new DatagramId(adapter_, channel_, engine::Engine::of(token)),
      [](DatagramId* id) { delete id; }};
  const wdp::Path& path = handshake.path();
  begin_request(*made, port::Address::from_gid(path.from, source_.port(), source_.scope()),
                port::Address::from_gid(path.to.address, path.to.port, source_.scope()));
  made->call_ = call;
  const Bytes asked = handshake.peer().private_data;
  if (!announce(token, *made, {asked.begin(), asked.end()})) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::channel_gone);
    return wire::RejReason::application;
  }
  (void)made.release();
  return {};
}

int DatagramId::accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::accept, parameters.private_data.size()); e != 0) return e;
  wdp::Offer offer{.own_qpn = parameters.qpn,
                   .first_psn = Psn{kDefaultQKey.value()},
                   .traffic_class = type_of_service_.value_or(0),
                   .private_data = parameters.private_data};
  if (pair != nullptr) {
    offer.own_qpn = pair->number();
    offer.first_psn = Psn{pair->query().qkey};
  }
  if (offer.own_qpn == Qpn{}) {
    WEFT_LOG_REFUSAL("rdma_accept: the id has no queue pair, so the parameters have to name one");
    return EINVAL;
  }
  auto h = hold_home();
  if (!can(Step::accept) || !call_) return wrong_state(Step::accept);
  take(Step::accept);
  std::exchange(call_, {})->tell(h.token(), offer);
  return 0;
}

int DatagramId::reject(Bytes private_data) {
  if (!alive()) return EIO;
  if (const int e = too_long(Step::reject, private_data.size()); e != 0) return e;
  auto h = hold_home();
  if (!can(Step::reject) || !call_) return wrong_state(Step::reject);
  stats::count(h.token().runtime().counters().cm_rejected, stats::CmRejection::by_program);
  take(Step::reject);
  std::exchange(call_, {})->reject(h.token(), wire::RejReason::application, private_data);
  return 0;
}

// --- multicast

// Who joins hears what comes to the group once a queue pair is attached to it (ibv_attach_mcast).
int DatagramId::join_multicast(const port::Address& group, void* join) {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (device_ == nullptr) return on_no_device("rdma_join_multicast");
  if (!wdp::is_multicast(group.gid())) {
    WEFT_LOG_REFUSAL("rdma_join_multicast: %s is no multicast address", group.to_string().c_str());
    return EINVAL;
  }
  if (source_.family() != group.family()) {
    WEFT_LOG_REFUSAL(
        "rdma_join_multicast: the id is at %s, and the group is %s: both have to be "
        "IPv4, or both IPv6",
        source_.to_string().c_str(), group.to_string().c_str());
    return EINVAL;
  }
  DatagramPeer members{
      .address = vector_to(group.gid()), .qpn = wire::kMulticastQpn, .q_key = kDefaultQKey};
  // spec/wdp-ud 5.3: TTL 1 by default.
  members.address.hop_limit = 1;
  report(h.token(), EventKind::multicast_join, 0, {.qpn = members.qpn}, members, join);
  return 0;
}

int DatagramId::leave_multicast(void* join) {
  if (!alive()) return EIO;
  const auto h = hold_home();
  channel_->withdraw_join(join);
  return 0;
}

// --- the end

// Nobody is told: the peer keeps no state either.
int DatagramId::disconnect() {
  if (!alive()) return EIO;
  auto h = hold_home();
  if (!can(Step::disconnect)) return wrong_state(Step::disconnect);
  if (state_ == IdState::connecting) {
    if (question_) Inquiries::on(h.token()).forget(h.token(), *std::exchange(question_, {}));
    fail_connect(h.token(), EventKind::connect_error, -ECONNABORTED);
  } else if (state_ == IdState::connected) {
    take(Step::stream_ended);
  }
  return 0;
}

void DatagramId::stop(Token& token) {
  set_under_way(false);
  bound_.reset();
  if (listener_ != nullptr) std::exchange(listener_, nullptr)->stop(token);
  if (question_) Inquiries::on(token).forget(token, *std::exchange(question_, {}));
  if (call_) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::id_gone);
    std::exchange(call_, {})->reject(token, wire::RejReason::application, {});
  }
}

}  // namespace weft::cm
