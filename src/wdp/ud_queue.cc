#include "wdp/ud_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/guarded.h"
#include "wdp/ecn.h"
#include "wdp/pieces.h"
#include "wdp/rd_channel.h"
#include "wire/grh.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {

using wire::Grh;
using wire::WdpDrop;
using wire::WdpUd;
using work::Access;
using work::Operation;
using work::SendWqe;
using work::Status;

namespace {

Bytes bytes_of(const IoVec& v) {
  return {static_cast<const std::byte*>(v.iov_base), v.iov_len};
}

// A group, and a number that no queue pair has: nobody there has a channel.
bool may_have_channel(const UdDestination& to) {
  return wire::is_queue_pair(index_of(to.qpn));
}

}  // namespace

// --- datagrams in

void UdQueue::received(const WdpUd& ud, Bytes datagram, const UdReception& how) {
  if (const auto v = accept(ud, datagram, how); !v.ok()) counters_.drops.count(v.error());
}

bool UdQueue::next_receive() {
  if (receive_.empty()) receive_.emplace_back();
  return consumer_.take_receive(receive_.front());
}

Result<Ok, WdpDrop> UdQueue::accept(const WdpUd& ud, Bytes datagram, const UdReception& how) {
  if (ud.flags.crc && !wire::wdp_crc_matches(datagram)) return fail(WdpDrop::bad_crc);
  // spec/wdp-ud 3.1
  if (parameters_.blocks_own_multicast && ud.multicast() && how.from_own_address &&
      ud.source == parameters_.own_qpn) {
    return fail(WdpDrop::own_multicast);
  }
  if (ud.q_key != parameters_.q_key) return fail(WdpDrop::wrong_q_key);
  return deliver({.source = ud.source,
                  .solicited = ud.solicited,
                  .multicast = ud.multicast(),
                  .has_immediate = ud.flags.immediate,
                  .immediate = ud.imm,
                  .payload = datagram.subspan(WdpUd::kSize)},
                 how);
}

bool UdQueue::take(const RdArrival& arrival, Bytes payload) {
  const wire::WdpData& d = arrival.header;
  if (d.q_key() != parameters_.q_key) {
    counters_.drops.count(WdpDrop::wrong_q_key);
    return true;
  }
  UdReception how = arrival.how;
  how.traffic_class = without_ecn(how.traffic_class);  // that is the channel's
  const auto v = deliver({.source = arrival.source,
                          .solicited = d.solicited(),
                          .reliable = true,
                          .has_immediate = d.has_immediate(),
                          .immediate = d.imm_or_read,
                          .payload = payload},
                         how);
  if (v.ok()) return true;
  if (v.error() == WdpDrop::no_receive) return false;
  counters_.drops.count(v.error());
  return true;
}

Result<Ok, WdpDrop> UdQueue::deliver(const Message& m, const UdReception& how) {
  if (!next_receive()) return fail(WdpDrop::no_receive);
  const size_t length = Grh::kSize + m.payload.size();
  if (length > receive_.front().length) {
    // "Too long for WQE: ... drop silently, counter." The receive is there for the next one.
    consumer_.give_back(std::exchange(receive_, {}));
    return fail(WdpDrop::receive_too_small);
  }
  std::array<std::byte, Grh::kSize> grh;
  Grh{.traffic_class = how.traffic_class,
      .payload_length = static_cast<uint16_t>(m.payload.size()),
      .hop_limit = how.hop_limit,
      .source = how.from.address,
      .destination = how.to}
      .encode(grh.data());
  PieceList places;
  const UdArrival nothing{.multicast = m.multicast, .reliable = m.reliable};
  if (!receive_pieces(consumer_.memory(), receive_.front(), 0, length, places).ok() ||
      !place(grh, m.payload, places)) {
    consumer_.receive_done(receive_.front(), Status::local_protection, nothing);
    return fail(WdpDrop::own_memory);
  }
  ++counters_.messages_received;
  consumer_.receive_done(receive_.front(), Status::success,
                         {.solicited = m.solicited,
                          .has_immediate = m.has_immediate,
                          .multicast = m.multicast,
                          .reliable = m.reliable,
                          .length = static_cast<uint32_t>(length),
                          .immediate = m.has_immediate ? m.immediate : 0,
                          .source = m.source,
                          .from = how.from});
  return Ok{};
}

