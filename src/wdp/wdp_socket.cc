#include "wdp/wdp_socket.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {

using wire::CtlType;
using wire::RejReason;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpDrop;
using wire::WdpUd;

namespace {

bool is_request(Bytes datagram) {
  return datagram.size() > WdpCommon::kSize && static_cast<CtlType>(datagram[8]) == CtlType::req;
}

}  // namespace

// --- datagrams in

void WdpSocket::received(Bytes datagram, const UdReception& how, Time now, WdpSocketOwner& owner) {
  const auto common = WdpCommon::parse(datagram);
  if (!common.ok()) {
    if (common.error() == WdpDrop::other_version) {
      if (const auto rej = gate_.other_version(datagram, now)) answers_.say(*rej, how);
    }
    return drops_.count(common.error());
  }
  if (common->wdp_class == WdpClass::ud) return received_ud(*common, datagram, how);
  if (common->wdp_class == WdpClass::ctl && is_request(datagram)) {
    return request(*common, datagram, how, now, owner);
  }
  if (questions_.knows(common->token)) {
    return received_answer(*common, datagram, how, now, owner);
  }
  const auto found = demux_.find(*common, how.from);
  if (!found.ok()) {
    if (found.error() == WdpDrop::unknown_token) {
      if (const auto drep = gate_.disowned(*common, datagram, now)) answers_.say(*drep, how);
    }
    return drops_.count(found.error());
  }
  if (*found == nullptr) {
    if (RdChannel* channel = channels().find(common->token)) {
      return channel->received(*common, datagram, how, now);
    }
    if (const auto ends = channels().resting().find(common->token)) {
      if (RdChannel* channel = channel_calls_.wake(*ends, now, owner)) {
        return channel->received(*common, datagram, how, now);
      }
    }
    return drops_.count(WdpDrop::unknown_token);  // a question's, that is over
  }
  (*found)->received(*common, datagram, now);
  look_at(**found);
}

UcSession* WdpSocket::direct(Bytes front, size_t size, const Endpoint& from, PieceList& places) {
  const auto common = WdpCommon::parse(front);
  if (!common.ok() || common->wdp_class != WdpClass::uc) return nullptr;
  const auto found = demux_.find(*common, from);
  if (!found.ok() || *found == nullptr) return nullptr;
  UcSession* const session = (*found)->open_session();
  if (session == nullptr || !session->direct(*common, front, size, places)) return nullptr;
  (*found)->owner_.reached();
  return session;
}

void WdpSocket::received_ud(const WdpCommon& common, Bytes datagram, const UdReception& how) {
  const auto ud = WdpUd::parse(common, datagram);
  if (!ud.ok()) return drops_.count(ud.error());
  if (ud->multicast()) return drops_.count(WdpDrop::not_for_multicast);
  const auto queue = demux_.find(*ud);
  if (!queue.ok()) return drops_.count(queue.error());
  (*queue)->received(*ud, datagram, how);
}

void WdpSocket::received_answer(const WdpCommon& common, Bytes datagram, const UdReception& how,
                                Time now, WdpSocketOwner& owner) {
  auto over = questions_.received(common, datagram, how.from, now);
  if (!over.ok()) return drops_.count(over.error());
  if (*over != nullptr) owner.answered(common.token, **over);
}

void WdpSocket::received_by_group(Bytes datagram, const UdReception& how) {
  const auto ud = WdpUd::parse(datagram);
  if (!ud.ok()) {
    drops_.count(ud.error());
  } else if (!ud->multicast()) {
    drops_.count(WdpDrop::not_for_multicast);
  } else {
    demux_.each_attached(how.to, [&](UdQueue& queue) { queue.received(*ud, datagram, how); });
  }
}

// --- REQs

void WdpSocket::request(const WdpCommon& common, Bytes datagram, const UdReception& how, Time now,
                        WdpSocketOwner& owner) {
  const auto req = WdpCtl::parse(common, datagram);
  if (!req.ok()) return drops_.count(req.error());
  const auto key = key_of(*req, how.from);
  if (answers_.repeat(key, datagram.size(), how)) return;
  if (const auto* known = demux_.find(key); known != nullptr) {
    const bool validated = gate_.validated(*req, how.from, now);
    if (known->connection != nullptr) {
      return known->connection->requested_again(*req, datagram.size(), validated, now);
    }
    known->waiting->requested_again(datagram.size(), validated, now);
    return answers_.say_of(*known->waiting);
  }
  if (req->service == wire::CtlService::rd_channel && req->ib_style && channels().setup()) {
    return channel_calls_.called(*req, datagram.size(), how, now, owner);
  }
  const auto admission = gate_.judge(*req, how.from, demux_.half_open(), now);
  if (!admission.admitted) {
    return answers_.say(admission.answer, how);
  }
  if (req->service == wire::CtlService::rd_channel) {
    return answers_.say(RequestGate::rejection(*req, RejReason::service_mismatch), how);
  }
  if (req->ib_style) return call(*req, datagram.size(), how, admission.validated, now, owner);
  listen(*req, datagram.size(), how, admission.validated, owner);
}

