#include "wdp/rd_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "base/guarded.h"
#include "base/undo.h"

namespace weft::wdp {

using wire::WdpDrop;

namespace {

// Of the window, that the reader takes before it says so.
constexpr size_t kTellAfter = RdStream::kWindow / 4;
// The request of the message that says that a window is no longer a large one.
constexpr uint64_t kShrinking = 1;

}  // namespace

RdStream::RdStream(RdChannels& channels, RdStreamOwner& owner, const wire::RdOffer& own)
    : channels_(channels),
      owner_(&owner),
      own_(own),
      client_(channels.add(*this)),
      window_{.extra = RdExtra{channels.budget()}, .edge = kWindow} {
  Undo unknown{[&] { channels_.remove(client_); }};
  channels_.add(index_of(own.qpn), *this);
  unknown.done();
}

void RdStream::begin(const wire::RdOffer& peer, const Path& path, size_t most) {
  peer_ = peer;
  path_ = path;
  most_ = static_cast<uint32_t>(most);
  if (RdChannel* const found = channels_.find(path_)) ask(*found);
}

void RdStream::begin(const wire::RdOffer& peer, RdChannel& channel, size_t most) {
  peer_ = peer;
  path_ = channel.path();
  most_ = static_cast<uint32_t>(most);
  if (channel_ != &channel) go_by(channel);
  beginning_.there = std::exchange(beginning_.requested, false);
}

bool RdStream::has_channel() {
  if (channel_ != nullptr || error_ != 0 || left_) return true;
  if (beginning_.awaits) return false;
  RdChannel* const found = channels_.find(path_);
  if (found == nullptr) return false;
  if (asked_ == nullptr && found->was_at_rest()) ask(*found);
  if (found == asked_ && !found->has_answered(question_)) {
    found->out().want_room(client_);
    return false;
  }
  go_by(*found);
  return true;
}

// Whether the peer knows the channel yet.
void RdStream::ask(RdChannel& channel) {
  asked_ = &channel;
  channel.enter();
  question_ = channel.ask_peer();
}

void RdStream::go_by(RdChannel& channel) {
  channel.enter_connection();
  if (asked_ != nullptr) std::exchange(asked_, nullptr)->leave();
  channel_ = &channel;
  if (beginning_.announces) say(Word::taken, 0);
  beginning_.announces = false;
}

// --- the start through a channel

void RdStream::say_start(Word word, uint32_t session, Bytes payload) {
  RdMessage m =
      start_message(own_.qpn, peer_.qpn, session, word, static_cast<uint32_t>(payload.size()));
  if (beginning_.to_listener) m.number = beginning_.to_listener->caller;
  std::copy(payload.begin(), payload.end(), channel_->out().send(m, client_, 0));
}

bool RdStream::request(Qpn to, Bytes frame) {
  if (!channel_->out().has_room(kMostOfStart)) {
    channel_->out().want_room(client_);
    return false;
  }
  std::vector<std::byte> payload(wire::RdOffer::kSize);
  own_.encode(payload.data());
  payload.insert(payload.end(), frame.begin(), frame.end());
  peer_.qpn = to;
  say_start(Word::request, 0, payload);
  beginning_.requested = true;
  return true;
}

void RdStream::call_listener(const Path& path, uint16_t caller) {
  path_ = path;
  beginning_.to_listener = std::make_unique<ToListener>();
  beginning_.to_listener->caller = caller;
}

void RdStream::begin_there(const wire::RdOffer& peer, size_t most) {
  Path there = path_;
  there.to.port = port_of(peer.qpn);
  beginning_.requested = false;
  std::exchange(channel_, nullptr)->leave();
  beginning_.announces = true;
  const auto greeting = std::exchange(beginning_.to_listener, nullptr)->greeting;
  const bool greeted = greeting && greeting->from == peer.qpn;
  RdChannel* const by = greeted ? channels_.find(greeting->channel) : nullptr;
  if (by != nullptr && by->is_usable()) {
    // Whoever knows the session is the peer, and this is its channel.
    begin(peer, *by, most);
  } else {
    begin(peer, there, most);
  }
  if (greeted && greeting->word == Word::abort) fail(ECONNRESET);
}

void RdStream::await(const wire::RdOffer& peer, const Path& path, size_t most) {
  peer_ = peer;
  path_ = path;
  most_ = static_cast<uint32_t>(most);
  beginning_.awaits = true;
  if (RdChannel* const known = channels_.find(path_)) greet(*known, Word::taken);
}

void RdStream::turn_away() {
  if (RdChannel* const known = channels_.find(path_)) greet(*known, Word::abort);
}

// The end of that channel is none of the stream's: whether the peer has it yet is not known.
void RdStream::greet(RdChannel& channel, Word word) {
  if (!channel.out().has_room(0)) return;
  RdMessage m = message(0, 0);
  m.immediate = static_cast<uint32_t>(word);
  channel.out().send(m, kNoClient, 0);
}

void RdStream::cancel_request() {
  if (!beginning_.requested || channel_ == nullptr) return;
  std::array<std::byte, wire::RdOffer::kSize> offer;
  own_.encode(offer.data());
  say_start(Word::cancel, 0, offer);
  beginning_.requested = false;
}

void RdStream::reply(Bytes frame) {
  say_start(Word::reply, peer_.session, frame);
  beginning_.there = true;
}

Result<Ok, WdpDrop> RdStream::hear_reply(const RdChannel& channel, const RdArrival& arrival,
                                         Bytes frame) {
  const wire::WdpData& d = arrival.header;
  // The one that had the Request has ended.
  if (channel_ != &channel) return weft::fail(WdpDrop::wrong_address);
  if (!d.has_immediate() || static_cast<Word>(d.imm_or_read) != Word::reply) {
    return weft::fail(WdpDrop::wrong_q_key);
  }
  heard_ = true;
  owner_->replied(frame);
  return Ok{};
}

// Of a listener's host: the Reply may be behind it, and says whether that queue pair is meant.
bool RdStream::greeted(const RdChannel& channel, const RdArrival& arrival) {
  const wire::WdpData& d = arrival.header;
  if (!beginning_.to_listener || arrival.how.from.address != path_.to.address || !d.has_immediate())
    return false;
  const auto word = static_cast<Word>(d.imm_or_read);
  if (word != Word::taken && word != Word::abort) return false;
  beginning_.to_listener->greeting = {
      .channel = channel.token(), .from = arrival.source, .word = word};
  return true;
}

// --- out

// RC has no Q_Key: the session stands in its place, and the number in the half of TO that UD leaves
// empty.
RdMessage RdStream::message(uint32_t number, size_t bytes) const {
  return {.sidx = index_of(own_.qpn),
          .didx = index_of(peer_.qpn),
          .q_key = QKey{peer_.session},
          .number = number,
          .length = static_cast<uint32_t>(bytes)};
}

// The channel has room for these always: they are few, a quarter of a window apart.
void RdStream::say(Word word, uint32_t number, uint64_t request) {
  if (channel_ == nullptr || !begun()) return;
  RdMessage m = message(number, 0);
  m.immediate = static_cast<uint32_t>(word);
  channel_->out().send(m, client_, request);
}

RdStream::Moved RdStream::send(std::span<const IoVec> pieces) {
  Moved moved;
  if (error_ != 0 || ended_ || channel_ == nullptr) return moved;
  size_t left = total(pieces);
  auto piece = pieces.begin();
  size_t skip = 0;
  while (left > 0) {
    const size_t n = std::min<size_t>(most_, left);
    // Not a part of it: the reader says so a quarter of a window later at the latest.
    if (sent_ - peer_has_read_ + n > peer_window_) break;
    if (!channel_->out().has_room(static_cast<uint32_t>(n))) {
      channel_->out().want_room(client_);
      break;
    }
    const RdMessage m = message(static_cast<uint32_t>(sent_), n);
    std::byte* at = channel_->out().send(m, client_, 0);
    for (size_t copied = 0; copied < n;) {
      const size_t part = std::min(n - copied, piece->iov_len - skip);
      if (!copy_guarded(at + copied, static_cast<const std::byte*>(piece->iov_base) + skip, part)) {
        channel_->out().take_back(m);
        moved.unreachable = true;
        // The caller hears of what was sent now, and of the rest when it asks again.
        if (moved.bytes > 0) owner_->stream_changed();
        return moved;
      }
      copied += part;
      skip += part;
      if (skip == piece->iov_len) {
        ++piece;
        skip = 0;
      }
    }
    sent_ += n;
    left -= n;
    moved.bytes += n;
  }
  return moved;
}

void RdStream::end() {
  if (ended_) return;
  if (error_ == 0) say(Word::end, static_cast<uint32_t>(sent_));
  ended_ = true;
}

void RdStream::leave(bool abort) {
  if (left_) return;
  // First what may find no memory.
  if (error_ == 0 && abort) {
    say(Word::abort, 0);
  } else {
    end();
  }
  left_ = true;
  window_.extra.release();
  channels_.remove(client_);
  channels_.remove(index_of(own_.qpn), *this);
  if (channel_ != nullptr) std::exchange(channel_, nullptr)->leave();
  if (asked_ != nullptr) std::exchange(asked_, nullptr)->leave();
}

void RdStream::forsake() {
  try {
    cancel_request();
    if (awaits()) turn_away();
    leave(true);
  } catch (const std::bad_alloc&) {
    if (error_ == 0) error_ = ENOMEM;  // nothing more is said
    if ((beginning_.there || beginning_.requested) && channel_ != nullptr) channel_->abort();
    leave(true);
  }
}

// --- in

RdStream::Moved RdStream::read(std::span<const IoVec> pieces) {
  Moved moved;
  for (const IoVec& v : pieces) {
    const size_t n = std::min(v.iov_len, readable());
    if (n == 0) continue;
    if (!copy_guarded(v.iov_base, inbox_.data() + read_, n)) {
      moved.unreachable = true;
      break;
    }
    read_ += n;
    moved.bytes += n;
  }
  if (readable() == 0) {
    inbox_.clear();
    read_ = 0;
  }
  tell_taken();
  return moved;
}

void RdStream::tell_taken() {
  const uint64_t taken = received_ - readable();
  if (taken - told_read_ < kTellAfter || error_ != 0 || peer_ended_) return;
  widen();
  say(Word::taken, static_cast<uint32_t>(taken));
  told_read_ = taken;
  window_.edge = std::max(window_.edge, taken + kWindow + window_.extra.bytes());
}

// The RDACK of what has just come leaves with it, in one datagram. Without memory it is said when
// the stream is settled.
void RdStream::tell_soon() noexcept {
  try {
    tell_taken();
  } catch (const std::bad_alloc&) {
    owner_->stream_changed();
  }
}

// spec/wdp-rd 7.3: its channel's window has grown on account of a long path, its reader takes soon
// what comes, and at this pace half a window and more comes in a round trip.
void RdStream::widen() {
  if (channel_ == nullptr || channel_->receiver() == nullptr) return;
  const RdReceivePath& receiver = *channel_->receiver();
  const Time now = channel_->out().active_at();
  const Duration passed = now - std::exchange(window_.told, now);
  const size_t most = kWindow + window_.extra.bytes();
  if (window_.shrinks || readable() > kTellAfter || receiver.most() <= most) return;
  const auto quarters = static_cast<Duration::rep>(most / kTellAfter);
  if (passed > 2 * receiver.sizing().trip() / quarters) return;
  // So that it is the channel's that finds out how much the path takes.
  window_.extra.grow_to(std::min(2 * receiver.most(), kLongestWindow) - kWindow);
  const size_t grown = kWindow + window_.extra.bytes();
  if (grown == most) return;
  channel_->out().want_rest(client_);
  say(Word::window, static_cast<uint32_t>(grown));
}

// Others of the socket may need what is set aside for it.
void RdStream::look_for_rest(Time now) {
  if (channel_ == nullptr || error_ != 0 || peer_ended_) return;
  if (now - window_.told < kWindowRests || readable() > 0)
    return channel_->out().want_rest(client_);
  window_.shrinks = true;
  say(Word::window, kWindow, kShrinking);
}

void RdStream::trim() {
  if (readable() == 0) std::vector<std::byte>{}.swap(inbox_);
}

void RdStream::fail(int error) {
  if (error_ != 0) return;
  error_ = error;
  owner_->stream_changed();
}

Result<Ok, WdpDrop> RdStream::take(RdChannel& channel, const RdArrival& arrival, Bytes payload) {
  const wire::WdpData& d = arrival.header;
  const bool from_peer = arrival.source == peer_.qpn && arrival.how.from == path_.to;
  // Of another connection, or of another peer.
  if ((!begun() && !beginning_.requested) || d.q_key().value() != own_.session) {
    return weft::fail(WdpDrop::wrong_q_key);
  }
  if (!from_peer && !begun() && greeted(channel, arrival)) return Ok{};
  if (!from_peer) return weft::fail(WdpDrop::wrong_address);
  if (!begun()) return hear_reply(channel, arrival, payload);
  heard_ = true;
  owner_->stream_changed();
  // Whoever knows the session is the peer, and this is its channel.
  if (channel_ == nullptr && error_ == 0) {
    if (channel.is_usable()) {
      go_by(channel);
    } else {
      fail(ECONNRESET);  // it has heard of the end, and the peer hears of it
    }
  }
  const auto number = static_cast<uint32_t>(d.to.value());
  if (d.has_immediate()) return hear(static_cast<Word>(d.imm_or_read), number);
  if (number != static_cast<uint32_t>(received_) || peer_ended_ ||
      received_ + payload.size() > window_.edge) {
    fail(EPROTO);
    return weft::fail(WdpDrop::window_exceeded);
  }
  if (readable() == 0 && owner_->bytes_came(payload, channel.out().active_at())) {
    received_ += payload.size();
    tell_soon();
    return Ok{};
  }
  if (read_ > inbox_.size() / 2) {
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<ptrdiff_t>(read_));
    read_ = 0;
  }
  inbox_.insert(inbox_.end(), payload.begin(), payload.end());
  received_ += payload.size();
  return Ok{};
}

