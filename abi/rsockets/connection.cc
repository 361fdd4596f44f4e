#include "abi/rsockets/connection.h"

#include <cerrno>

namespace weft::rsockets {

Connection::Connection(const Sizes& sizes) : sizes_(sizes) {}

int Connection::open(rdma_cm_id* id) {
  if (const int error = endpoint_.open(id, sizes_); error != 0) return error;
  const Sizes& s = endpoint_.sizes();
  send_ = SendWindow{s.send_buffer, endpoint_.message_slots()};
  receive_ = ReceiveWindow{s.receive_buffer, endpoint_.credits()};
  return 0;
}

void Connection::begin(const ConnectData& peer) {
  peer_list_ = peer.list;
  peer_slots_ = peer.mapped_slots;
  send_.open(peer.credits, peer.buffer);
}

bool Connection::progress() {
  bool any = false;
  while (const auto completion = endpoint_.poll()) {
    any = true;
    if (completion->is_sent) take_sent(*completion);
    if (completion->received) take(*completion->received);
    if (completion->failed) fail(ECONNRESET);
  }
  tell_news();
  return any;
}

void Connection::take(Message message) {
  switch (message.kind) {
    case Message::Kind::data:
      if (!receive_.received(message.value)) fail(EPROTO);
      return;
    case Message::Kind::target:
      send_.set_limit(static_cast<uint16_t>(message.value));
      if (!send_.has_room_for_grant()) return;
      if (const Target t = endpoint_.take_target(next_target_); t.length > 0) {
        send_.grant(t);
        next_target_ = (next_target_ + 1) % kTargets;
      }
      return;
    case Message::Kind::mapped:
      receive_.received_message();
      return;
    case Message::Kind::control:
      if (message.value == Message::kShutdown) peer_is_silent_ = true;
      if (message.value == Message::kDisconnect || (peer_is_silent_ && is_silent_)) end();
      return;
  }
  fail(EPROTO);
}

void Connection::take_sent(const Endpoint::Completion& completion) {
  const Message& m = completion.sent;
  if (completion.mapped || m.kind == Message::Kind::data) {
    send_.completed(m.value);
  } else if (m.kind == Message::Kind::mapped) {
    send_.completed(0);
  } else {
    --control_;
  }
}

void Connection::tell_news() {
  if (!receive_.has_news() || !may_say()) return;
  const ReceiveWindow::News news = receive_.take_news();
  const Message m{Message::Kind::target, news.limit};
  int error = 0;
  if (news.half) {
    const Target half = endpoint_.half(*news.half);
    const uint64_t entry = peer_list_.address + uint64_t{next_entry_} * sizeof(Target);
    error = endpoint_.write_small(&half, sizeof half, entry, peer_list_.key, m);
    next_entry_ = (next_entry_ + 1) % peer_list_.length;
  } else {
    error = endpoint_.send(m);
  }
  ++control_;
  if (error != 0) fail(ECONNRESET);
}

bool Connection::say(Message control) {
  if (ended_) return true;
  if (!may_say()) return false;
  ++control_;
  if (const int error = endpoint_.send(control); error != 0) fail(ECONNRESET);
  return true;
}

bool Connection::say_disconnect() {
  if (!say({Message::Kind::control, Message::kDisconnect})) return false;
  said_disconnect_ = true;
  return true;
}

bool Connection::say_shutdown() {
  if (!say({Message::Kind::control, Message::kShutdown})) return false;
  is_silent_ = true;
  return true;
}

void Connection::end() {
  ended_ = true;
  // A request that failed because the peer has gone may have been seen before its last word.
  if (error_ == ECONNRESET) error_ = 0;
}

void Connection::fail(int error) {
  if (ended_) return;
  ended_ = true;
  // Nothing is missing when both sides have said all.
  const bool is_over = said_disconnect_ || (is_silent_ && peer_is_silent_);
  error_ = error == ECONNRESET && is_over ? 0 : error;
  if (error == EPROTO) endpoint_.disconnect();
}

void Connection::fill(const SendWindow::Piece& piece, IovCursor& from) {
  from.copy_to(endpoint_.send_buffer() + piece.offset, piece.until_end);
  from.copy_to(endpoint_.send_buffer(), piece.from_start);
}

void Connection::send(IovCursor& from, uint32_t n) {
  const SendWindow::Piece piece = send_.take(n);
  fill(piece, from);
  if (endpoint_.write(piece, {Message::Kind::data, n}) != 0) fail(ECONNRESET);
}

uint32_t Connection::read(IovCursor& to, bool peek) {
  const auto n = static_cast<uint32_t>(std::min<size_t>(to.left(), receive_.available()));
  const uint32_t offset = receive_.offset();
  const uint32_t until_end = std::min(n, receive_.size() - offset);
  to.copy_from(endpoint_.receive_buffer() + offset, until_end);
  to.copy_from(endpoint_.receive_buffer(), n - until_end);
  if (!peek) receive_.read(n);
  return n;
}

std::optional<MappedTarget> Connection::find_mapped(uint64_t offset) const {
  for (uint32_t i = 0; i < endpoint_.mapped_slots(); ++i) {
    const MappedTarget m = endpoint_.mapped_target(i);
    if (offset >= m.offset && offset - m.offset < m.target.length) return m;
  }
  return std::nullopt;
}

bool Connection::say_mapped(uint32_t slot, const MappedTarget& entry) {
  if (ended_) return true;
  if (!send_.may_send_message()) return false;
  const uint64_t slots = peer_list_.address + uint64_t{peer_list_.length} * sizeof(Target);
  send_.take_message();
  const int error = endpoint_.write_small(&entry, sizeof entry, slots + slot * sizeof entry,
                                          peer_list_.key, {Message::Kind::mapped, slot});
  if (error != 0) fail(ECONNRESET);
  return true;
}

void Connection::write_mapped(IovCursor& from, uint32_t n, uint64_t address, uint32_t key) {
  const SendWindow::Piece piece = send_.take_for(n, address, key);
  fill(piece, from);
  if (endpoint_.write_mapped(piece) != 0) fail(ECONNRESET);
}

}  // namespace weft::rsockets
