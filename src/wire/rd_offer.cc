#include "wire/rd_offer.h"

#include "wire/wdp_common.h"

namespace weft::wire {

std::optional<RdOffer> RdOffer::parse(const std::byte* p) {
  if (load_be<uint16_t>(p) != kVersion) return {};
  const uint32_t number = load_be<uint32_t>(p + 4);
  if (number > 0xffffff) return {};
  const RdOffer o{
      .qpn = Qpn{number}, .session = load_be<uint32_t>(p + 8), .room = load_be<uint16_t>(p + 2)};
  if (port_of(o.qpn) == 0 || !is_queue_pair(index_of(o.qpn))) return {};
  return o;
}

void RdOffer::encode(std::byte* p) const {
  std::memset(p, 0, kSize);
  store_be(p, kVersion);
  store_be(p + 2, room);
  store_be(p + 4, qpn.value());
  store_be(p + 8, session);
}

}  // namespace weft::wire
