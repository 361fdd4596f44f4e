#include "cm/bring_up.h"

#include <algorithm>
#include <array>

#include "base/undo.h"
#include "cm/bring_up_block.h"
#include "cm/crowd.h"
#include "cm/rc_bring_up.h"
#include "cm/uc_bring_up.h"
#include "config/options.h"
#include "device/gid_table.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using stats::BringUpRefusal;
using wire::Wfrc;

// spec/addressing 5.2
constexpr Duration kParkFor = 30s;
constexpr size_t kMostParked = 256;

// localhost means this host, whichever of the device's addresses its programs speak from: UCX has
// the peer's from rdma_cm and its own from the device (spec/addressing 5.6).
bool is_meant(const verbs::Context& context, const Gid& expected, const Gid& peer) {
  return expected == peer ||
         (device::is_localhost(expected) && context.device().find(peer) != nullptr);
}

// Does the Request come from the peer that the queue pair was told of?
bool from_peer(const verbs::QueuePair& qp, const StartRequest& start, const Wfrc& request) {
  const auto expected = qp.context().destination(qp.attributes().av);
  if (!expected || qp.attributes().dest_qpn != request.source_qpn) return false;
  const bool by_gid = config::options().peer_check == config::PeerCheck::gid;
  return is_meant(qp.context(), *expected, by_gid ? request.source_gid : start.sender());
}

bool of_its_user(const verbs::QueuePair& qp, const StartRequest& start) {
  return config::options().peer_check != config::PeerCheck::user ||
         start.speaks_for(qp.context(), qp.attributes().dest_qpn);
}

}  // namespace

BringUpService::PortState* BringUpService::state_of(uint16_t number) {
  const std::lock_guard guard{lock_};
  for (auto& p : ports_) {
    if (p->port->number == number) return p.get();
  }
  return nullptr;
}

void BringUpService::port_opened(Token& token, verbs::AdapterPort& port) {
  auto state = std::make_unique<PortState>(PortState{.port = &port});
  Acceptor& acceptor = Acceptor::start(token, *this, port.tcp);
  Undo accepting{[&] { acceptor.stop(token); }};
  const std::lock_guard guard{lock_};
  ports_.push_back(std::move(state));
  accepting.done();
}

BringUpService::PairState* BringUpService::state_of(const verbs::QueuePair& qp) {
  const std::lock_guard guard{lock_};
  const auto it = pairs_.find(qp.number());
  return it != pairs_.end() ? &it->second : nullptr;
}

BringUpService::PairState& BringUpService::make_state(const verbs::QueuePair& qp) {
  const std::lock_guard guard{lock_};
  return pairs_[qp.number()];
}

void BringUpService::bring_up_begun(verbs::QueuePair& pair, PairBringUp& bring_up) {
  state_of(pair)->trying = &bring_up;
}

void BringUpService::bring_up_over(verbs::QueuePair& pair, uint64_t nonce) {
  PairState* state = state_of(pair);
  state->trying = nullptr;
  if (nonce != 0) state->nonce = nonce;
}

void BringUpService::state_changed(Token& token, verbs::QueuePair& qp) {
  // No queue pair has the number 0: rdma_cm told the program to say so, and will connect it
  // (rdma_init_qp_attr).
  if (qp.cm_managed() || qp.attributes().dest_qpn == Qpn{}) return;
  const PairState& pair = make_state(qp);
  if (pair.trying == nullptr && qp.state() == verbs::QpState::rtr && !qp.connected()) {
    begin(token, qp);
  }
  PortState* port = state_of(port_of(qp.number()));
  if (pair.trying == nullptr || port == nullptr) return;
  // Requests that came early. None is lost where there is no memory for the copy.
  const auto first = std::stable_partition(
      port->parked.begin(), port->parked.end(),
      [&](const ParkedRequest& p) { return p.request.destination_qpn != qp.number(); });
  const std::vector<ParkedRequest> waiting(first, port->parked.end());
  port->parked.erase(first, port->parked.end());
  for (const ParkedRequest& p : waiting) judge(token, *port, *p.start, p.request);
}

void BringUpService::request_waits(Token& token, verbs::QueuePair& qp) {
  const PairState* pair = state_of(qp);
  if (pair != nullptr && pair->trying != nullptr) pair->trying->request_waits(token);
}

// By what the transport can take over. UC's bring-up is the queue pair's observer, and has to wait
// where an id of rdma_cm still is.
void BringUpService::begin(Token& token, verbs::QueuePair& qp) {
  if (qp.transport().stream_adopter() != nullptr) {
    RcBringUp::start(token, *this, qp);
  } else if (qp.transport().datagram_caller() != nullptr && qp.observer() == nullptr) {
    UcBringUp::start(token, *this, qp);
  }
}

Result<wdp::WdpSocketOwner::Callee, wire::RejReason> BringUpService::called(
    Token& token, verbs::QueuePair& qp, const wire::WdpCtl& req, const wdp::Endpoint& from) {
  return UcBringUp::called(token, *this, qp, make_state(qp).trying != nullptr, req, from);
}

void BringUpService::abandon(Token& token, verbs::QueuePair& qp) {
  if (const PairState* pair = state_of(qp)) {
    if (pair->trying != nullptr) pair->trying->cancel(token);
    const std::lock_guard guard{lock_};
    pairs_.erase(qp.number());
  }
  PortState* port = state_of(port_of(qp.number()));
  if (port == nullptr) return;
  std::erase_if(port->parked, [&](const ParkedRequest& p) {
    if (p.request.destination_qpn != qp.number()) return false;
    token.runtime().guard(
        token,
        [&] { refuse(token, *p.start, p.request, Wfrc::Code::not_ready, BringUpRefusal::qp_left); },
        [&] { p.start->reject(token, {}); });
    return true;
  });
}

