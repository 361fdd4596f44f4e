// What follows a CTL message's reason: the type's own, private data, TLVs, padding (spec/wdp 3.1).

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "tests/support/hex.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_ctl.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;
using Why = std::optional<WdpDrop>;

WdpCtl message(CtlType type) {
  WdpCtl c;
  c.type = type;
  c.token = SessionToken{0x0a0b0c0d};
  c.source_token = SessionToken{0x01020304};
  c.service = CtlService::uc;
  return c;
}
Buffer encoded(const WdpCtl& c) {
  Buffer b(c.size() + 1, std::byte{0xee});
  EXPECT_EQ(c.encode(b.data()), c.size());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond size()";
  b.pop_back();
  return b;
}
std::string tail(const Buffer& b) {
  return to_hex(Bytes{b}.subspan(WdpCtl::kSize));
}
Why dropped(Buffer b) {
  seal_wdp(b);
  const auto c = WdpCtl::parse(b);
  return c.ok() ? Why{} : Why{c.error()};
}

TEST(WdpCtlParts, PrivateDataThenTlvs) {
  const Buffer data = test::pattern(5, 1);
  const Buffer tlvs = from_hex("80 01 00 02 | aa bb 00 00 | 00 02 00 00");
  WdpCtl c = message(CtlType::rej);
  c.private_data = data;
  c.tlvs = tlvs;
  const Buffer b = encoded(c);
  EXPECT_EQ(tail(b), to_hex(data) + " 00 00 00 " + to_hex(tlvs));
  EXPECT_EQ(to_hex(Bytes{b}.subspan(56, 4)), "00 05 00 0c");
  const auto again = WdpCtl::parse(b);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_hex(again->private_data), to_hex(data));
  EXPECT_EQ(to_hex(again->tlvs), to_hex(tlvs));
}

TEST(WdpCtlParts, DreqAndKaCarryTheHighestPsn) {
  // "off 64: u32 highest PSN sent"
  for (const CtlType type : {CtlType::dreq, CtlType::ka}) {
    WdpCtl c = message(type);
    c.highest_psn = Psn{0x11121314};
    const Buffer data = test::pattern(3, 2);
    c.private_data = data;
    const Buffer b = encoded(c);
    EXPECT_EQ(tail(b), "11 12 13 14 " + to_hex(data) + " 00");
    const auto again = WdpCtl::parse(b);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->highest_psn, Psn{0x11121314});
    EXPECT_EQ(to_hex(again->private_data), to_hex(data));
  }
}

TEST(WdpCtlParts, KaaCarriesWhatWasReceived) {
  // "off 64: u32 highest PSN seen, u32 datagrams received, u32 dropped as duplicate"
  WdpCtl c = message(CtlType::kaa);
  c.highest_psn = Psn{0x11121314};
  c.received = 0x21222324;
  c.duplicates = 0x31323334;
  const Buffer b = encoded(c);
  EXPECT_EQ(tail(b), "11 12 13 14 21 22 23 24 31 32 33 34");
  const auto again = WdpCtl::parse(b);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->highest_psn, c.highest_psn);
  EXPECT_EQ(again->received, c.received);
  EXPECT_EQ(again->duplicates, c.duplicates);
}

TEST(WdpCtlParts, ErrCarriesTheHeaderThatWasWrong) {
  // "off 60 = layer<<16|etype<<8|code as 5.3; off 64: first 48 bytes of offending header"
  const Buffer offending = test::pattern(48, 3);
  WdpCtl c = message(CtlType::err);
  c.reason = ErrorBits<TermError>::pack(term::kTaggedBounds);
  c.offending = offending;
  const Buffer b = encoded(c);
  EXPECT_EQ(to_hex(Bytes{b}.subspan(60, 4)), "00 01 01 01");
  EXPECT_EQ(tail(b), to_hex(offending));
  const auto again = WdpCtl::parse(b);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->error(), term::kTaggedBounds);
  EXPECT_EQ(to_hex(again->offending), to_hex(offending));

  c.offending = Bytes{offending}.first(20);
  EXPECT_EQ(tail(encoded(c)), to_hex(Bytes{offending}.first(20)) + " " + to_hex(Buffer(28)));
  const Buffer more = test::pattern(60, 3);
  c.offending = more;
  EXPECT_EQ(to_hex(encoded(c)), to_hex(b)) << "no more than 48";
}

