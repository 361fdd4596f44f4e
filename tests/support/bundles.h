// Whether a bundle is right, for who wants nothing of what is in it.
#pragma once

#include <optional>

#include "wire/wdp_bundle.h"

namespace weft::test {

inline Result<Ok, wire::WdpDrop> check_bundle(const wire::WdpCommon& common, Bytes datagram) {
  std::optional<wire::WdpAck> ack;
  return wire::WdpBundle::read(
      common, datagram, [](const wire::WdpData&, Bytes) {}, ack);
}

}  // namespace weft::test
