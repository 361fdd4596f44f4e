// The messages of a datagram of a channel: one, those of a bundle, or none.
#pragma once

#include <vector>

#include "tests/support/bundles.h"
#include "wire/wdp_bundle.h"
#include "wire/wdp_data.h"

namespace weft::test {

struct RdMessageSeen {
  wire::WdpData header;
  Bytes payload;  // in the datagram
};

inline std::vector<RdMessageSeen> messages_in(Bytes datagram) {
  std::vector<RdMessageSeen> all;
  const auto add = [&](Bytes bytes) {
    const auto d = wire::WdpData::parse(bytes);
    if (d.ok()) all.push_back({*d, bytes.subspan(wire::WdpData::kSize)});
  };
  const auto common = wire::WdpCommon::parse(datagram);
  if (!common.ok()) return all;
  if (common->wdp_class != wire::WdpBundle::kClass) {
    add(datagram);
  } else if (check_bundle(*common, datagram).ok()) {
    Bytes rest = datagram.subspan(wire::WdpBundle::kSize);
    while (!rest.empty()) add(*wire::WdpBundle::take(rest));
  }
  return all;
}
inline bool has_message(Bytes datagram, wire::Opcode opcode) {
  for (const auto& m : messages_in(datagram)) {
    if (m.header.opcode == opcode) return true;
  }
  return false;
}

}  // namespace weft::test
