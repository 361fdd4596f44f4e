#include "wire/wdp_tlv.h"

#include <algorithm>
#include <cstdio>

namespace weft::wire {
namespace {
constexpr uint16_t kCritical = 0x8000;
}  // namespace

Result<WdpTlv, WdpDrop> WdpTlv::take(Bytes& tlvs) {
  if (tlvs.size() < kHeaderSize) return fail(WdpDrop::bad_tlv);
  const auto type = load_be<uint16_t>(tlvs.data());
  const auto length = load_be<uint16_t>(tlvs.data() + 2);
  if (tlvs.size() - kHeaderSize < wdp_padded(length)) return fail(WdpDrop::bad_tlv);
  const WdpTlv t{.type = static_cast<uint16_t>(type & ~kCritical),
                 .critical = (type & kCritical) != 0,
                 .value = tlvs.subspan(kHeaderSize, length)};
  tlvs = tlvs.subspan(t.size());
  return t;
}

size_t WdpTlv::encode(std::byte* p) const {
  store_be(p, static_cast<uint16_t>((critical ? kCritical : 0) | (type & ~kCritical)));
  store_be(p + 2, static_cast<uint16_t>(value.size()));
  std::byte* const end = std::copy(value.begin(), value.end(), p + kHeaderSize);
  std::fill(end, p + size(), std::byte{0});
  return size();
}

std::string WdpTlv::to_string() const {
  char text[64];
  std::snprintf(text, sizeof text, "TLV %u%s, %zu bytes", type, critical ? " critical" : "",
                value.size());
  return text;
}

bool has_critical_tlv(Bytes tlvs) {
  while (!tlvs.empty()) {
    const auto tlv = WdpTlv::take(tlvs);
    if (!tlv.ok() || tlv->critical) return true;
  }
  return false;
}

}  // namespace weft::wire
