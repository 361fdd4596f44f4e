// The numbers of RDMA, each a type of its own. Names are those of RFC 5040 and RFC 5041.
#pragma once

#include <cstdint>

#include "base/strong.h"

namespace weft {

// Steering tag (RFC 5041 section 2.3): 24-bit index, 8-bit key. Never 0 when issued by weft. As on
// InfiniBand one number serves as lkey and rkey.
using Stag = StrongNumber<struct StagTag, uint32_t>;

// Tagged offset of RFC 5041: where in the tagged buffer a byte goes.
using TaggedOffset = StrongNumber<struct TaggedOffsetTag, uint64_t>;

// Message sequence number of RFC 5041: counts messages of one untagged queue, from 1, modulo 2^32.
using Msn = StrongNumber<struct MsnTag, uint32_t>;

// Message offset of RFC 5041: place of a segment's payload in its untagged message.
using MessageOffset = StrongNumber<struct MessageOffsetTag, uint32_t>;

// Queue number of RFC 5041, RFC 5040 section 4.1 and RFC 7306.
using QueueNumber = StrongNumber<struct QueueNumberTag, uint32_t>;
inline constexpr QueueNumber kSendQueue{0};
inline constexpr QueueNumber kReadRequestQueue{1};
inline constexpr QueueNumber kTerminateQueue{2};
inline constexpr QueueNumber kAtomicResponseQueue{3};

// Queue pair number, 24 bits: port << 8 | index (spec/addressing 2.1).
using Qpn = StrongNumber<struct QpnTag, uint32_t>;

// Packet sequence number of WDP (spec/wdp 2.2), +1 per datagram of a session, modulo 2^32. An RD
// channel's is called CSN; it stands in the same field and has the same arithmetic.
using Psn = StrongNumber<struct PsnTag, uint32_t>;
using Csn = Psn;

// What a WDP receiver makes its peer put into every datagram (spec/wdp 2.2). 0 is none.
using SessionToken = StrongNumber<struct SessionTokenTag, uint32_t>;

// Names one WDP handshake, probe or keepalive (spec/wdp 3.1).
using Xid = StrongNumber<struct XidTag, uint32_t>;

// What a WDP listener gives out so that the next REQ proves its address (spec/wdp 4.4). 0 is none.
using HandshakeCookie = StrongNumber<struct HandshakeCookieTag, uint64_t>;

// RID: names a Read or Atomic of WDP (spec/wdp-uc 5.1, spec/wdp-rd 3).
using ReadId = StrongNumber<struct ReadIdTag, uint32_t>;

// Queue key of UD and RD (spec/wdp-ud 2, spec/wdp-rd 3).
using QKey = StrongNumber<struct QKeyTag, uint32_t>;

constexpr Msn next(Msn m) {
  return Msn{m.value() + 1};
}
constexpr Psn next(Psn p) {
  return Psn{p.value() + 1};
}
constexpr Psn operator+(Psn p, uint32_t n) {
  return Psn{p.value() + n};
}
// How far `to` is ahead of `from`, negative when it is behind: serial arithmetic modulo 2^32
// (spec/wdp 2.4). These numbers wrap, so that < says nothing about what came first.
constexpr int32_t distance(Psn from, Psn to) {
  return static_cast<int32_t>(to.value() - from.value());
}
constexpr int32_t distance(Msn from, Msn to) {
  return static_cast<int32_t>(to.value() - from.value());
}
constexpr TaggedOffset operator+(TaggedOffset to, uint64_t n) {
  return TaggedOffset{to.value() + n};
}
constexpr MessageOffset operator+(MessageOffset mo, uint32_t n) {
  return MessageOffset{mo.value() + n};
}

constexpr uint16_t port_of(Qpn q) {
  return static_cast<uint16_t>(q.value() >> 8);
}
constexpr uint8_t index_of(Qpn q) {
  return static_cast<uint8_t>(q.value());
}
constexpr Qpn make_qpn(uint16_t port, uint8_t index) {
  return Qpn{static_cast<uint32_t>(port) << 8 | index};
}

}  // namespace weft
