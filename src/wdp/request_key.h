// What names a handshake that was asked for (spec/wdp 4.3: keys the half-open entry by (source IP,
// port, src token, XID)).
#pragma once

#include "wdp/endpoint.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

struct RequestKey {
  Endpoint from;
  SessionToken token;
  Xid xid;
  friend constexpr auto operator<=>(const RequestKey&, const RequestKey&) = default;
};

inline RequestKey key_of(const wire::WdpCtl& req, const Endpoint& from) {
  return {from, req.source_token, req.xid};
}

}  // namespace weft::wdp