TEST(WdpCtlParts, ErrorsOfLayersThatDoNotExistCanBePrinted) {
  for (const uint32_t layer : {3U, 4U, 15U, 255U}) {
    WdpCtl c = message(CtlType::err);
    c.reason = layer << 16 | 0x0542;
    EXPECT_EQ(c.error(), (TermError{Layer::rdmap, 5, 0x42})) << layer;
    EXPECT_FALSE(c.to_string().empty());
  }
}

TEST(WdpCtlParts, PrivateDataIs512BytesAtMost) {
  // "PDLEN, private data bytes <= 512"
  for (size_t n = 0; n <= WdpCtl::kMaxPrivateData; ++n) {
    const Buffer data = test::pattern(n, 4);
    WdpCtl c = message(CtlType::rep);
    c.private_data = data;
    const Buffer b = encoded(c);
    ASSERT_EQ(b.size(), 64 + (n + 3) / 4 * 4);
    const auto again = WdpCtl::parse(b);
    ASSERT_TRUE(again.ok()) << n;
    ASSERT_EQ(to_hex(again->private_data), to_hex(data)) << n;
  }
  WdpCtl c = message(CtlType::req);
  c.length = 1472;
  Buffer b = encoded(c);
  for (const uint16_t n : {513, 600, 65535}) {
    store_be(b.data() + 56, n);
    EXPECT_EQ(dropped(b), WdpDrop::private_data_too_long) << n;
  }
}

TEST(WdpCtlParts, TheLargestRepIsThreeTimesTheSmallestReq) {
  // Part IV: "REP with private data <= 512+64 <= 768".
  const Buffer data = test::pattern(WdpCtl::kMaxPrivateData, 4);
  WdpCtl c = message(CtlType::rep);
  c.private_data = data;
  EXPECT_EQ(c.size(), 576U);
  EXPECT_LE(c.size(), 3 * WdpCtl::kMinRequest);
}

TEST(WdpCtlParts, PartsThatDoNotFitAreDropped) {
  struct Row {
    uint16_t pdlen, tlvlen;
    Why why;
  };
  // 72 bytes behind the reason.
  const Row rows[] = {{0, 0, {}},
                      {72, 0, {}},
                      {69, 0, {}},
                      {73, 0, WdpDrop::parts_too_long},
                      {512, 0, WdpDrop::parts_too_long},
                      {0, 72, {}},
                      {0, 76, WdpDrop::parts_too_long},
                      {0, 65535, WdpDrop::parts_too_long},
                      {68, 4, {}},
                      {69, 4, WdpDrop::parts_too_long},
                      {65, 4, {}},
                      {66, 6, WdpDrop::parts_too_long},
                      {512, 65535, WdpDrop::parts_too_long}};
  for (const Row& r : rows) {
    WdpCtl c = message(CtlType::rej);
    c.length = WdpCtl::kSize + 72;
    Buffer b = encoded(c);
    store_be(b.data() + 56, r.pdlen);
    store_be(b.data() + 58, r.tlvlen);
    EXPECT_EQ(dropped(b), r.why) << r.pdlen << " " << r.tlvlen;
  }
  // The type's own bytes are no private data.
  WdpCtl kaa = message(CtlType::kaa);
  kaa.length = WdpCtl::kSize + 72;
  Buffer b = encoded(kaa);
  store_be<uint16_t>(b.data() + 56, 60);
  EXPECT_EQ(dropped(b), Why{});
  store_be<uint16_t>(b.data() + 56, 61);
  EXPECT_EQ(dropped(b), WdpDrop::parts_too_long);
}

