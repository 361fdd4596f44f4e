#include "wdp/rd_request.h"

#include <array>
#include <cstring>

#include "base/guarded.h"
#include "wdp/pieces.h"
#include "wire/rdmap_messages.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpData;
using work::Access;
using work::Operation;
using work::SendWqe;
using work::Status;

namespace {

bool says_immediate(Operation op) {
  return op == Operation::send_immediate || op == Operation::write_immediate;
}

void write_atomic_request(const SendWqe& w, Msn msn, std::byte* at) {
  const bool add = w.operation == Operation::fetch_add;
  using Code = wire::AtomicRequest::Code;
  wire::AtomicRequest{.code = add ? Code::fetch_add : Code::compare_swap,
                      .request_id = msn.value(),
                      .stag = w.remote_stag,
                      .to = w.remote_to,
                      .add_swap = add ? w.compare_add : w.swap,
                      .add_swap_mask = add ? 0 : ~uint64_t{0},
                      .compare = add ? 0 : w.compare_add,
                      .compare_mask = add ? 0 : ~uint64_t{0}}
      .encode(at);
}

}  // namespace

uint32_t message_length(const SendWqe& w) {
  return work::is_atomic(w.operation) ? uint32_t{wire::AtomicRequest::kSize} : w.length;
}

WdpData request_header(const SendWqe& w, const RdSegment& segment, const UdDestination& to,
                       QKey own_key) {
  const uint32_t length = message_length(w);
  WdpData d{.flags = {.immediate = says_immediate(w.operation)},
            .didx = segment.didx,
            .sidx = segment.sidx,
            .msn = segment.msn,
            .mo = MessageOffset{segment.offset},
            .mlen = length,
            .last = length - segment.offset <= segment.stride,
            .flow_open = segment.opens,
            .wants_response = true,
            .stride = segment.stride,
            .imm_or_read = says_immediate(w.operation) ? w.immediate : 0};
  switch (w.operation) {
    case Operation::write:
    case Operation::write_immediate:
      d.opcode = Opcode::write;
      d.write_se = w.solicited && d.flags.immediate;
      d.stag = w.remote_stag;
      d.to = w.remote_to + segment.offset;
      break;
    case Operation::read:
      d.opcode = Opcode::read_request;
      d.last = true;
      d.stag = w.remote_stag;
      d.to = w.remote_to;
      break;
    case Operation::fetch_add:
    case Operation::compare_swap:
      d.opcode = Opcode::atomic_request;
      break;
    default:
      d.opcode = w.solicited ? Opcode::send_se : Opcode::send;
      d.to = TaggedOffset{uint64_t{to.key(own_key).value()} << 32};
      break;
  }
  return d;
}

bool write_request(work::Memory& memory, SendWqe& w, const WdpData& header, std::byte* at) {
  if (w.operation == Operation::read) {
    wire::WdpReadRange{.length = w.length}.encode(at);
    return true;
  }
  if (work::is_atomic(w.operation)) {
    write_atomic_request(w, header.msn, at);
    return true;
  }
  PieceList pieces;
  if (!local_pieces(memory, w, header.mo.value(), header.payload_size(), Access::local_read, pieces)
           .ok()) {
    return false;
  }
  for (const IoVec& v : pieces.pieces()) {
    if (!copy_guarded(at, v.iov_base, v.iov_len)) return false;
    at += v.iov_len;
  }
  return true;
}

WdpData message_end(const RdSegment& segment) {
  return {.didx = segment.didx,
          .sidx = segment.sidx,
          .msn = segment.msn,
          .mo = MessageOffset{segment.offset},
          .last = true,
          .flow_open = segment.opens,
          .wants_response = true,
          .opcode = Opcode::terminate,
          .stride = segment.stride};
}

Msn answered_request(const WdpData& header, Bytes payload) {
  return Msn{header.opcode == Opcode::atomic_response
                 ? wire::AtomicResponse::parse(payload.data()).request_id
                 : header.read_id().value()};
}

bool answers(const WdpData& header, const SendWqe& w) {
  if (header.opcode == Opcode::atomic_response) return work::is_atomic(w.operation);
  return w.operation == Operation::read && header.mlen == w.length;
}

bool place_answer(work::Memory& memory, SendWqe& w, const WdpData& header, Bytes payload) {
  std::array<std::byte, work::kAtomicBytes> original;
  uint32_t offset = header.mo.value();
  if (header.opcode == Opcode::atomic_response) {
    // Bytes as this host has them: the target is a number of the other one's (spec/rdmap 1.7).
    const uint64_t value = wire::AtomicResponse::parse(payload.data()).original;
    std::memcpy(original.data(), &value, sizeof value);
    payload = original;
    offset = 0;
  }
  PieceList places;
  const auto size = static_cast<uint32_t>(payload.size());
  return local_pieces(memory, w, offset, size, Access::local_write, places).ok() &&
         place(payload, places);
}

Status status_of(wire::WdpResponse::Code code) {
  using Code = wire::WdpResponse::Code;
  switch (code) {
    case Code::not_ready:
    case Code::key:
      return Status::remote_invalid_rd_request;
    case Code::length:
      return Status::remote_invalid_request;
    case Code::access:
      return Status::remote_access;
    default:
      return Status::remote_operation;
  }
}

}  // namespace weft::wdp