void BringUpService::request_came(Token& token, PassiveStart& start,
                                  const mpa::Responder::Request& request) {
  read_block(token, state_of(start.tcp().local().port()), start, request.private_data);
}

void BringUpService::read_block(Token& token, PortState* port, StartRequest& start,
                                Bytes private_data) {
  const auto block = Wfrc::parse(private_data);
  if (!block || port == nullptr || block->version != Wfrc::kVersion) {
    refuse(token, start, block.value_or(Wfrc{}), Wfrc::Code::bad_parameters,
           block ? BringUpRefusal::other_version : BringUpRefusal::no_block);
    return;
  }
  start.tag = port;
  judge(token, *port, start, *block);
}

// A queue pair that a start through a channel names in its message is the one that the block names.
void BringUpService::start_came(Token& token, verbs::AdapterPort& port, const wdp::RdStart& start) {
  PortState* state = state_of(port.number);
  if (state == nullptr) return;
  if (start.word == wire::RdStreamWord::cancel) return request_taken_back(token, *state, start);
  const auto came = ChannelRequest::start(token, *this, *port.datagrams, start);
  if (came.request == nullptr) return;
  ChannelRequest& request = *came.request;
  token.runtime().guard(
      token, [&] { judge_start(token, *state, request, came.frame.private_data); },
      [&] {
        count_no_memory(token);
        request.drop(token);
      });
}

void BringUpService::judge_start(Token& token, PortState& port, ChannelRequest& request,
                                 Bytes private_data) {
  const auto block = Wfrc::parse(private_data);
  if (block &&
      (block->destination_qpn != request.destination() || block->source_qpn != request.source())) {
    refuse(token, request, *block, Wfrc::Code::bad_parameters, BringUpRefusal::not_your_peer);
    return;
  }
  read_block(token, &port, request, private_data);
}

void BringUpService::request_taken_back(Token& token, PortState& port, const wdp::RdStart& start) {
  const size_t waiting = std::erase_if(port.parked, [&](const ParkedRequest& p) {
    const auto* const request = dynamic_cast<ChannelRequest*>(p.start);
    if (request == nullptr || !request->is_cancelled_by(start)) return false;
    p.start->drop(token);
    return true;
  });
  if (waiting == 0) port.port->datagrams->wdp_socket().channels().cancelled(start);
}

void BringUpService::judge(Token& token, PortState& port, StartRequest& start,
                           const Wfrc& request) {
  verbs::QueuePair* qp = port_of(request.destination_qpn) == port.port->number
                             ? port.port->pairs[index_of(request.destination_qpn)]
                             : nullptr;
  if (qp == nullptr || qp->transport().stream_adopter() == nullptr || qp->cm_managed()) {
    refuse(token, start, request, Wfrc::Code::no_such_qp, BringUpRefusal::no_such_qp);
    return;
  }
  if (qp->state() == verbs::QpState::err) {
    refuse(token, start, request, Wfrc::Code::qp_in_error, BringUpRefusal::qp_in_error);
    return;
  }
  if (qp->state() < verbs::QpState::rtr) {
    park(token, port, start, request);
    return;
  }
  if (!from_peer(*qp, start, request)) {
    refuse(token, start, request, Wfrc::Code::not_your_peer, BringUpRefusal::not_your_peer);
    return;
  }
  if (!of_its_user(*qp, start)) {
    refuse(token, start, request, Wfrc::Code::not_your_peer, BringUpRefusal::other_user);
    return;
  }
  const PairState* pair = state_of(*qp);
  if (pair == nullptr || pair->trying == nullptr) {
    // In RDMA mode already. A late copy of the Request that brought it there gets no answer.
    if (pair != nullptr && request.nonce == pair->nonce) {
      stats::count(token.runtime().counters().bring_up_refused, BringUpRefusal::duplicate);
      start.drop(token);
    } else {
      refuse(token, start, request, Wfrc::Code::qp_in_error, BringUpRefusal::already_connected);
    }
    return;
  }
  pair->trying->request_came(token, start, request);
}

void BringUpService::park(Token& token, PortState& port, StartRequest& start, const Wfrc& request) {
  if (port.parked.size() >= kMostParked) {
    std::array<Gid, kMostParked> hosts;
    std::transform(port.parked.begin(), port.parked.end(), hosts.begin(),
                   [](const ParkedRequest& p) { return p.start->sender(); });
    const auto who = port.parked.begin() + static_cast<ptrdiff_t>(oldest_of_the_most(hosts));
    refuse(token, *who->start, who->request, Wfrc::Code::not_ready,
           BringUpRefusal::parked_too_many);
    port.parked.erase(who);
  }
  port.parked.push_back({&start, request});
  start.wait_until(token, token.now() + kParkFor);
}

void BringUpService::start_overdue(Token& token, PassiveStart& start) {
  overdue(token, start);
}

void BringUpService::overdue(Token& token, StartRequest& start) {
  auto* port = static_cast<PortState*>(start.tag);
  std::erase_if(port->parked, [&](const ParkedRequest& p) {
    if (p.start != &start) return false;
    refuse(token, start, p.request, Wfrc::Code::not_ready, BringUpRefusal::parked_too_long);
    return true;
  });
}

void BringUpService::count_no_memory(Token& token) {
  stats::count(token.runtime().counters().bring_up_refused, BringUpRefusal::no_memory);
}

void BringUpService::start_gone(Token&, PassiveStart& start) {
  auto* port = static_cast<PortState*>(start.tag);
  if (port != nullptr) {
    std::erase_if(port->parked, [&](const ParkedRequest& p) { return p.start == &start; });
  }
}

}  // namespace weft::cm
