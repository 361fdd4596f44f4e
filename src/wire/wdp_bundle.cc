#include "wire/wdp_bundle.h"

namespace weft::wire {

Result<Bytes, WdpDrop> WdpBundle::take(Bytes& rest) {
  if (rest.size() < kFrame) return fail(WdpDrop::length_mismatch);
  const size_t size = load_be<uint16_t>(rest.data());
  if (size > rest.size() - kFrame) return fail(WdpDrop::length_mismatch);
  const Bytes part = rest.subspan(kFrame, size);
  rest = rest.subspan(kFrame + size);
  return part;
}

}  // namespace weft::wire