// --- datagrams out

bool UdQueue::ready(Time) {
  return may_send();
}

void UdQueue::fill(Train& train, Time now) {
  // What a channel has not delivered goes first.
  if (again_from_ && llp_took_ == next_) {
    next_ = llp_took_ = std::min(next_, *std::exchange(again_from_, {}));
  }
  while (may_send() && next_ < limit()) {
    if (next_ < seen_ && !goes_again(next_)) {
      if (!skip(train)) return;
    } else if (!write(queue_.at(next_), train, now)) {
      return;
    }
  }
}

// A request that is under way, or over, behind one that goes again.
bool UdQueue::skip(const Train& train) {
  if (!train.empty()) return false;  // what stands there completes first
  llp_took_ = ++next_;
  complete();
  return true;
}

QKey UdQueue::key_of(const UdDestination& to) const {
  return to.key(parameters_.q_key);
}

// False when the train takes no more, no channel has room, or the request is at fault.
bool UdQueue::write(SendWqe& w, Train& train, Time now) {
  const bool immediate = w.operation == Operation::send_immediate;
  if (w.operation != Operation::send && !immediate) {
    poison(Status::local_qp_operation);
    return false;
  }
  const UdDestination* const to = &consumer_.destination(w);
  const bool again = next_ < seen_;
  UdCarriage carriage;
  const bool has_no_channels = again && w.last_message == MessageState::returned;
  if (parameters_.client != 0 && !has_no_channels && may_have_channel(*to)) {
    carriage = consumer_.carriage(*to, now);
    if (carriage.later) {
      blocked_ = true;
      return false;
    }
  }
  RdChannel* const channel = carriage.channel;
  // What is in the train is complete before what a channel has.
  if (channel != nullptr && !train.empty()) return false;
  // A channel's header is 16 bytes longer; a message is to have the same limits both ways.
  const size_t size = WdpUd::kSize + size_t{w.length};
  if (size > std::min(to->room, wire::kMaxUdpPayload) ||
      (channel != nullptr && w.length > wire::WdpData::kMaxStride)) {
    poison(Status::local_length);
    return false;
  }
  if (channel == nullptr && !train.takes(size, to->path)) return false;
  if (channel != nullptr && !channel->out().has_room(w.length)) {
    channel->out().want_room(parameters_.client);
    blocked_ = true;
    return false;
  }
  PieceList pieces;
  if (!local_pieces(consumer_.memory(), w, 0, w.length, Access::local_read, pieces).ok()) {
    poison(Status::local_protection);
    return false;
  }
  if (channel != nullptr) return hand_over(w, *to, pieces, *channel);
  if (!write_plain(w, *to, pieces, train)) return false;
  w.last_message = MessageState::plain;
  w.answered = true;
  if (parameters_.client != 0 && may_have_channel(*to)) ++counters_.messages_plain;
  if (!again) ++counters_.messages_sent;
  seen_ = std::max(seen_, ++next_);
  return true;
}

// The channel keeps a copy, until the peer has it.
bool UdQueue::hand_over(SendWqe& w, const UdDestination& to, const PieceList& pieces,
                        RdChannel& channel) {
  const bool immediate = w.operation == Operation::send_immediate;
  const RdMessage message{.sidx = index_of(parameters_.own_qpn),
                          .didx = index_of(to.qpn),
                          .q_key = key_of(to),
                          .solicited = w.solicited,
                          .immediate = immediate ? std::optional{w.immediate} : std::nullopt,
                          .length = w.length};
  if (channel.out().lacks_room(message, parameters_.client, next_)) {
    channel.out().segment_room(consumer_.room(to.path));
  }
  std::byte* at = channel.out().send_shared(message, parameters_.client, next_);
  for (const IoVec& v : pieces.pieces()) {
    if (!copy_guarded(at, v.iov_base, v.iov_len)) {
      channel.out().take_back(message);
      poison(Status::local_protection);
      return false;
    }
    at += v.iov_len;
  }
  w.last_message = MessageState::by_channel;
  w.answered = false;
  w.status = Status::success;
  if (next_ >= seen_) ++counters_.messages_sent;
  llp_took_ = ++next_;
  seen_ = std::max(seen_, next_);
  return true;
}

