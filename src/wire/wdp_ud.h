// UD header of WDP, class 2 (spec/wdp-ud 2). One message is one datagram.
//
//    0        1         2        3        4               8               12
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//   | 0xD1   | 2  |CI..| didx   | sidx   | Q_Key         | source QPN    | CRC32C or 0   |
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//    16                          20              24    25    26           28             32
//   +---------------------------+---------------+-----+-----+------------+---------------+
//   | QN: destination QPN       | MSN           | DDP |RDMAP| length     | IMM           | payload
//   +---------------------------+---------------+-----+-----+------------+---------------+
//
// DDP is 0x41, RDMAP 0x43 or, with a solicited event, 0x45. Reserved bits, and the upper 8 of a
// QPN, are sent 0 and ignored on receive.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "wire/wdp_common.h"

namespace weft::wire {

inline constexpr Qpn kMulticastQpn{0xffffff};

struct WdpUd {
  static constexpr size_t kSize = 32;

  WdpFlags flags;  // F_CRC and F_IMM
  QKey q_key;
  Qpn source;       // its index is also sidx
  Qpn destination;  // its index is also didx; kMulticastQpn
  Msn msn;          // for diagnosis alone
  bool solicited = false;
  uint16_t length = 0;  // of the payload
  uint32_t imm = 0;     // with F_IMM

  // Takes the whole datagram, for its length is checked. F_CRC is not looked at: see wdp_crc.h.
  static Result<WdpUd, WdpDrop> parse(Bytes datagram);
  // The same where its first bytes have been parsed already.
  static Result<WdpUd, WdpDrop> parse(const WdpCommon& common, Bytes datagram);
  // Writes kSize bytes, the CRC field as 0.
  void encode(std::byte* p) const;
  std::string to_string() const;
  friend constexpr bool operator==(const WdpUd&, const WdpUd&) = default;

  bool multicast() const { return destination == kMulticastQpn; }
};

}  // namespace weft::wire
