#include "wire/wdp_bundle.h"

#include "wire/wdp_ack.h"
#include "wire/wdp_data.h"

namespace weft::wire {

Result<Bytes, WdpDrop> WdpBundle::take(Bytes& rest) {
  if (rest.size() < kFrame) return fail(WdpDrop::length_mismatch);
  const size_t size = load_be<uint16_t>(rest.data());
  if (size > rest.size() - kFrame) return fail(WdpDrop::length_mismatch);
  const Bytes part = rest.subspan(kFrame, size);
  rest = rest.subspan(kFrame + size);
  return part;
}

Result<Ok, WdpDrop> WdpBundle::check(const WdpCommon& common, Bytes datagram) {
  if (common.wdp_class != WdpBundle::kClass) return fail(WdpDrop::wrong_class);
  if (common.didx != kPortIndex || common.sidx != kPortIndex) return fail(WdpDrop::index_mismatch);
  Bytes rest = datagram.subspan(kSize);
  if (rest.empty()) return fail(WdpDrop::length_mismatch);
  while (!rest.empty()) {
    const auto part = take(rest);
    if (!part.ok()) return fail(part.error());
    const auto front = WdpCommon::parse(*part);
    if (!front.ok()) return fail(front.error());
    if (front->wdp_class == WdpClass::rd) {
      if (const auto d = WdpData::parse(*front, *part, part->size()); !d.ok()) {
        return fail(d.error());
      }
    } else if (front->wdp_class == WdpClass::rd_ack && rest.empty()) {
      if (const auto ack = WdpAck::parse(*part); !ack.ok()) return fail(ack.error());
    } else {
      return fail(WdpDrop::wrong_class);
    }
  }
  return Ok{};
}

}  // namespace weft::wire