TEST(WdpCtlParts, TlvsMustBeWhole) {
  // 00 01 00 04 and four bytes, in a TLVLEN that has no room for them or leaves some.
  WdpCtl c = message(CtlType::rej);
  const Buffer tlvs = from_hex("00 01 00 04 01 02 03 04 00 00 00 00");
  c.tlvs = tlvs;
  Buffer b = encoded(c);
  for (uint16_t n = 0; n <= 12; ++n) {
    store_be(b.data() + 58, n);
    EXPECT_EQ(dropped(b), n == 0 || n == 8 || n == 12 ? Why{} : Why{WdpDrop::bad_tlv}) << n;
  }
}

TEST(WdpCtlParts, WhatFollowsThePartsIsNotLookedAt) {
  WdpCtl c = message(CtlType::req);
  const Buffer data = test::pattern(6, 5);
  c.private_data = data;
  const Buffer clean = encoded(c);
  Buffer b = clean;
  for (size_t i = WdpCtl::kSize + data.size(); i < b.size(); ++i) b[i] = std::byte{0x5a};
  seal_wdp(b);
  const auto again = WdpCtl::parse(b);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_hex(encoded(*again)), to_hex(clean));
}

TEST(WdpCtlParts, RoundTrips) {
  SeededRandom random(6);
  const auto word = [&] { return static_cast<uint32_t>(random.next()); };
  for (int i = 0; i < 3000; ++i) {
    const Buffer data = test::pattern(word() % 513, word());
    const Buffer value = test::pattern(word() % 40, word());
    const WdpTlv tlv{.type = static_cast<uint16_t>(word() & 0x7fff),
                     .critical = (word() & 1) != 0,
                     .value = value};
    Buffer tlvs((word() & 1) != 0 ? tlv.size() : 0);
    if (!tlvs.empty()) tlv.encode(tlvs.data());
    const Buffer offending = test::pattern(48, word());
    WdpCtl c;
    c.type = static_cast<CtlType>(1 + word() % 13);
    c.attempt = static_cast<uint8_t>(word());
    c.didx = static_cast<uint8_t>(word());
    c.sidx = static_cast<uint8_t>(word());
    c.token = SessionToken{word()};
    c.length = static_cast<uint16_t>(word() % 1500);
    c.source_token = SessionToken{word() | 1};
    c.source = Qpn{word() & 0xffffff};
    c.destination = Qpn{word() & 0xffffff};
    c.xid = Xid{word()};
    c.service = static_cast<CtlService>(word() & 0xff);
    c.ib_style = (word() & 1) != 0;
    c.ird = static_cast<uint16_t>(word());
    c.ord = static_cast<uint16_t>(word());
    c.max_payload = static_cast<uint16_t>(word());
    c.first_psn = Psn{word()};
    c.features = CtlFeatures::from_bits(word());
    c.cookie = HandshakeCookie{random.next()};
    c.reason = word() % 30'001;
    c.private_data = data;
    c.tlvs = tlvs;
    c.highest_psn = Psn{word()};
    c.received = word();
    c.duplicates = word();
    c.offending = offending;
    const Buffer b = encoded(c);
    const auto again = WdpCtl::parse(b);
    ASSERT_TRUE(again.ok()) << c.to_string() << ": " << to_string(again.error());
    ASSERT_EQ(again->length, b.size());
    ASSERT_EQ(to_hex(again->private_data), to_hex(data));
    ASSERT_EQ(to_hex(again->tlvs), to_hex(tlvs));
    ASSERT_EQ(again->features, c.features);
    ASSERT_EQ(to_hex(encoded(*again)), to_hex(b)) << c.to_string();
  }
}

}  // namespace
}  // namespace weft::wire
