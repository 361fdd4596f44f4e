#include "wire/wdp_ud.h"

#include <cstdio>

#include "wire/ddp_header.h"
#include "wire/opcode.h"

namespace weft::wire {
namespace {
constexpr uint32_t kQpnMask = 0xffffff;
}  // namespace

Result<WdpUd, WdpDrop> WdpUd::parse(Bytes datagram) {
  const auto common = WdpCommon::parse(datagram);
  if (!common) return fail(common.error());
  return parse(*common, datagram);
}

Result<WdpUd, WdpDrop> WdpUd::parse(const WdpCommon& common, Bytes datagram) {
  if (common.wdp_class != WdpClass::ud) return fail(WdpDrop::wrong_class);
  if (datagram.size() < kSize) return fail(WdpDrop::too_short);
  const std::byte* p = datagram.data();
  const Control control = Control::parse(p + 24);
  if (control.ddp_version != kDdpVersion) return fail(WdpDrop::ddp_version);
  if (control.rdmap_version != kRdmapVersion) return fail(WdpDrop::rdmap_version);
  if (control.opcode != Opcode::send && control.opcode != Opcode::send_se) {
    return fail(WdpDrop::bad_opcode);
  }
  if (control.tagged) return fail(WdpDrop::tag_mismatch);
  if (!control.last) return fail(WdpDrop::last_mismatch);
  WdpUd u;
  u.flags = {.crc = common.flags.crc, .immediate = common.flags.immediate};
  u.q_key = QKey{common.token.value()};
  u.source = Qpn{common.class_word & kQpnMask};
  u.destination = Qpn{load_be<uint32_t>(p + 16) & kQpnMask};
  u.msn = Msn{load_be<uint32_t>(p + 20)};
  u.solicited = control.opcode == Opcode::send_se;
  u.length = load_be<uint16_t>(p + 26);
  u.imm = load_be<uint32_t>(p + 28);
  if (datagram.size() != kSize + u.length) return fail(WdpDrop::length_mismatch);
  // spec/wdp-ud 2: didx and QN low byte must agree, else drop.
  if (common.didx != index_of(u.destination)) return fail(WdpDrop::index_mismatch);
  return u;
}

void WdpUd::encode(std::byte* p) const {
  WdpCommon{.wdp_class = WdpClass::ud,
            .flags = {.crc = flags.crc, .immediate = flags.immediate},
            .didx = index_of(destination),
            .sidx = index_of(source),
            .token = SessionToken{q_key.value()},
            .class_word = source.value()}
      .encode(p);
  store_be(p + 16, destination.value());
  store_be(p + 20, msn.value());
  Control{.last = true, .opcode = solicited ? Opcode::send_se : Opcode::send}.encode(p + 24);
  store_be(p + 26, length);
  store_be(p + 28, imm);
}

std::string WdpUd::to_string() const {
  char text[192];
  std::snprintf(text, sizeof text,
                "UD Send%s%s%s: from QPN 0x%06x to 0x%06x Q_Key 0x%08x MSN %u length %u IMM 0x%08x",
                flags.immediate ? " with immediate" : "", solicited ? ", SE" : "",
                flags.crc ? ", CRC" : "", source.value(), destination.value(), q_key.value(),
                msn.value(), length, imm);
  return text;
}

}  // namespace weft::wire
