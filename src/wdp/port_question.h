// What asks a UDP port whether anybody is there, and means nothing else: a KA of a channel that
// nobody has. A port of weft answers DREP (spec/wdp-rd 2.4).
#pragma once

#include <vector>

#include "base/random.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

// Throws std::bad_alloc.
inline std::vector<std::byte> port_question(Random& random) {
  const auto some_token = [&] { return SessionToken{static_cast<uint32_t>(random.next() | 1U)}; };
  const wire::WdpCtl ka{.type = wire::CtlType::ka,
                        .token = some_token(),
                        .source_token = some_token(),
                        .service = wire::CtlService::rd_channel};
  std::vector<std::byte> bytes(ka.size());
  ka.encode(bytes.data());
  return bytes;
}

}  // namespace weft::wdp
