#include "drive/rd_bytes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "base/undo.h"
#include "config/options.h"
#include "drive/stream_driver.h"
#include "wire/ip_headers.h"

namespace weft::drive {
namespace {

// What a datagram on this path carries of the stream. TCP knows what the interfaces of both ends
// take, and what routers have told.
size_t most_of(uint32_t segment) {
  const size_t packet = segment + wire::kTcpHeader - wire::kUdpHeader;
  return std::min<size_t>(packet - wire::WdpData::kSize, wire::WdpData::kMaxStride);
}
port::Address address_of(const wdp::Endpoint& e) {
  return port::Address::from_gid(e.address, e.port);
}
// Whatever a peer says: IP takes as much everywhere.
constexpr size_t kLeast = 512;

}  // namespace

RdBytes::RdBytes(DatagramDriver& driver, std::unique_ptr<port::ByteStream> tcp,
                 const RdRoute& route, const wire::RdOffers& offers)
    : DatagramSender(config::options().ud_big),
      driver_(driver),
      initiator_(offers.peer.has_value()),
      state_(std::make_unique<State>()),
      stream_(std::make_unique<wdp::RdStream>(
          driver.wdp_socket().channels(), static_cast<wdp::RdStreamOwner&>(*this), offers.own)) {
  Undo unknown{[&] { stream_->forsake(); }};
  const port::Address peer = tcp->peer();
  state_->start = std::make_unique<Start>(Start{std::move(tcp), peer, route});
  if (initiator_) begin_stream(*offers.peer);
  unknown.done();
}

RdBytes::RdBytes(DatagramDriver& driver, std::unique_ptr<wdp::RdStream> stream)
    : DatagramSender(config::options().ud_big),
      driver_(driver),
      initiator_(true),
      state_(std::make_unique<State>(in_channel())),
      stream_(std::move(stream)) {
  stream_->belongs_to(*this);
}

RdBytes::RdBytes(DatagramDriver& driver, wdp::RdChannel& channel, const wire::RdOffers& offers)
    : DatagramSender(config::options().ud_big),
      driver_(driver),
      initiator_(false),
      state_(std::make_unique<State>(in_channel())),
      stream_(std::make_unique<wdp::RdStream>(
          driver.wdp_socket().channels(), static_cast<wdp::RdStreamOwner&>(*this), offers.own)) {
  Undo unknown{[&] { stream_->forsake(); }};
  stream_->begin(*offers.peer, channel, most_between(offers.own, *offers.peer));
  unknown.done();
}

RdBytes::RdBytes(DatagramDriver& driver, const wdp::Path& path, const wire::RdOffers& offers,
                 GivenUp given_up)
    : DatagramSender(config::options().ud_big),
      driver_(driver),
      initiator_(false),
      state_(std::make_unique<State>(in_channel())),
      stream_(std::make_unique<wdp::RdStream>(
          driver.wdp_socket().channels(), static_cast<wdp::RdStreamOwner&>(*this), offers.own)) {
  Undo unknown{[&] { stream_->forsake(); }};
  state_->wait = std::make_unique<Wait>(Wait{.given_up = std::move(given_up)});
  stream_->await(*offers.peer, path, most_between(offers.own, *offers.peer));
  unknown.done();
}

RdBytes::State RdBytes::in_channel() {
  State s;
  s.carrier = Carrier::datagrams;
  s.ready = s.over = true;
  return s;
}

size_t RdBytes::most_between(const wire::RdOffer& a, const wire::RdOffer& b) {
  const size_t room = std::max<size_t>(std::min(a.room, b.room), wire::WdpData::kSize + kLeast);
  return std::min<size_t>(room - wire::WdpData::kSize, wire::WdpData::kMaxStride);
}

// The other way round than most_of().
uint32_t RdBytes::segment() const {
  const size_t packet = stream_->most() + wire::WdpData::kSize + wire::kUdpHeader;
  return static_cast<uint32_t>(packet - wire::kTcpHeader);
}

void RdBytes::begin(StreamDriver& user) {
  user_ = &user;
  if (state_->ready) user.by_datagrams();
}

void RdBytes::begin_stream(const wire::RdOffer& peer) const {
  const Start& start = *state_->start;
  state_->carrier = Carrier::datagrams;
  stream_->begin(
      peer,
      {.to = {.address = start.peer.gid(), .port = port_of(peer.qpn)}, .from = start.route.from},
      most_of(start.route.segment));
}

// --- TCP, as long as there is any

bool RdBytes::say(wire::RdWord word) const {
  const auto byte = static_cast<std::byte>(word);
  const IoVec one{const_cast<std::byte*>(&byte), 1};
  return state_->start->tcp->send({&one, 1}).bytes == 1;
}

// The Initiator: what the Responder says.
void RdBytes::hear(std::byte said) const {
  State& s = *state_;
  const auto word = static_cast<wire::RdWord>(said);
  if (word == wire::RdWord::ready && !s.ready) {
    s.ready = true;
    user_->by_datagrams();
  } else if (word == wire::RdWord::over && s.ready) {
    s.over = true;
  } else {
    s.error = EPROTO;
  }
}

// The Responder: whether the Initiator comes, and from where.
void RdBytes::take_answer(Bytes said) const {
  State& s = *state_;
  Start& start = *s.start;
  std::copy(said.begin(), said.end(),
            start.answer.begin() + static_cast<ptrdiff_t>(start.answered));
  start.answered += said.size();
  if (start.answer.front() == static_cast<std::byte>(wire::RdCarrier::tcp)) {
    s.carrier = Carrier::tcp;
    return;
  }
  if (start.answered < start.answer.size()) return;
  const auto peer = wire::RdOffer::parse(start.answer.data() + 1);
  if (!peer) {
    s.error = EPROTO;
    return;
  }
  begin_stream(*peer);
  s.ready = say(wire::RdWord::ready);
  if (s.ready) {
    user_->by_datagrams();
  } else {
    s.error = ECONNRESET;
  }
}

// Its end is the end of all before the stream has gone over.
void RdBytes::listen() const {
  State& s = *state_;
  while (s.carrier != Carrier::tcp && has_tcp() && !s.over && s.error == 0) {
    std::array<std::byte, 1 + wire::RdOffer::kSize> buffer;
    // Of the Initiator's answer no byte of what follows it on TCP.
    size_t most = 1;
    const Start& start = *s.start;
    if (!initiator_ && start.answered > 0 && !s.ready) most = start.answer.size() - start.answered;
    const IoVec piece{buffer.data(), most};
    const auto t = start.tcp->receive({&piece, 1});
    if (t.would_block) return;
    if (t.bytes == 0) {
      s.error = ECONNRESET;
    } else if (initiator_) {
      hear(buffer.front());
    } else if (s.ready) {
      s.error = EPROTO;
    } else {
      take_answer(Bytes{buffer}.first(t.bytes));
    }
  }
}

void RdBytes::visited(Token& token) {
  State& s = *state_;
  if (s.wait) wait_for_peer(token);
  if (s.carrier == Carrier::datagrams) {
    if (!initiator_ && !s.over && stream_->heard()) s.over = say(wire::RdWord::over);
    if (s.over && has_tcp()) {
      token.runtime().rewatch(token, *user_, -1, false, false);
      s.start.reset();
    }
    if (s.ready && (initiator_ ? stream_->needs_channel() : stream_->channel_rests())) {
      if (s.start) driver_.set_interface(s.start->route.from, s.start->route.scope);
      driver_.open_channel(token, stream_->path());
      stream_changed();
    }
  }
  driver_.settle(token);
}

void RdBytes::wait_for_peer(Token& token) {
  Wait& wait = *state_->wait;
  if (!stream_->awaits()) return wait_no_longer(token);
  if (wait.of_engine != nullptr) return;
  wait.of_engine = &PeerWait::start(token, *stream_, driver_, wait.given_up);
}

void RdBytes::wait_no_longer(Token& token) {
  if (state_->wait && state_->wait->of_engine != nullptr) state_->wait->of_engine->stop(token);
  state_->wait.reset();
}

void RdBytes::leave(Token& token, bool abort) {
  if (stream_->awaits()) {
    driver_.open_channel(token, stream_->path());
    stream_->turn_away();
  }
  wait_no_longer(token);
  stream_->leave(abort || !state_->ready);
  driver_.remove(token, *this);
  driver_.settle(token);
}

// --- the stream's events

void RdBytes::stream_changed() {
  state_->changed = true;
  driver_.schedule_settling(*this);
}

// The stream takes them from the datagram to their place. It is visited when all of them are there.
bool RdBytes::bytes_came(Bytes bytes, Time now) noexcept {
  State& s = *state_;
  if (user_ == nullptr || !s.ready || s.error != 0 || s.no_memory) return false;
  try {
    if (!user_->take_in(bytes, now)) return false;
    if (!user_->takes_large()) driver_.came_in_small_ones(bytes.size());
    return true;
  } catch (const std::bad_alloc&) {
    s.no_memory = true;
    return true;
  }
}

void RdBytes::settled(Token& token) {
  if (!std::exchange(state_->changed, false) || user_ == nullptr) return;
  StreamDriver& user = *user_;
  if (std::exchange(state_->no_memory, false)) return user.on_no_memory(token);
  if (stream_->error() != 0) user.on_broken(token);
  stream_->tell_taken();
  user.on_ready(token, readable(), true);
}

void RdBytes::on_no_memory(Token& token) {
  if (user_ != nullptr) user_->on_no_memory(token);
}

// --- port::ByteStream

port::ByteStream::Transfer RdBytes::send(std::span<const IoVec> pieces) const {
  State& s = *state_;
  if (s.carrier == Carrier::tcp) return s.start->tcp->send(pieces);
  const int error = s.error != 0 ? s.error : stream_->error();
  if (error != 0) return {.error = error};
  if (!s.ready || !stream_->has_channel()) return {.would_block = true};
  const auto moved = stream_->send(pieces);
  if (moved.bytes > 0) return {.bytes = moved.bytes};
  return {.error = moved.unreachable ? EFAULT : 0, .would_block = !moved.unreachable};
}

port::ByteStream::Transfer RdBytes::receive(std::span<const IoVec> pieces) const {
  State& s = *state_;
  listen();
  if (s.carrier == Carrier::tcp) return s.start->tcp->receive(pieces);
  const auto moved = stream_->read(pieces);
  if (moved.bytes > 0) return {.bytes = moved.bytes};
  if (moved.unreachable) return {.error = EFAULT};
  if (stream_->peer_ended()) return {.end = true};
  const int error = s.error != 0 ? s.error : stream_->error();
  if (error != 0) return {.error = error};
  return {.would_block = true};
}

void RdBytes::reset() {
  if (has_tcp()) state_->start->tcp->reset();
}

void RdBytes::close() {
  if (has_tcp()) state_->start->tcp->close();
}

void RdBytes::shut_write() const {
  if (state_->carrier == Carrier::tcp) {
    state_->start->tcp->shut_write();
  } else {
    stream_->end();
  }
}

port::Address RdBytes::peer() const {
  return state_->start ? state_->start->peer : address_of(stream_->path().to);
}

port::ByteStream::Unacknowledged RdBytes::unacknowledged() const {
  return state_->carrier == Carrier::tcp ? state_->start->tcp->unacknowledged() : Unacknowledged{};
}

}  // namespace weft::drive
