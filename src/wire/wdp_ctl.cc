#include "wire/wdp_ctl.h"

#include <algorithm>

#include "wire/wdp_crc.h"

namespace weft::wire {
namespace {

constexpr uint32_t kQpnMask = 0xffffff;
constexpr uint8_t kIbStyle = 0x01;

bool known(CtlType type) {
  return type >= CtlType::req && type <= CtlType::err;
}

// Whoever accepts a session sends data to the token that is announced here; 0 is none. A UD
// resolution makes no session, so its REP need not announce one.
bool announces_token(const WdpCtl& c) {
  return c.type == CtlType::req ||
         (c.type == CtlType::rep && c.service != CtlService::ud_resolution);
}

// Splits what follows the reason: the type's own, private data, TLVs.
Result<Ok, WdpDrop> parse_parts(WdpCtl& c, Bytes datagram) {
  const size_t private_length = load_be<uint16_t>(datagram.data() + 56);
  const size_t tlv_length = load_be<uint16_t>(datagram.data() + 58);
  const size_t own = WdpCtl::own_size(c.type);
  if (private_length > WdpCtl::kMaxPrivateData) return fail(WdpDrop::private_data_too_long);
  Bytes rest = datagram.subspan(WdpCtl::kSize);
  if (own + wdp_padded(private_length) + tlv_length > rest.size()) {
    return fail(WdpDrop::parts_too_long);
  }
  const std::byte* p = rest.data();
  if (c.type == CtlType::err) {
    c.offending = rest.first(own);
  } else if (own != 0) {
    c.highest_psn = Psn{load_be<uint32_t>(p)};
  }
  if (c.type == CtlType::kaa) {
    c.received = load_be<uint32_t>(p + 4);
    c.duplicates = load_be<uint32_t>(p + 8);
  }
  rest = rest.subspan(own);
  c.private_data = rest.first(private_length);
  c.tlvs = rest.subspan(wdp_padded(private_length), tlv_length);
  for (Bytes left = c.tlvs; !left.empty();) {
    if (!WdpTlv::take(left)) return fail(WdpDrop::bad_tlv);
  }
  return Ok{};
}

}  // namespace

CtlFeatures CtlFeatures::from_bits(uint32_t bits) {
  return {.data_crc = (bits & 1) != 0,
          .immediate = (bits & 2) != 0,
          .uc_read = (bits & 4) != 0,
          .atomics = (bits & 8) != 0,
          .ka_stats = (bits & 16) != 0,
          .responses = (bits & 32) != 0,
          .starts = (bits & 64) != 0};
}

uint32_t CtlFeatures::bits() const {
  return (data_crc ? 1U : 0) | (immediate ? 2U : 0) | (uc_read ? 4U : 0) | (atomics ? 8U : 0) |
         (ka_stats ? 16U : 0) | (responses ? 32U : 0) | (starts ? 64U : 0);
}

CtlFeatures CtlFeatures::agreed(CtlFeatures a, CtlFeatures b) {
  CtlFeatures both = from_bits(a.bits() & b.bits());
  both.data_crc = a.data_crc || b.data_crc;
  return both;
}

size_t WdpCtl::own_size(CtlType type) {
  switch (type) {
    case CtlType::dreq:
    case CtlType::ka:
      return 4;
    case CtlType::kaa:
      return 12;
    case CtlType::err:
      return kOffendingSize;
    default:
      return 0;
  }
}

Result<WdpCtl, WdpDrop> WdpCtl::parse(Bytes datagram) {
  const auto common = WdpCommon::parse(datagram);
  if (!common) return fail(common.error());
  return parse(*common, datagram);
}

Result<WdpCtl, WdpDrop> WdpCtl::parse(const WdpCommon& common, Bytes datagram) {
  if (common.wdp_class != WdpClass::ctl) return fail(WdpDrop::wrong_class);
  if (datagram.size() < kSize) return fail(WdpDrop::too_short);
  // spec/wdp 2.3: Class CTL and RDACK: mandatory.
  if (!common.flags.crc) return fail(WdpDrop::crc_missing);
  if (!wdp_crc_matches(datagram)) return fail(WdpDrop::bad_crc);
  const std::byte* p = datagram.data();
  WdpCtl c;
  c.type = static_cast<CtlType>(p[8]);
  if (!known(c.type)) return fail(WdpDrop::unknown_ctl_type);
  c.attempt = std::to_integer<uint8_t>(p[9]);
  c.length = load_be<uint16_t>(p + 10);
  if (c.length != datagram.size()) return fail(WdpDrop::length_mismatch);
  // The answers may be three times as long (spec/threats 4), so a REQ must not be short.
  if (c.type == CtlType::req && c.length < kMinRequest) return fail(WdpDrop::request_not_padded);
  c.didx = common.didx;
  c.sidx = common.sidx;
  c.token = common.token;
  c.source_token = SessionToken{load_be<uint32_t>(p + 16)};
  c.source = Qpn{load_be<uint32_t>(p + 20) & kQpnMask};
  c.destination = Qpn{load_be<uint32_t>(p + 24) & kQpnMask};
  c.xid = Xid{load_be<uint32_t>(p + 28)};
  c.service = static_cast<CtlService>(p[32]);
  c.ib_style = (std::to_integer<uint8_t>(p[33]) & kIbStyle) != 0;
  c.ird = load_be<uint16_t>(p + 34);
  c.ord = load_be<uint16_t>(p + 36);
  c.max_payload = load_be<uint16_t>(p + 38);
  c.first_psn = Psn{load_be<uint32_t>(p + 40)};
  c.features = CtlFeatures::from_bits(load_be<uint32_t>(p + 44));
  c.cookie = HandshakeCookie{load_be<uint64_t>(p + 48)};
  c.reason = load_be<uint32_t>(p + 60);
  if (c.source_token == SessionToken{} && announces_token(c)) return fail(WdpDrop::zero_token);
  if (c.type == CtlType::wait && c.reason > kMaxWaitMs) return fail(WdpDrop::wait_too_long);
  const auto parts = parse_parts(c, datagram);
  if (!parts) return fail(parts.error());
  return c;
}

size_t WdpCtl::size() const {
  const size_t parts = kSize + own_size(type) + wdp_padded(private_data.size()) + tlvs.size();
  const size_t least = type == CtlType::req ? kMinRequest : 0;
  return std::max({parts, least, size_t{length}});
}

size_t WdpCtl::encode(std::byte* p) const {
  const size_t total = size();
  WdpCommon{.wdp_class = WdpClass::ctl,
            .flags = {.crc = true},
            .didx = didx,
            .sidx = sidx,
            .token = token,
            .class_word = static_cast<uint32_t>(static_cast<uint32_t>(type) << 24 |
                                                uint32_t{attempt} << 16 | total)}
      .encode(p);
  store_be(p + 16, source_token.value());
  store_be(p + 20, source.value());
  store_be(p + 24, destination.value());
  store_be(p + 28, xid.value());
  p[32] = static_cast<std::byte>(service);
  p[33] = static_cast<std::byte>(ib_style ? kIbStyle : 0);
  store_be(p + 34, ird);
  store_be(p + 36, ord);
  store_be(p + 38, max_payload);
  store_be(p + 40, first_psn.value());
  store_be(p + 44, features.bits());
  store_be(p + 48, cookie.value());
  store_be(p + 56, static_cast<uint16_t>(private_data.size()));
  store_be(p + 58, static_cast<uint16_t>(tlvs.size()));
  store_be(p + 60, reason);

  std::fill(p + kSize, p + total, std::byte{0});
  std::byte* const own = p + kSize;
  if (type == CtlType::err) {
    std::copy_n(offending.begin(), std::min(offending.size(), kOffendingSize), own);
  } else if (own_size(type) != 0) {
    store_be(own, highest_psn.value());
  }
  if (type == CtlType::kaa) {
    store_be(own + 4, received);
    store_be(own + 8, duplicates);
  }
  std::byte* const data = own + own_size(type);
  std::copy(private_data.begin(), private_data.end(), data);
  std::copy(tlvs.begin(), tlvs.end(), data + wdp_padded(private_data.size()));
  seal_wdp({p, total});
  return total;
}

TermError WdpCtl::error() const {
  const auto layer = static_cast<uint8_t>(reason >> 16);
  return {layer <= static_cast<uint8_t>(Layer::llp) ? static_cast<Layer>(layer) : Layer::rdmap,
          static_cast<uint8_t>(reason >> 8), static_cast<uint8_t>(reason)};
}

std::optional<Xid> other_version_request(Bytes datagram) {
  // The class nibble, the type and the XID stand where they always stand. 32 bytes hold an XID, and
  // the REJ of 64 bytes is not three times as long.
  constexpr size_t kLeast = 32;
  if (datagram.size() < kLeast) return {};
  const auto first = std::to_integer<uint8_t>(datagram[0]);
  const auto second = std::to_integer<uint8_t>(datagram[1]);
  if (first >> 4 != kWdpMagic || (first & 0x0f) == kWdpVersion) return {};
  if (second >> 4 != static_cast<uint8_t>(WdpClass::ctl)) return {};
  if (static_cast<CtlType>(datagram[8]) != CtlType::req) return {};
  return Xid{load_be<uint32_t>(datagram.data() + 28)};
}

}  // namespace weft::wire
