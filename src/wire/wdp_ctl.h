// CTL, class 0: set-up, teardown, keepalive and path MTU probes of WDP (spec/wdp 3).
//
//    0        1         2        3        4               8    9    10         12
//   +--------+----+----+--------+--------+---------------+----+----+----------+---------------+
//   | 0xD1   | 0  |C...| didx   | sidx   | token         |type|att.| length   | CRC32C        |
//   +--------+----+----+--------+--------+---------------+----+----+----------+---------------+
//    16                          20              24              28             32   33
//   +---------------------------+---------------+---------------+--------------+----+----+-----
//   | source token              | source QPN    | dest. QPN     | XID          |svc.|mode| ..
//   +---------------------------+---------------+---------------+--------------+----+----+-----
//    34     36     38            40              44              48             56     58     60
//   -+------+------+------------+---------------+---------------+--------------+------+------+---
//    | IRD  | ORD  | max payload| first PSN     | features      | cookie (64)  |PDLEN |TLVLEN| ..
//   -+------+------+------------+---------------+---------------+--------------+------+------+---
//    60                          64
//   +---------------------------+-------------------------------+--------------------+-----------
//   | reason                    | the type's own: 0 to 48 bytes | private data, pad4 | TLVs, zeros
//   +---------------------------+-------------------------------+--------------------+-----------
//
// Reserved bits are sent 0 and ignored on receive. The CRC is always there.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "wire/terminate.h"
#include "wire/wdp_common.h"
#include "wire/wdp_tlv.h"

namespace weft::wire {

enum class CtlType : uint8_t {
  req = 1,     // active side, from its data socket; 256 bytes at least
  rep = 2,     // passive side accepts
  rtu = 3,     // active side, completes
  rej = 4,     // with a reason
  cookie = 5,  // passive side, keeps no state: repeat the REQ with this cookie
  wait = 6,    // passive side: the application is deciding
  dreq = 7,    // ends the session
  drep = 8,    // answers DREQ
  ka = 9,      // keepalive
  kaa = 10,    // answers KA, with what was received
  probe = 11,  // as long as the path MTU that is tried
  probea = 12,
  err = 13,  // what a Terminate is on a stream, but nothing ends
};
const char* to_string(CtlType type);

enum class CtlService : uint8_t { uc = 1, rc_flow = 2, rd_channel = 3, ud_resolution = 4 };
const char* to_string(CtlService service);

enum class RejReason : uint32_t {
  no_listener = 1,
  application = 2,
  version = 3,
  service_mismatch = 4,
  no_resources = 5,
  bad_parameters = 6,
  critical_tlv = 7,
  not_ready = 8,
  role_conflict = 9,
  qpn_unknown = 10,
};
inline constexpr size_t kRejReasons = static_cast<size_t>(RejReason::qpn_unknown);
const char* to_string(RejReason reason);
// The enumerator's name, for counters. "?" for what is none.
const char* counter_name(RejReason reason);

// Of a channel (spec/wdp-rd 2.4); anything else is a number for the log.
enum class DreqReason : uint32_t {
  none = 0,
  idle = 1,  // what DREQ does not name was not taken, nor will be
};

struct CtlFeatures {
  bool data_crc = false;
  bool immediate = false;
  bool uc_read = false;
  bool atomics = false;
  bool ka_stats = false;
  bool responses = false;  // channels: queue pairs of type RD (spec/wdp-rd 6)
  bool starts = false;     // channels: connections of RC begin in them (spec/wdp-rd 7.5)

  static CtlFeatures from_bits(uint32_t bits);
  uint32_t bits() const;
  // spec/wdp 3.4: the AND of both counts, of data_crc the OR.
  static CtlFeatures agreed(CtlFeatures a, CtlFeatures b);
  friend constexpr bool operator==(const CtlFeatures&, const CtlFeatures&) = default;
};

struct WdpCtl {
  static constexpr size_t kSize = 64;  // without what follows the reason
  static constexpr size_t kMinRequest = 256;
  static constexpr size_t kMaxPrivateData = 512;
  static constexpr uint32_t kMaxWaitMs = 30'000;
  static constexpr size_t kOffendingSize = 48;

  CtlType type{};
  uint8_t attempt = 0;
  uint8_t didx = 0;
  uint8_t sidx = 0;
  SessionToken token;  // the receiver's; none in a REQ
  // The whole UDP payload. encode() adds zeros up to it (PROBE) and sends more where the parts, or
  // a REQ, need more.
  uint16_t length = 0;
  SessionToken source_token;  // what the peer is to use from now on
  Qpn source;
  Qpn destination;       // 0: the listener on that port
  Xid xid;               // KA: the sender's clock in ms
  CtlService service{};  // may hold values that are no CtlService
  bool ib_style = false;
  uint16_t ird = 0;
  uint16_t ord = 0;
  uint16_t max_payload = 0;  // of UDP, that the sender can receive; PROBEA: the size that came
  Psn first_psn;             // that the sender will use; REP of ud_resolution: see q_key()
  CtlFeatures features;
  HandshakeCookie cookie;
  uint32_t reason = 0;  // REJ: RejReason; WAIT: ms; DREQ: DreqReason; ERR: error()
  Bytes private_data;   // in the datagram that was parsed
  Bytes tlvs;           // whole ones, as parse() has seen; WdpTlv::take() takes them apart

  // The type's own.
  Psn highest_psn;          // DREQ, KA: sent; KAA: seen
  uint32_t received = 0;    // KAA: datagrams
  uint32_t duplicates = 0;  // KAA: of these, dropped as such
  Bytes offending;          // ERR: kOffendingSize bytes of the header that was wrong

  // Takes the whole datagram, checks its CRC, its length and that its parts fit.
  static Result<WdpCtl, WdpDrop> parse(Bytes datagram);
  // The same where its first bytes have been parsed already.
  static Result<WdpCtl, WdpDrop> parse(const WdpCommon& common, Bytes datagram);
  // Writes size() bytes, CRC and all, and returns their number.
  size_t encode(std::byte* p) const;
  size_t size() const;
  std::string to_string() const;

  QKey q_key() const { return QKey{first_psn.value()}; }
  // Of ERR. Layers that do not exist read as RDMAP, as in a Terminate.
  TermError error() const;

  // Bytes that a type has between reason and private data.
  static size_t own_size(CtlType type);
};

// The XID of a REQ in another version of WDP, to be answered by REJ in this one (spec/wdp 6.1).
// Nothing when the datagram is something else, or too short to be answered by 64 bytes.
std::optional<Xid> other_version_request(Bytes datagram);

}  // namespace weft::wire
