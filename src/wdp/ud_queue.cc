#include "wdp/ud_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/guarded.h"
#include "wdp/pieces.h"
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

// InfiniBand 10.2.5: a posted Q_Key with this bit stands for the queue pair's own.
constexpr uint32_t kOwnQKey = 0x80000000;

Bytes bytes_of(const IoVec& v) {
  return {static_cast<const std::byte*>(v.iov_base), v.iov_len};
}

}  // namespace

// --- datagrams in

void UdQueue::received(const WdpUd& ud, Bytes datagram, const UdReception& how) {
  if (const auto v = accept(ud, datagram, how); !v.ok()) counters_.drops.count(v.error());
}

bool UdQueue::next_receive() {
  if (has_receive_) return true;
  if (receive_ == nullptr) receive_ = std::make_unique<work::Receive>();
  return has_receive_ = consumer_.take_receive(*receive_);
}

Result<Ok, WdpDrop> UdQueue::accept(const WdpUd& ud, Bytes datagram, const UdReception& how) {
  if (ud.flags.crc && !wire::wdp_crc_matches(datagram)) return fail(WdpDrop::bad_crc);
  // spec/wdp-ud 3.1: deliver to all attached QPs ... except the sender itself (same IP and QPN).
  if (ud.multicast() && how.from_own_address && ud.source == parameters_.own_qpn) {
    return fail(WdpDrop::own_multicast);
  }
  if (ud.q_key != parameters_.q_key) return fail(WdpDrop::wrong_q_key);
  if (!next_receive()) return fail(WdpDrop::no_receive);
  // "Too long for WQE: ... drop silently, counter." The receive is there for the next one.
  const Bytes payload = datagram.subspan(WdpUd::kSize);
  const size_t length = Grh::kSize + payload.size();
  if (length > receive_->length) return fail(WdpDrop::receive_too_small);
  std::array<std::byte, Grh::kSize> grh;
  Grh{.traffic_class = how.traffic_class,
      .payload_length = static_cast<uint16_t>(payload.size()),
      .hop_limit = how.hop_limit,
      .source = how.from.address,
      .destination = how.to}
      .encode(grh.data());
  PieceList places;
  has_receive_ = false;
  if (!receive_pieces(consumer_.memory(), *receive_, 0, length, places).ok()) {
    consumer_.receive_done(*receive_, Status::local_protection, {.multicast = ud.multicast()});
    return fail(WdpDrop::own_memory);
  }
  if (!place(grh, payload, places)) {
    consumer_.receive_done(*receive_, Status::local_protection, {.multicast = ud.multicast()});
    return fail(WdpDrop::own_memory);
  }
  ++counters_.messages_received;
  consumer_.receive_done(*receive_, Status::success,
                         {.solicited = ud.solicited,
                          .has_immediate = ud.flags.immediate,
                          .multicast = ud.multicast(),
                          .length = static_cast<uint32_t>(length),
                          .immediate = ud.flags.immediate ? ud.imm : 0,
                          .source = ud.source,
                          .from = how.from});
  return Ok{};
}

std::optional<work::Receive> UdQueue::abandon_receive() {
  if (!std::exchange(has_receive_, false)) return {};
  return *receive_;
}

// --- datagrams out

bool UdQueue::ready(Time) {
  return may_send();
}

void UdQueue::fill(Train& train, Time) {
  while (may_send() && write(queue_.at(next_), train)) {
  }
}

// False when the train takes no more, or the request is at fault.
bool UdQueue::write(SendWqe& w, Train& train) {
  const bool immediate = w.operation == Operation::send_immediate;
  if (w.operation != Operation::send && !immediate) {
    poison(Status::local_qp_operation);
    return false;
  }
  const auto found = consumer_.destination(w);
  if (!found.ok()) {
    poison(found.error());
    return false;
  }
  const UdDestination* const to = *found;
  const size_t size = size_t{WdpUd::kSize} + w.length;
  if (size > std::min(to->room, wire::kMaxUdpPayload)) {
    poison(Status::local_length);
    return false;
  }
  if (!train.takes(size, to->path)) return false;
  PieceList pieces;
  if (!local_pieces(consumer_.memory(), w, 0, w.length, Access::local_read, pieces).ok()) {
    poison(Status::local_protection);
    return false;
  }
  const QKey key = (to->q_key.value() & kOwnQKey) != 0 ? parameters_.q_key : to->q_key;
  // With CRC all are copied: what was summed has to be what leaves, whatever the program writes
  // there meanwhile.
  const bool copies = parameters_.crc || w.length < Train::kCopyBelow;
  const size_t staged = WdpUd::kSize + (copies ? w.length : 0);
  std::byte* const header = train.stage(staged);
  WdpUd{.flags = {.crc = parameters_.crc, .immediate = immediate},
        .q_key = key,
        .source = parameters_.own_qpn,
        .destination = to->qpn,
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
  train.begin(size, to->path);
  msn_ = next(msn_);
  ++counters_.messages_sent;
  ++next_;
  return true;
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
  while (queue_.head() < llp_took_) {
    SendWqe& w = queue_.at(queue_.head());
    consumer_.send_done(w, Status::success);
    queue_.free_head();
  }
  if (!poison_ || failed_ || queue_.head() != next_) return;
  failed_ = true;
  queue_.at(next_).status = *poison_;
  consumer_.send_failed();
}

void UdQueue::resume() {
  poison_.reset();
  failed_ = false;
  next_ = llp_took_ = queue_.head();
}

void UdQueue::own_memory_lost(Time) {
  if (llp_took_ >= queue_.tail()) return;
  next_ = llp_took_;
  poison(Status::local_protection);
}

}  // namespace weft::wdp