Result<Ok, WdpDrop> RdStream::hear(Word word, uint32_t number) {
  switch (word) {
    case Word::taken: {
      const uint32_t more = number - static_cast<uint32_t>(peer_has_read_);
      if (more > sent_ - peer_has_read_) {
        fail(EPROTO);
        return weft::fail(WdpDrop::window_exceeded);
      }
      peer_has_read_ += more;
      return Ok{};
    }
    case Word::end:
      peer_ended_ = true;
      return Ok{};
    case Word::abort:
      fail(ECONNRESET);
      return Ok{};
    case Word::window:
      peer_window_ = std::clamp<uint32_t>(number, kWindow, kLongestWindow);
      return Ok{};
    case Word::request:
    case Word::reply:
    case Word::cancel:
      break;
  }
  return weft::fail(WdpDrop::bad_opcode);
}

void RdStream::cancelled(const RdStart& start) {
  if (!begun() || start.offer != peer_) return;
  if (channel_ != nullptr && channel_->token() == start.channel) fail(ECONNRESET);
}

// --- the channel

void RdStream::channel_ended(const RdChannel& channel) {
  if (asked_ == &channel) {
    asked_ = nullptr;
    return owner_->stream_changed();
  }
  if (channel_ != &channel) return;
  channel_ = nullptr;
  fail(ECONNRESET);
}

void RdStream::message_ended(uint64_t request, End end) {
  if (end == End::delivered) {
    // What the peer sends from now on keeps to it.
    if (request == kShrinking) {
      window_.shrinks = false;
      window_.extra.release();
    }
    return;
  }
  fail(end == End::returned ? ECONNREFUSED : ETIMEDOUT);
}

}  // namespace weft::wdp