void WdpSocket::call(const WdpCtl& req, size_t size, const UdReception& how, bool validated,
                     Time now, WdpSocketOwner& owner) {
  auto callee = owner.called(req, how.from);
  if (!callee.ok()) return answers_.refuse(req, callee.error(), how);
  UcConnection& connection = *callee->connection;
  if (const Handshake* own = connection.handshake()) {
    // Its handshake answers its own peer alone: what comes from elsewhere is not to draw anything
    // there (spec/threats).
    if (how.from.address != own->path().to.address) {
      return answers_.say(RequestGate::rejection(req, RejReason::bad_parameters), how);
    }
    // It calls itself. One of the two gives in.
    connection.requested_again(req, size, validated, now);
    return look_at(connection);
  }
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->requested(req, back_to(how), size, validated);
  const auto key = key_of(req, how.from);
  Offer offer = std::move(callee->offer);
  offer.token = demux_.fresh_token(random_, now);
  connection.owner_.reached();
  enter(connection, offer.token, how.from, offer.own_qpn, false);
  answer_call(connection, key, std::move(handshake), offer, now);
}

void WdpSocket::answer_call(UcConnection& connection, const RequestKey& key,
                            std::unique_ptr<Handshake> handshake, const Offer& offer, Time now) {
  connection.place_.request = key;
  demux_.add(key, {.connection = &connection});
  handshake->accept(offer, now);
  connection.begin(std::move(handshake), now);
}

void WdpSocket::listen(const WdpCtl& req, size_t size, const UdReception& how, bool validated,
                       WdpSocketOwner& owner) {
  if (waiting_.full()) {
    return answers_.refuse(req, RejReason::no_resources, how);
  }
  const auto key = key_of(req, how.from);
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->requested(req, back_to(how), size, validated);
  if (const auto no = owner.requested(key, *handshake)) {
    return answers_.refuse(req, *no, how);
  }
  waiting_.add(key, std::move(handshake));
}

// --- time, and what comes of questions

void WdpSocket::port_closed(SessionToken question, Time now, WdpSocketOwner& owner) {
  if (const auto over = questions_.port_closed(question, now)) owner.answered(question, *over);
}

Time WdpSocket::deadline() const {
  return std::min(
      {questions_.deadline(), waiting_.deadline(), channel_calls_.channels().resting().deadline()});
}

void WdpSocket::tick(Time now, WdpSocketOwner& owner) {
  for (const SessionToken token : questions_.due(now)) {
    if (const auto over = questions_.tick(token, now)) owner.answered(token, *over);
  }
  waiting_.tick(now);
  channels().forget_old(now);
}

// --- connections

void WdpSocket::enter(UcConnection& connection, SessionToken token, const Endpoint& from,
                      Qpn own_qpn, bool or_zero) {
  demux_.add(
      token,
      {.connection = &connection, .from = from, .index = index_of(own_qpn), .or_zero = or_zero});
  connection.place_ = {.token = token, .request = {}};
}

void WdpSocket::connect(UcConnection& connection, Offer offer, const Path& path, Qpn destination,
                        bool ib_style, Time now) {
  offer.token = demux_.fresh_token(random_, now);
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->connect(offer, path, destination, ib_style, now);
  enter(connection, offer.token, path.to, offer.own_qpn, false);
  connection.begin(std::move(handshake), now);
}

bool WdpSocket::accept(const RequestKey& key, UcConnection& connection, Offer offer, Time now) {
  // Before anything that may find no memory: nothing refers to it any more then.
  auto handshake = waiting_.take(key);
  if (handshake == nullptr) return false;
  offer.token = demux_.fresh_token(random_, now);
  enter(connection, offer.token, key.from, offer.own_qpn, true);
  answer_call(connection, key, std::move(handshake), offer, now);
  return true;
}

void WdpSocket::start_static(UcConnection& connection, UcParameters parameters,
                             const Endpoint& from, Time now) {
  if (parameters.own_token == SessionToken{}) {
    parameters.own_token = parameters.peer_token = demux_.fresh_token(random_, now);
  }
  enter(connection, parameters.own_token, from, parameters.own_qpn, true);
  connection.start_static(parameters, now);
}

// Once an RTU or data have come its REQ is not half-open any more.
void WdpSocket::look_at(UcConnection& connection) {
  if (demux_.half_open() == 0 || !connection.place_.request) return;
  if (connection.state() != UcConnection::State::setting_up) {
    demux_.established(*connection.place_.request);
  }
}

void WdpSocket::remove(UcConnection& connection, Time now) {
  const UcConnection::Place place = std::exchange(connection.place_, {});
  if (place.token == SessionToken{}) return;
  if (place.request) demux_.remove(*place.request);
  demux_.remove(place.token, now);
}

}  // namespace weft::wdp
