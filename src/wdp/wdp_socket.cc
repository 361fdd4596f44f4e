#include "wdp/wdp_socket.h"

#include <algorithm>
#include <new>
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

// An answer leaves from the address that the question came to (spec/wdp 4.3).
Path back_to(const UdReception& how) {
  return {.to = how.from, .from = how.to};
}

std::vector<std::byte> encoded(const WdpCtl& c) {
  std::vector<std::byte> datagram(c.size());
  c.encode(datagram.data());
  return datagram;
}

bool is_request(Bytes datagram) {
  return datagram.size() > WdpCommon::kSize && static_cast<CtlType>(datagram[8]) == CtlType::req;
}

}  // namespace

// --- datagrams in

void WdpSocket::received(Bytes datagram, const UdReception& how, Time now, WdpSocketOwner& owner) {
  const auto common = WdpCommon::parse(datagram);
  if (!common.ok()) {
    if (common.error() == WdpDrop::other_version) {
      if (const auto rej = gate_.other_version(datagram, now)) answer(*rej, how);
    }
    return drops_.count(common.error());
  }
  if (common->wdp_class == WdpClass::ud) return received_ud(*common, datagram, how);
  if (common->wdp_class == WdpClass::ctl && is_request(datagram)) {
    return request(*common, datagram, how, now, owner);
  }
  if (!questions_.empty() && questions_.contains(common->token)) {
    return received_answer(*common, datagram, how, now, owner);
  }
  const auto found = demux_.find(*common, how.from);
  if (!found.ok()) {
    if (found.error() == WdpDrop::unknown_token) {
      if (const auto drep = gate_.disowned(*common, datagram, now)) answer(*drep, how);
    }
    return drops_.count(found.error());
  }
  if (*found == nullptr) {
    if (RdChannel* channel = channels_.find(common->token)) {
      return channel->received(*common, datagram, how, now);
    }
    if (const auto ends = channels_.resting().find(common->token)) {
      if (RdChannel* channel = wake(*ends, now, owner)) {
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
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok()) return drops_.count(c.error());
  Handshake& question = *questions_.at(common.token);
  if (how.from != question.path().to) return drops_.count(WdpDrop::wrong_address);
  if (const auto v = question.received(*c, datagram.size(), now); !v) {
    return drops_.count(v.error());
  }
  settle(common.token, now, owner);
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
  // spec/wdp 4.3: duplicate REQ repeats the last answer
  const auto key = key_of(*req, how.from);
  if (const auto* refusal = refusals_.find(key); refusal != nullptr) {
    // What asks may be a smaller copy: part IV counts for each.
    const bool may = refusal->datagram.size() <= 3 * datagram.size();
    if (may && say({back_to(how), refusal->datagram})) rejections_.count(refusal->reason);
    return;
  }
  if (const auto* known = demux_.find(key); known != nullptr) {
    const bool validated = gate_.validated(*req, how.from, now);
    if (known->connection != nullptr) {
      return known->connection->requested_again(*req, datagram.size(), validated, now);
    }
    known->waiting->requested_again(datagram.size(), validated, now);
    return answer(*known->waiting);
  }
  if (req->service == wire::CtlService::rd_channel && req->ib_style && channels_.setup()) {
    return call_channel(*req, datagram.size(), how, now, owner);
  }
  const auto admission = gate_.judge(*req, how.from, demux_.half_open(), now);
  if (!admission.admitted) {
    return answer(admission.answer, how);
  }
  if (req->service == wire::CtlService::rd_channel) {
    return answer(RequestGate::rejection(*req, RejReason::service_mismatch), how);
  }
  if (req->ib_style) return call(*req, datagram.size(), how, admission.validated, now, owner);
  listen(*req, datagram.size(), how, admission.validated, owner);
}

void WdpSocket::call(const WdpCtl& req, size_t size, const UdReception& how, bool validated,
                     Time now, WdpSocketOwner& owner) {
  auto callee = owner.called(req, how.from);
  if (!callee.ok()) return refuse(req, callee.error(), how);
  UcConnection& connection = *callee->connection;
  if (const Handshake* own = connection.handshake()) {
    // Its handshake answers its own peer alone: what comes from elsewhere is not to draw anything
    // there (spec/threats).
    if (how.from.address != own->path().to.address) {
      return answer(RequestGate::rejection(req, RejReason::bad_parameters), how);
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

// spec/wdp-rd 2.2.
void WdpSocket::call_channel(const WdpCtl& req, size_t size, const UdReception& how, Time now,
                             WdpSocketOwner& owner) {
  const Path path = back_to(how);
  RdChannel* known = channels_.find(path);
  if (const auto ends = ChannelEnds::of(path); channels_.resting().has(ends)) {
    known = wake(ends, now, owner);
  }
  const bool sure = gate_.validated(req, how.from, now);
  if (known != nullptr && known->requested_again(req, size, sure, now)) return;
  // Who has a channel and asks for another one has begun anew, or somebody speaks in its name: it
  // has to show that it is there before the channel goes.
  const size_t waiting =
      known != nullptr ? RequestGate::kMostHalfOpen : demux_.half_open() + channels_.half_open();
  const auto admission = gate_.judge(req, how.from, waiting, now);
  if (!admission.admitted) return answer(admission.answer, how);
  if (known != nullptr) known->replaced(req, now);
  RdChannel* const channel = owner.channel_called();
  if (channel == nullptr) return refuse(req, RejReason::no_resources, how);
  Offer offer = channels_.offer();
  offer.token = demux_.fresh_token(random_, now);
  try {
    channel->answer(req, path, size, admission.validated, offer, now);
    enter(*channel, offer.token, path);
  } catch (const std::bad_alloc&) {
    channel->forget();
    throw;
  }
}

void WdpSocket::connect(RdChannel& channel, const Path& path, Qpn destination, Time now) {
  Offer offer = channels_.offer();
  offer.token = demux_.fresh_token(random_, now);
  if (const auto ended = channels_.ended_when_idle(path)) {
    const auto tlv = ended->encode();
    offer.tlvs.assign(tlv.begin(), tlv.end());
  }
  try {
    channel.call(offer, path, destination, now);
    enter(channel, offer.token, path);
  } catch (const std::bad_alloc&) {
    channel.forget();
    throw;
  }
}

void WdpSocket::wake(const ChannelEnds& ends, RdChannel& channel, Time now) {
  try {
    channels_.wake(ends, channel, now);
  } catch (const std::bad_alloc&) {
    channel.forget();
    throw;
  }
}

void WdpSocket::resume(const ChannelEnds& ends, RdChannel& channel, Time now) {
  const bool was_short = now < channels_.resting().at(ends).active + kShortRest;
  wake(ends, channel, now);
  channel.put_off_rest(now);
  if (!was_short) channel.call_again(channels_.offer(), now);
}

RdChannel* WdpSocket::wake(const ChannelEnds& ends, Time now, WdpSocketOwner& owner) {
  RdChannel* const channel = owner.channel_called();
  if (channel != nullptr) wake(ends, *channel, now);
  return channel;
}

void WdpSocket::enter(RdChannel& channel, SessionToken token, const Path& path) {
  demux_.add(token, {.from = path.to, .any_index = true});
  channels_.add(channel, path);
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
  if (waiting_.size() - told_.size() >= kMostWaiting || told_.size() >= kMostTold) {
    return refuse(req, RejReason::no_resources, how);
  }
  const auto key = key_of(req, how.from);
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->requested(req, back_to(how), size, validated);
  if (const auto no = owner.requested(key, *handshake)) {
    return refuse(req, *no, how);
  }
  Handshake& h = *(waiting_[key] = std::move(handshake));
  demux_.add(key, {.waiting = &h});
}

// --- answers

void WdpSocket::refuse(const WdpCtl& req, RejReason reason, const UdReception& how) {
  const WdpCtl rej = RequestGate::rejection(req, reason);
  answer(rej, how);
  refusals_.remember(key_of(req, how.from), {reason, encoded(rej)});
}

bool WdpSocket::say(Answer answer) {
  if (answers_.size() >= kMostAnswers) return false;
  answers_.push_back(std::move(answer));
  return true;
}

void WdpSocket::answer(const WdpCtl& c, const UdReception& how) {
  const bool said = say({back_to(how), encoded(c)});
  if (said && c.type == CtlType::rej) rejections_.count(static_cast<RejReason>(c.reason));
}

void WdpSocket::answer(Handshake& handshake) {
  while (handshake.ready()) {
    Train train;
    handshake.fill(train);
    Answer a{handshake.path(), {}};
    for (const IoVec& v : train.pieces()) {
      const auto* p = static_cast<const std::byte*>(v.iov_base);
      a.datagram.insert(a.datagram.end(), p, p + v.iov_len);
    }
    // A REJ is the last that a handshake says.
    const auto reason = handshake.ready() ? std::nullopt : handshake.rejected_by_us();
    if (reason && !handshake.active()) {
      refusals_.remember(key_of(handshake.peer(), a.path.to), {*reason, a.datagram});
    }
    if (say(std::move(a)) && reason) rejections_.count(*reason);
  }
}

void WdpSocket::fill(Train& train) {
  if (!train.empty() || answers_.empty()) return;
  const Answer& a = answers_.front();
  train.begin(a.datagram.size(), a.path);
  std::copy(a.datagram.begin(), a.datagram.end(), train.stage(a.datagram.size()));
  train.close();
  answers_.pop_front();
}

// --- questions about UD queue pairs

SessionToken WdpSocket::ask(Offer offer, const Path& path, Time now) {
  offer.service = wire::CtlService::ud_resolution;
  offer.token = demux_.fresh_token(random_, now);
  // Not anybody else's as long as it is asked.
  demux_.add(offer.token, {.connection = nullptr, .from = path.to});
  auto handshake = std::make_unique<Handshake>(random_);
  handshake->connect(offer, path, Qpn{}, false, now);
  Handshake& h = *(questions_[offer.token] = std::move(handshake));
  answer(h);
  return offer.token;
}

void WdpSocket::forget(SessionToken question, Time now) {
  if (questions_.erase(question) != 0) demux_.remove(question, now);
}

void WdpSocket::port_closed(SessionToken question, Time now, WdpSocketOwner& owner) {
  const auto it = questions_.find(question);
  if (it == questions_.end()) return;
  it->second->port_closed();
  settle(question, now, owner);
}

void WdpSocket::settle(SessionToken question, Time now, WdpSocketOwner& owner) {
  const auto it = questions_.find(question);
  answer(*it->second);
  const auto state = it->second->state();
  if (state != Handshake::State::established && state != Handshake::State::failed) return;
  const auto done = std::move(it->second);
  forget(question, now);
  owner.answered(question, *done);
}

bool WdpSocket::tell(const RequestKey& key, const Offer& offer, Time now) {
  const auto it = waiting_.find(key);
  if (it == waiting_.end()) return false;
  if (it->second->peer().service != wire::CtlService::ud_resolution) return false;
  if (it->second->state() != Handshake::State::req_received) return false;
  it->second->accept(offer, now);
  told_.push_back({key, it->second->deadline()});
  answer(*it->second);
  demux_.established(key);
  return true;
}

Time WdpSocket::deadline() const {
  Time first = Time::never();
  for (const auto& [token, h] : questions_) first = std::min(first, h->deadline());
  if (!told_.empty()) first = std::min(first, told_.front().until);
  return std::min(first, channels_.resting().deadline());
}

void WdpSocket::tick(Time now, WdpSocketOwner& owner) {
  std::vector<SessionToken> due;
  for (const auto& [token, h] : questions_) {
    if (now >= h->deadline()) due.push_back(token);
  }
  for (const SessionToken token : due) {
    questions_.at(token)->tick(now);
    settle(token, now, owner);
  }
  // What was told is repeated for 2 s, and then nobody knows of it any more.
  for (; !told_.empty() && now >= told_.front().until; told_.pop_front()) {
    demux_.remove(told_.front().key);
    waiting_.erase(told_.front().key);
  }
  channels_.forget_old(now);
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
  const auto it = waiting_.find(key);
  if (it == waiting_.end()) return false;
  // A question is no call: it makes no session.
  if (it->second->peer().service != wire::CtlService::uc) return false;
  // Before anything that may find no memory: nothing refers to it any more then.
  auto handshake = std::move(it->second);
  demux_.remove(key);
  waiting_.erase(it);
  offer.token = demux_.fresh_token(random_, now);
  enter(connection, offer.token, key.from, offer.own_qpn, true);
  answer_call(connection, key, std::move(handshake), offer, now);
  return true;
}

bool WdpSocket::reject(const RequestKey& key, RejReason reason, Bytes private_data) {
  const auto it = waiting_.find(key);
  if (it == waiting_.end() || it->second->state() != Handshake::State::req_received) return false;
  it->second->reject(reason, private_data);
  answer(*it->second);
  demux_.remove(key);
  waiting_.erase(it);
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
