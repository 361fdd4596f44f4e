#include "wire/wdp_data.h"

#include <cstdio>

#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"
#include "wire/wdp_messages.h"

namespace weft::wire {
namespace {

constexpr uint8_t kTagged = 0x80;
constexpr uint8_t kLast = 0x40;
constexpr uint8_t kWriteSe = 0x20;
constexpr uint8_t kFlowOpen = 0x10;
constexpr uint8_t kWantsResponse = 0x08;

// Messages that have one length, or whole records, and are not segmented: Atomics (spec/wdp-uc 2.2:
// Atomic Request: 100) and RESP (spec/wdp-rd 3).
bool legal_message_length(const WdpData& d) {
  switch (d.opcode) {
    case Opcode::atomic_request:
      return d.mlen == AtomicRequest::kSize && d.mlen <= d.stride;
    case Opcode::atomic_response:
      return d.mlen == AtomicResponse::kSize && d.mlen <= d.stride;
    case Opcode::terminate:
      return d.mlen % WdpResponse::kSize == 0 && d.mlen <= d.stride;
    default:
      return true;
  }
}

// spec/wdp-uc 2.3, 5.3: one datagram of 56 bytes, L set; STRIDE may be 0 and MO any place in the
// Read from which the range does not leave it. Only a Read of nothing has an empty range.
Result<Ok, WdpDrop> check_read_request(const WdpData& d, Bytes front, size_t size) {
  static_assert(WdpData::kLook == WdpData::kSize + WdpReadRange::kSize);
  if (size != WdpData::kLook || front.size() < size) return fail(WdpDrop::length_mismatch);
  if (!d.last) return fail(WdpDrop::last_mismatch);
  const auto range = WdpReadRange::parse(front.data() + WdpData::kSize);
  const uint64_t end = uint64_t{d.mo.value()} + range.length;
  if (end > d.mlen || (range.length == 0 && d.mlen != 0)) return fail(WdpDrop::read_range);
  return Ok{};
}

// spec/wdp-rd 6.3: the header alone, in place of a segment.
Result<Ok, WdpDrop> check_end(const WdpData& d, size_t size) {
  if (size != WdpData::kSize) return fail(WdpDrop::length_mismatch);
  if (!d.last) return fail(WdpDrop::last_mismatch);
  if (d.stride == 0) return fail(WdpDrop::bad_stride);
  if (d.mo.value() % d.stride != 0) return fail(WdpDrop::misaligned_offset);
  if (d.mlen != 0) return fail(WdpDrop::message_length);
  return Ok{};
}

Result<Ok, WdpDrop> check_geometry(const WdpData& d, size_t size) {
  const uint32_t mo = d.mo.value();
  if (d.stride == 0) return fail(WdpDrop::bad_stride);
  // Most messages are one segment, and a division takes as long as all other checks.
  if (mo != 0 && mo % d.stride != 0) return fail(WdpDrop::misaligned_offset);
  if (mo >= d.mlen && (mo != 0 || d.mlen != 0)) return fail(WdpDrop::offset_beyond_message);
  if (!legal_message_length(d)) return fail(WdpDrop::message_length);
  const uint32_t n = d.payload_size();
  if (size != WdpData::kSize + n) return fail(WdpDrop::length_mismatch);
  if (d.last != (uint64_t{mo} + n == d.mlen)) return fail(WdpDrop::last_mismatch);
  return Ok{};
}

}  // namespace

bool wdp_has_opcode(WdpClass c, Opcode op) {
  switch (op) {
    case Opcode::write:
    case Opcode::read_request:
    case Opcode::read_response:
    case Opcode::send:
    case Opcode::send_inv:
    case Opcode::send_se:
    case Opcode::send_se_inv:
      return c == WdpClass::uc || c == WdpClass::rd;
    case Opcode::terminate:
    case Opcode::atomic_request:
    case Opcode::atomic_response:
      return c == WdpClass::rd;
    default:
      return false;
  }
}

Result<WdpData, WdpDrop> WdpData::parse(Bytes datagram) {
  const auto common = WdpCommon::parse(datagram);
  if (!common) return fail(common.error());
  return parse(*common, datagram, datagram.size());
}

Result<WdpData, WdpDrop> WdpData::parse(const WdpCommon& common, Bytes front, size_t size) {
  WdpData d;
  if (const auto v = d.read(common, front, size); !v.ok()) return fail(v.error());
  return d;
}

Result<Ok, WdpDrop> WdpData::read(const WdpCommon& common, Bytes front, size_t size) {
  if (common.wdp_class != WdpClass::uc && common.wdp_class != WdpClass::rd) {
    return fail(WdpDrop::wrong_class);
  }
  if (front.size() < kSize) return fail(WdpDrop::too_short);
  decode(common, front.data());
  const auto ddp = std::to_integer<uint8_t>(front[28]);
  const auto rdmap = std::to_integer<uint8_t>(front[29]);
  if ((ddp & 3) != kDdpVersion) return fail(WdpDrop::ddp_version);
  if (rdmap >> 6 != kRdmapVersion) return fail(WdpDrop::rdmap_version);
  if (!wdp_has_opcode(wdp_class, opcode)) return fail(WdpDrop::bad_opcode);
  if (((ddp & kTagged) != 0) != is_tagged(opcode)) return fail(WdpDrop::tag_mismatch);
  if (stride > kMaxStride) return fail(WdpDrop::bad_stride);
  // spec/wdp-rd 6: RESP belongs to the channel, END to a flow.
  if (opcode == Opcode::terminate && (didx == kPortIndex) != (sidx == kPortIndex)) {
    return fail(WdpDrop::index_mismatch);
  }
  const auto good = opcode == Opcode::read_request ? check_read_request(*this, front, size)
                    : is_end()                     ? check_end(*this, size)
                                                   : check_geometry(*this, size);
  return good;
}

void WdpData::decode(const WdpCommon& common, const std::byte* p) {
  const auto ddp = std::to_integer<uint8_t>(p[28]);
  const auto rdmap = std::to_integer<uint8_t>(p[29]);
  wdp_class = common.wdp_class;
  flags = common.flags;
  didx = common.didx;
  sidx = common.sidx;
  token = common.token;
  psn = Psn{common.class_word};
  msn = Msn{load_be<uint32_t>(p + 16)};
  mo = MessageOffset{load_be<uint32_t>(p + 20)};
  mlen = load_be<uint32_t>(p + 24);
  last = (ddp & kLast) != 0;
  write_se = (ddp & kWriteSe) != 0;
  flow_open = (ddp & kFlowOpen) != 0;
  wants_response = wdp_class == WdpClass::rd && (ddp & kWantsResponse) != 0;
  opcode = static_cast<Opcode>(rdmap & 0x0f);
  stride = load_be<uint16_t>(p + 30);
  stag = Stag{load_be<uint32_t>(p + 32)};
  imm_or_read = load_be<uint32_t>(p + 36);
  to = TaggedOffset{load_be<uint64_t>(p + 40)};
}

void WdpData::encode(std::byte* p) const {
  WdpCommon{wdp_class, flags, didx, sidx, token, psn.value()}.encode(p);
  store_be(p + 16, msn.value());
  store_be(p + 20, mo.value());
  store_be(p + 24, mlen);
  p[28] = static_cast<std::byte>((is_tagged(opcode) ? kTagged : 0) | (last ? kLast : 0) |
                                 (write_se ? kWriteSe : 0) | (flow_open ? kFlowOpen : 0) |
                                 (wants_response ? kWantsResponse : 0) | kDdpVersion);
  p[29] = static_cast<std::byte>(kRdmapVersion << 6 | static_cast<uint8_t>(opcode));
  store_be(p + 30, stride);
  store_be(p + 32, stag.value());
  store_be(p + 36, imm_or_read);
  store_be(p + 40, to.value());
}

uint32_t WdpData::payload_size() const {
  if (opcode == Opcode::read_request) return WdpReadRange::kSize;
  if (is_end()) return 0;
  return std::min<uint32_t>(stride, mlen - mo.value());
}

std::string WdpData::to_string() const {
  char text[320];
  std::snprintf(
      text, sizeof text,
      "%s %s%s%s%s%s%s: from %u to %u token 0x%08x PSN %u MSN %u MO %u of %u stride %u STag 0x%08x "
      "%s 0x%08x TO 0x%llx%s%s%s",
      wire::to_string(wdp_class),
      is_end()                      ? "END"
      : opcode == Opcode::terminate ? "RESP"
                                    : wire::to_string(opcode),
      has_immediate() ? " with immediate" : "", last ? ", last" : "",
      opcode == Opcode::write && solicited() ? ", SE" : "", flow_open ? ", flow open" : "",
      wants_response ? ", response wanted" : "", sidx, didx, token.value(), psn.value(),
      msn.value(), mo.value(), mlen, stride, stag.value(), has_immediate() ? "IMM" : "RID",
      imm_or_read, static_cast<unsigned long long>(to.value()), flags.crc ? ", CRC" : "",
      flags.ack_requested ? ", ACKREQ" : "", flags.retransmission ? ", RETX" : "");
  return text;
}

}  // namespace weft::wire
