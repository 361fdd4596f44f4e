// The cookie of a WDP listener that keeps no state (spec/wdp 4.4): SipHash over what names
// the handshake. Only the listener that made it reads it, so the layout is its own affair.
//
//    0                        16          18                22                26
//   +------------------------+-----------+-----------------+-----------------+
//   | source address as GID  | UDP port  | source token    | XID             |
//   +------------------------+-----------+-----------------+-----------------+
#pragma once

#include <array>

#include "base/bytes.h"
#include "base/gid.h"
#include "base/types.h"

namespace weft::wire {

// Random bytes of the listener. It changes them every 30 s and accepts cookies of the last two.
using CookieSecret = std::array<std::byte, 16>;

// Whom a cookie is for: the same for every repetition of a REQ.
struct CookieSubject {
  static constexpr size_t kSize = 26;
  Gid address;
  uint16_t port = 0;
  SessionToken token;  // the one that the REQ announces
  Xid xid;

  void encode(std::byte* p) const;
};

// Never 0, for that is how a REQ says that it has none.
HandshakeCookie make_cookie(const CookieSecret& secret, const CookieSubject& subject);

// SipHash-2-4, 64 bits: a short keyed hash that cannot be forged without the key.
uint64_t siphash24(const CookieSecret& key, Bytes message);

}  // namespace weft::wire