bool UdQueue::write_plain(SendWqe& w, const UdDestination& to, const PieceList& pieces,
                          Train& train) {
  const bool immediate = w.operation == Operation::send_immediate;
  // With CRC all are copied: what was summed has to be what leaves, whatever the program writes
  // there meanwhile.
  const bool copies = parameters_.crc || w.length < Train::kCopyBelow;
  const size_t staged = WdpUd::kSize + (copies ? w.length : 0);
  std::byte* const header = train.stage(staged);
  WdpUd{.flags = {.crc = parameters_.crc, .immediate = immediate},
        .q_key = key_of(to),
        .source = parameters_.own_qpn,
        .destination = to.qpn,
        .msn = msn_,
        .solicited = w.solicited,
        .length = static_cast<uint16_t>(w.length),
        .imm = immediate ? w.immediate : 0}
      .encode(header);
  Crc32c crc;
  if (parameters_.crc) crc = wire::wdp_crc_of_header({header, WdpUd::kSize});
  std::byte* at = header + WdpUd::kSize;
  for (const IoVec& v : pieces.pieces()) {
    if (!copies) {
      train.refer(v.iov_base, v.iov_len);
      continue;
    }
    if (!(parameters_.crc ? copy_with_crc(at, bytes_of(v), crc)
                          : copy_guarded(at, v.iov_base, v.iov_len))) {
      train.unstage(staged);
      poison(Status::local_protection);
      return false;
    }
    at += v.iov_len;
  }
  if (parameters_.crc) wire::store_wdp_crc(header, crc.value());
  train.begin(WdpUd::kSize + w.length, to.path);
  msn_ = next(msn_);
  return true;
}

// What became of a request that a channel has.
void UdQueue::message_ended(uint64_t request, End end) {
  if (request < queue_.head() || request >= seen_) return;
  SendWqe& w = queue_.at(request);
  // Behind a request at fault nothing is sent any more.
  if ((end == End::returned || end == End::undelivered) && !poison_) {
    w.last_message = end == End::returned ? MessageState::returned : MessageState::undelivered;
    again_from_ = std::min(again_from_.value_or(request), request);
    consumer_.wants_turn();
    return;
  }
  w.answered = true;
  if (end != End::delivered) w.status = Status::retry_exceeded;
  complete();
}

void UdQueue::has_room() {
  blocked_ = false;
  consumer_.wants_turn();
}

void UdQueue::poison(Status status) {
  poison_ = status;
  complete();
}

// spec/wdp-ud 4: UD WR complete when LLP took it.
void UdQueue::llp_took_all(Time) {
  llp_took_ = next_;
  complete();
}

void UdQueue::complete() {
  while (queue_.head() < llp_took_ && queue_.at(queue_.head()).answered) {
    SendWqe& w = queue_.at(queue_.head());
    consumer_.send_done(w, w.last_message == MessageState::plain ? Status::success : w.status);
    queue_.free_head();
  }
  if (!poison_ || failed_ || queue_.head() != next_) return;
  failed_ = true;
  queue_.at(next_).status = *poison_;
  consumer_.send_failed();
}

void UdQueue::resume(uint32_t client) {
  poison_.reset();
  failed_ = blocked_ = false;
  again_from_.reset();
  parameters_.client = client;
  next_ = seen_ = llp_took_ = queue_.head();
}

void UdQueue::own_memory_lost(Time) {
  const uint64_t lost = first_without_memory(consumer_.memory(), queue_, llp_took_, next_);
  if (lost == next_) return;
  if (next_ == seen_) seen_ = lost;
  next_ = llp_took_ = lost;
  poison(Status::local_protection);
}

}  // namespace weft::wdp
