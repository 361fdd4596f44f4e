// The worked examples E11 to E14 of wire.md part V: each is decoded, looked at field by field, and
// encoded again from those fields, byte for byte and CRC included.

#include <gtest/gtest.h>

#include "tests/support/wdp_examples.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_ctl.h"
#include "wire/wdp_data.h"
#include "wire/wdp_ud.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::from_text;
using test::to_hex;

// Header, payload and the CRC over both.
template <class Header>
std::string sealed(const Header& h, Bytes payload) {
  Buffer b(Header::kSize);
  h.encode(b.data());
  b.insert(b.end(), payload.begin(), payload.end());
  seal_wdp(b);
  return to_hex(b);
}

TEST(ExampleE11, WriteWithImmediateInTwoDatagrams) {
  WdpData d;
  d.wdp_class = WdpClass::uc;
  d.flags = {.crc = true, .immediate = true};
  d.didx = 5;
  d.sidx = 9;
  d.token = SessionToken{0xa1b2c3d4};
  d.psn = Psn{0x1000};
  d.msn = Msn{0x2a};
  d.mlen = 19;
  d.opcode = Opcode::write;
  d.stride = 16;
  d.stag = Stag{0x55667700};
  d.imm_or_read = 0xcafef00d;
  d.to = TaggedOffset{0x7f0000001000};

  const Buffer first = from_hex(test::kE11First);
  EXPECT_TRUE(wdp_crc_matches(first));
  auto parsed = WdpData::parse(first);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, d);
  EXPECT_TRUE(parsed->has_immediate());
  EXPECT_EQ(parsed->segment_count(), 2U);
  EXPECT_EQ(parsed->segment_index(), 0U);
  EXPECT_EQ(sealed(d, from_text("weft uc segmente")), to_hex(first));

  d.psn = next(d.psn);
  d.mo = MessageOffset{16};
  d.to = d.to + 16;
  d.last = true;
  const Buffer last = from_hex(test::kE11Last);
  EXPECT_TRUE(wdp_crc_matches(last));
  parsed = WdpData::parse(last);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, d);
  EXPECT_EQ(parsed->segment_count(), 2U);
  EXPECT_EQ(parsed->segment_index(), 1U);
  EXPECT_EQ(parsed->payload_size(), 3U);
  EXPECT_EQ(sealed(d, from_text("d!!")), to_hex(last));
}

TEST(ExampleE12, UdSendWithImmediate) {
  const Buffer b = from_hex(test::kE12Send);
  EXPECT_TRUE(wdp_crc_matches(b));
  WdpUd u;
  u.flags = {.crc = true, .immediate = true};
  u.q_key = QKey{0x11111111};
  u.source = make_qpn(40000, 2);
  u.destination = make_qpn(50000, 7);
  u.msn = Msn{9};
  u.length = 5;
  u.imm = 0xcafef00d;
  const auto parsed = WdpUd::parse(b);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, u);
  EXPECT_EQ(sealed(u, from_text("hello")), to_hex(b));
}

TEST(ExampleE13, Request) {
  const Buffer b = test::e13_request();
  const auto parsed = WdpCtl::parse(b);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->type, CtlType::req);
  EXPECT_EQ(parsed->service, CtlService::uc);
  EXPECT_FALSE(parsed->ib_style);
  EXPECT_EQ(parsed->token, SessionToken{0});
  EXPECT_EQ(parsed->source_token, SessionToken{0xa1b2c3d4});
  EXPECT_EQ(parsed->source, make_qpn(50000, 9));
  EXPECT_EQ(parsed->destination, Qpn{0});
  EXPECT_EQ(parsed->xid, Xid{0x5eed0001});
  EXPECT_EQ(parsed->ird, 4);
  EXPECT_EQ(parsed->ord, 4);
  EXPECT_EQ(parsed->max_payload, 1472);
  EXPECT_EQ(parsed->first_psn, Psn{0x1000});
  EXPECT_EQ(parsed->features.bits(), 0x1fU);
  EXPECT_EQ(parsed->cookie, HandshakeCookie{0});
  EXPECT_EQ(to_hex(parsed->private_data), to_hex(from_text("pd")));
  EXPECT_TRUE(parsed->tlvs.empty());

  const Buffer pd = from_text("pd");
  WdpCtl same;
  same.type = CtlType::req;
  same.sidx = 9;
  same.source_token = SessionToken{0xa1b2c3d4};
  same.source = make_qpn(50000, 9);
  same.xid = Xid{0x5eed0001};
  same.service = CtlService::uc;
  same.ird = 4;
  same.ord = 4;
  same.max_payload = 1472;
  same.first_psn = Psn{0x1000};
  same.features = CtlFeatures::from_bits(0x1f);
  same.private_data = pd;
  Buffer again(same.size());
  EXPECT_EQ(same.encode(again.data()), WdpCtl::kMinRequest);
  EXPECT_EQ(to_hex(again), to_hex(b));
}

TEST(ExampleE14, Ack) {
  const Buffer b = from_hex(test::kE14Ack);
  const auto parsed = WdpAck::parse(b);
  ASSERT_TRUE(parsed.ok());
  WdpAck a;
  a.token = SessionToken{0x0badcafe};
  a.cum = Csn{0x1005};
  a.timestamp = 0x1234;
  a.trigger = Csn{0x1009};
  a.window = 4096;
  for (const uint32_t csn : {0x1006, 0x1008, 0x1009}) EXPECT_TRUE(a.hold(Csn{csn}));
  EXPECT_EQ(*parsed, a);
  for (uint32_t csn = 0x1000; csn < 0x1030; ++csn) {
    EXPECT_EQ(parsed->holds(Csn{csn}), csn == 0x1006 || csn == 0x1008 || csn == 0x1009) << csn;
  }
  Buffer again(a.size());
  EXPECT_EQ(a.encode(again.data()), b.size());
  EXPECT_EQ(to_hex(again), to_hex(b));
}

}  // namespace
}  // namespace weft::wire
