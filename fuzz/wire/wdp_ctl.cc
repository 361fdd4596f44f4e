// CTL messages of WDP (spec/wdp 3). Input: a datagram, tried as it is and, so that more than its
// CRC and its length is looked at, with these two made right.

#include "wire/wdp_ctl.h"

#include "fuzz/support/check.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_ended.h"

namespace {

using namespace weft;
using namespace weft::wire;

size_t padded(size_t n) {
  return n + (0U - n) % 4;
}

// TLVs that fill `b` to its end.
bool good_tlvs(Bytes b) {
  size_t at = 0;
  while (at < b.size()) {
    if (b.size() - at < 4) return false;
    at += 4 + padded(load_be<uint16_t>(b.data() + at + 2));
  }
  return at == b.size();
}

size_t own_size(unsigned type) {
  return type == 7 || type == 9 ? 4 : type == 10 ? 12 : type == 13 ? 48 : 0;
}

bool good(Bytes b) {
  if (b.size() < 64 || b[0] != std::byte{0xd1} || (b[1] >> 3) != std::byte{1}) return false;
  const auto u16 = [&](size_t at) { return load_be<uint16_t>(b.data() + at); };
  const auto u32 = [&](size_t at) { return load_be<uint32_t>(b.data() + at); };
  if (!wdp_crc_matches(b) || u16(10) != b.size()) return false;
  const auto type = std::to_integer<unsigned>(b[8]);
  if (type < 1 || type > 13 || (type == 1 && b.size() < 256)) return false;
  const bool announces = type == 1 || (type == 2 && b[32] != std::byte{4});
  if ((announces && u32(16) == 0) || (type == 6 && u32(60) > 30'000)) return false;
  const size_t tlvs = 64 + own_size(type) + padded(u16(56));
  return u16(56) <= 512 && tlvs + u16(58) <= b.size() && good_tlvs(b.subspan(tlvs, u16(58)));
}

// What encode() makes of a good message: reserved bits, and all that belongs to no part, are zero.
std::vector<std::byte> canonical(Bytes b) {
  auto c = fuzz::exact(b, b.size());
  c[1] = std::byte{0x08};
  c[20] = c[24] = std::byte{0};
  c[33] &= std::byte{1};
  store_be(c.data() + 44, load_be<uint32_t>(c.data() + 44) & 0x7f);
  const size_t data = 64 + own_size(std::to_integer<unsigned>(c[8]));
  const size_t data_end = data + load_be<uint16_t>(c.data() + 56);
  const size_t tlvs = padded(data_end);
  const size_t tlvs_end = tlvs + load_be<uint16_t>(c.data() + 58);
  for (size_t i = data_end; i < tlvs; ++i) c[i] = std::byte{0};
  for (size_t i = tlvs_end; i < c.size(); ++i) c[i] = std::byte{0};
  seal_wdp(c);
  return c;
}

void check_tlvs(const WdpCtl& c) {
  Bytes rest = c.tlvs;
  while (!rest.empty()) {
    const Bytes before = rest;
    const auto tlv = WdpTlv::take(rest);
    FUZZ_CHECK(tlv.ok() && tlv->size() == before.size() - rest.size() && tlv->type < 0x8000);
    FUZZ_CHECK(!tlv->to_string().empty());
    std::vector<std::byte> again(tlv->size());
    FUZZ_CHECK(tlv->encode(again.data()) == again.size());
    auto expected = fuzz::exact(before, again.size());
    std::fill(expected.begin() + static_cast<ptrdiff_t>(4 + tlv->value.size()), expected.end(),
              std::byte{0});
    FUZZ_CHECK(fuzz::same(again, expected));
  }
  if (const auto ended = WdpEnded::find(c.tlvs)) {
    const auto tlv = ended->encode();
    const auto again = WdpEnded::find(tlv);
    FUZZ_CHECK(again && again->token == ended->token && again->taken == ended->taken);
  }
}

void check_datagram(Bytes bytes) {
  const auto datagram = fuzz::exact(bytes, bytes.size());
  const auto c = WdpCtl::parse(datagram);
  FUZZ_CHECK(c.ok() == good(datagram));
  if (!c.ok()) {
    FUZZ_CHECK(c.error() <= WdpDrop::length_mismatch ||
               (c.error() >= WdpDrop::unknown_ctl_type && c.error() <= WdpDrop::wait_too_long));
    return;
  }
  FUZZ_CHECK(!c->to_string().empty());
  FUZZ_CHECK(c->length == datagram.size() && c->size() == datagram.size());
  FUZZ_CHECK(static_cast<unsigned>(c->error().layer) <= 2);
  FUZZ_CHECK(c->offending.size() == (c->type == CtlType::err ? 48U : 0U));
  check_tlvs(*c);
  std::vector<std::byte> again(c->size());
  FUZZ_CHECK(c->encode(again.data()) == again.size());
  FUZZ_CHECK(fuzz::same(again, canonical(datagram)));
  FUZZ_CHECK(WdpCtl::parse(again).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::as_bytes(data, size);
  check_datagram(input);
  const auto xid = other_version_request(input);
  FUZZ_CHECK(!xid || (size >= 32 && !WdpCtl::parse(input).ok()));
  if (size < WdpCtl::kSize) return 0;
  auto fitted = fuzz::exact(input, size);
  fitted[1] |= std::byte{8};
  store_be(fitted.data() + 10, static_cast<uint16_t>(size));
  seal_wdp(fitted);
  check_datagram(fitted);
  return 0;
}
