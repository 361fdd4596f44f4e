// Data header of WDP, UC (class 1) and RD (class 3): spec/wdp-uc 2.1. One datagram is one DDP
// segment.
//
//    0        1         2        3        4               8               12
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//   | 0xD1   |1, 3|CIAR| didx   | sidx   | token         | PSN (RD: CSN) | CRC32C or 0   |
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//    16                          20              24              28    29    30
//   +---------------------------+---------------+---------------+-----+-----+------------+
//   | MSN                       | MO            | MLEN          | DDP |RDMAP| STRIDE     |
//   +---------------------------+---------------+---------------+-----+-----+------------+
//    32                          36              40                                     48
//   +---------------------------+---------------+----------------------------------------+
//   | STag                      | IMM or RID    | TO                                     | payload
//   +---------------------------+---------------+----------------------------------------+
//
//        DDP: |T|L|S|F|R|0|DV |   S: SE, F: flow open    RDMAP: |RV | rsvd| opcode  |
//                                 R: response wanted
//
// MO, MLEN and STRIDE stand in every segment, so that any one of them tells how many there are and
// which one it is. Reserved bits are sent 0 and ignored on receive.
#pragma once

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "wire/opcode.h"
#include "wire/wdp_common.h"

namespace weft::wire {

struct WdpData {
  static constexpr size_t kSize = 48;
  static constexpr uint16_t kMaxStride = 65456;

  WdpClass wdp_class = WdpClass::uc;  // uc or rd
  WdpFlags flags;
  uint8_t didx = 0;
  uint8_t sidx = 0;
  SessionToken token;
  Psn psn;  // +1 per datagram; on an RD channel the CSN
  Msn msn;
  MessageOffset mo;       // of this payload; in a Read Request where the wanted range begins
  uint32_t mlen = 0;      // whole message; in a Read Request and its response the whole Read
  bool last = false;      // L
  bool write_se = false;  // SE: solicited event of a Write with immediate
  // RD: nothing of the flow is unanswered before this message; one after a refusal says so, too.
  bool flow_open = false;
  bool wants_response = false;  // RD: of a queue pair of type RD, which waits for an answer
  Opcode opcode{};              // legal in its class, after parse()
  uint16_t stride = 0;          // payload of every segment but the last; Read Request: wish, 0 any
  Stag stag;                    // target of a Write, source of a Read or Atomic, or to invalidate
  uint32_t imm_or_read = 0;     // IMM with F_IMM, RID of Read and Atomic
  TaggedOffset to;              // of this segment; of the whole Read in its request

  // Takes the whole datagram, for its length is among the hard checks of spec/wdp-uc 2.3; all of
  // them are made here. F_CRC is not looked at: see wdp_crc.h.
  static Result<WdpData, WdpDrop> parse(Bytes datagram);
  // The same where `common` was parsed already, and of the datagram's `size` bytes the first kLook
  // are in one place, or all.
  static constexpr size_t kLook = 56;
  static Result<WdpData, WdpDrop> parse(const WdpCommon& common, Bytes front, size_t size);
  // The same into an object that is there. Where it fails, nothing of it counts.
  Result<Ok, WdpDrop> read(const WdpCommon& common, Bytes front, size_t size);
  // The fields alone, of kSize bytes that read() has found right.
  void decode(const WdpCommon& common, const std::byte* p);
  // Writes kSize bytes, the CRC field as 0.
  void encode(std::byte* p) const;
  std::string to_string() const;
  friend constexpr bool operator==(const WdpData&, const WdpData&) = default;

  bool has_immediate() const {
    return flags.immediate && (opcode == Opcode::write || is_send(opcode));
  }
  bool solicited() const {
    return is_solicited(opcode) || (opcode == Opcode::write && flags.immediate && write_se);
  }
  ReadId read_id() const { return ReadId{imm_or_read}; }
  // RD: the Q_Key rides in the upper half of a Send's TO (spec/wdp-rd 3).
  QKey q_key() const { return QKey{static_cast<uint32_t>(to.value() >> 32)}; }

  // RD: the message of this MSN ends here, unfinished: its sender has given it up
  // (spec/wdp-rd 6.3). Else opcode 7 is a RESP.
  bool is_end() const { return opcode == Opcode::terminate && didx != kPortIndex; }

  // RD: answers a Read or an atomic, or is the END of such an answer. A flow of its own.
  bool is_response() const {
    return opcode == Opcode::read_response || opcode == Opcode::atomic_response ||
           (is_end() && !wants_response);
  }
  // RD: between queue pairs of type RD; else of UD, or of a connection (spec/wdp-rd 3, 7).
  bool is_of_rd() const {
    return wants_response || is_response() || (opcode != Opcode::send && opcode != Opcode::send_se);
  }

  // Place in the message, known from any segment (spec/wdp-uc 2.2). A Read Request is one segment,
  // whatever its STRIDE.
  uint32_t segment_count() const {
    if (opcode == Opcode::read_request || is_end() || mlen <= stride) return 1;
    return mlen / stride + (mlen % stride != 0 ? 1 : 0);
  }
  uint32_t segment_index() const {
    return opcode == Opcode::read_request || is_end() ? 0 : mo.value() / stride;
  }
  // Bytes behind the header.
  uint32_t payload_size() const;
};

// Opcodes that a class has (spec/wdp-uc 2.2, spec/wdp-rd 6): Atomics and RESP, which is opcode 7,
// are RD's.
bool wdp_has_opcode(WdpClass c, Opcode op);

// The largest STRIDE with which a segment fits into UDP datagrams of `udp_payload` bytes: a
// multiple of 16, 0 where none fits (spec/wdp-uc 2.4).
constexpr uint16_t wdp_stride(size_t udp_payload) {
  if (udp_payload < WdpData::kSize) return 0;
  const size_t most = (udp_payload - WdpData::kSize) & ~size_t{15};
  return static_cast<uint16_t>(std::min<size_t>(most, WdpData::kMaxStride));
}

}  // namespace weft::wire
