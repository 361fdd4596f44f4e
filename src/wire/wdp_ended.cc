#include "wire/wdp_ended.h"

namespace weft::wire {

std::array<std::byte, WdpEnded::kSize> WdpEnded::encode() const {
  std::array<std::byte, kValueSize> value{};
  store_be(value.data(), token.value());
  store_be(value.data() + 4, taken.value());
  std::array<std::byte, kSize> tlv{};
  (void)WdpTlv{.type = kType, .value = value}.encode(tlv.data());
  return tlv;
}

std::optional<WdpEnded> WdpEnded::find(Bytes tlvs) {
  while (!tlvs.empty()) {
    const auto tlv = WdpTlv::take(tlvs);
    if (!tlv.ok()) return std::nullopt;
    if (tlv->type != kType || tlv->value.size() != kValueSize) continue;
    return WdpEnded{.token = SessionToken{load_be<uint32_t>(tlv->value.data())},
                    .taken = Psn{load_be<uint32_t>(tlv->value.data() + 4)}};
  }
  return std::nullopt;
}

}  // namespace weft::wire
