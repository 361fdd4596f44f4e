#include "wire/wdp_common.h"

#include <cstdio>

#include "wire/wdp_bundle.h"

namespace weft::wire {

const char* to_string(WdpClass c) {
  if (c == WdpBundle::kClass) return "bundle";
  switch (c) {
    case WdpClass::ctl:
      return "CTL";
    case WdpClass::uc:
      return "UC";
    case WdpClass::ud:
      return "UD";
    case WdpClass::rd:
      return "RD";
    case WdpClass::rd_ack:
      return "RDACK";
  }
  return "unknown class";
}

Result<WdpCommon, WdpDrop> WdpCommon::parse(Bytes datagram) {
  WdpCommon c;
  if (const auto v = c.read(datagram); !v.ok()) return fail(v.error());
  return c;
}

Result<Ok, WdpDrop> WdpCommon::read(Bytes datagram) {
  if (datagram.size() < kSize) return fail(WdpDrop::too_short);
  const std::byte* p = datagram.data();
  const auto magic = std::to_integer<uint8_t>(p[0]);
  if (magic >> 4 != kWdpMagic) return fail(WdpDrop::not_wdp);
  if ((magic & 0x0f) != kWdpVersion) return fail(WdpDrop::other_version);
  const auto second = std::to_integer<uint8_t>(p[1]);
  if (second >> 4 > static_cast<uint8_t>(WdpBundle::kClass)) return fail(WdpDrop::unknown_class);
  decode(p);
  return Ok{};
}

void WdpCommon::decode(const std::byte* p) {
  const auto second = std::to_integer<uint8_t>(p[1]);
  wdp_class = static_cast<WdpClass>(second >> 4);
  flags = WdpFlags::from_bits(second & 0x0f);
  didx = std::to_integer<uint8_t>(p[2]);
  sidx = std::to_integer<uint8_t>(p[3]);
  token = SessionToken{load_be<uint32_t>(p + 4)};
  class_word = load_be<uint32_t>(p + 8);
}

void WdpCommon::encode(std::byte* p) const {
  p[0] = static_cast<std::byte>(kWdpMagic << 4 | kWdpVersion);
  p[1] = static_cast<std::byte>(static_cast<uint8_t>(wdp_class) << 4 | flags.bits());
  p[2] = std::byte{didx};
  p[3] = std::byte{sidx};
  store_be(p + 4, token.value());
  store_be(p + 8, class_word);
  store_be<uint32_t>(p + 12, 0);
}

std::string WdpCommon::to_string() const {
  char text[128];
  std::snprintf(text, sizeof text, "%s from %u to %u token 0x%08x word 0x%08x%s%s%s%s",
                wire::to_string(wdp_class), sidx, didx, token.value(), class_word,
                flags.crc ? ", CRC" : "", flags.immediate ? ", IMM" : "",
                flags.ack_requested ? ", ACKREQ" : "", flags.retransmission ? ", RETX" : "");
  return text;
}

}  // namespace weft::wire
