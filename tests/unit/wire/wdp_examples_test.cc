// The worked examples of docs/spec/examples-wdp.md. Each is decoded, said in the words that stand
// beside it, which have every field, and encoded again, byte for byte and CRC included. E11 to E14
// are built from their fields besides, so that words and encoder do not agree on something wrong.

#include <gtest/gtest.h>

#include <set>

#include "tests/support/spec_example.h"
#include "wire/mpa_start.h"
#include "wire/rdmap_messages.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_cookie.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_ctl.h"
#include "wire/wdp_data.h"
#include "wire/wdp_messages.h"
#include "wire/wdp_ud.h"
#include "wire/wfrc.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::example;
using test::from_text;
using test::to_hex;

constexpr char kPage[] = "examples-wdp.md";
constexpr char kSubject[] = "cookie subject";  // no datagram

// Header, payload and the CRC over both.
template <class Header>
Buffer sealed(const Header& h, Bytes payload) {
  Buffer b(Header::kSize);
  h.encode(b.data());
  b.insert(b.end(), payload.begin(), payload.end());
  if (h.flags.crc) seal_wdp(b);
  return b;
}

// What is read from some bytes, and what that is when it is written again.
struct Reading {
  std::string words = "cannot be read";
  Buffer again;
};

std::string payload_words(const WdpData& d, Bytes payload) {
  if (d.opcode == Opcode::read_request) {
    return "; " + WdpReadRange::parse(payload.data()).to_string();
  }
  if (d.opcode == Opcode::atomic_request) {
    return "; " + AtomicRequest::parse(payload.data()).to_string();
  }
  std::string words;
  if (d.opcode == Opcode::terminate) {
    for (size_t i = 0; i < payload.size(); i += WdpResponse::kSize) {
      words += "; " + WdpResponse::parse(payload.data() + i).to_string();
    }
  }
  return words;
}

Reading read_data(Bytes b) {
  const auto d = WdpData::parse(b);
  if (!d.ok()) return {};
  const Bytes payload = b.subspan(WdpData::kSize);
  EXPECT_TRUE(!d->flags.crc || wdp_crc_matches(b));
  return {d->to_string() + payload_words(*d, payload), sealed(*d, payload)};
}

Reading read_ud(Bytes b) {
  const auto u = WdpUd::parse(b);
  if (!u.ok()) return {};
  EXPECT_TRUE(!u->flags.crc || wdp_crc_matches(b));
  return {u->to_string(), sealed(*u, b.subspan(WdpUd::kSize))};
}

template <class Message>
Reading read_control(Bytes b) {
  const auto m = Message::parse(b);
  if (!m.ok()) return {};
  Buffer again(m->size());
  EXPECT_EQ(m->encode(again.data()), b.size());
  return {m->to_string(), again};
}

// A start-up frame with the blocks of a bring-up.
Reading read_start(Bytes b) {
  const auto kind = b[7] == std::byte{'R'} && b[9] == std::byte{'q'} ? MpaStart::Kind::request
                                                                     : MpaStart::Kind::reply;
  const auto start = MpaStart::parse(kind, b.data());
  const auto block = Wfrc::parse(b.subspan(MpaStart::kSize + MpaEnhanced::kSize));
  if (!start.ok() || !start->enhanced || !block) return {};
  EXPECT_EQ(start->private_data_length, MpaEnhanced::kSize + Wfrc::kSize);
  const auto enhanced = MpaEnhanced::parse(b.data() + MpaStart::kSize);
  Reading r{start->to_string() + "; " + enhanced.to_string() + "; " + block->to_string(),
            Buffer(MpaStart::kSize + MpaEnhanced::kSize + Wfrc::kSize)};
  start->encode(r.again.data());
  enhanced.encode(r.again.data() + MpaStart::kSize);
  block->encode(r.again.data() + MpaStart::kSize + MpaEnhanced::kSize);
  return r;
}

Reading read(Bytes b) {
  if (b[0] == std::byte{'M'}) return read_start(b);
  const auto common = WdpCommon::parse(b);
  if (!common.ok()) return {};
  switch (common->wdp_class) {
    case WdpClass::ctl:
      return read_control<WdpCtl>(b);
    case WdpClass::ud:
      return read_ud(b);
    case WdpClass::rd_ack:
      return read_control<WdpAck>(b);
    default:
      return read_data(b);
  }
}

TEST(WdpExamples, SayWhatStandsBesideThemAndAreWrittenAgain) {
  for (const auto& e : test::examples_on(kPage)) {
    if (e.name == kSubject) continue;
    const Reading r = read(e.bytes);
    EXPECT_EQ(r.words, e.words) << e.name;
    EXPECT_EQ(to_hex(r.again), to_hex(e.bytes)) << e.name;
  }
}

TEST(WdpExamples, ThereIsOneOfEachKind) {
  std::set<WdpClass> classes;
  std::set<CtlType> types;
  std::set<Opcode> uc;
  for (const auto& e : test::examples_on(kPage)) {
    const auto common = WdpCommon::parse(e.bytes);
    if (!common.ok()) continue;
    classes.insert(common->wdp_class);
    if (const auto c = WdpCtl::parse(e.bytes); c.ok()) types.insert(c->type);
    if (common->wdp_class == WdpClass::uc) uc.insert(WdpData::parse(e.bytes)->opcode);
  }
  EXPECT_EQ(classes.size(), 5U);
  EXPECT_EQ(types.size(), 13U);
  EXPECT_EQ(uc, (std::set{Opcode::write, Opcode::read_request, Opcode::read_response, Opcode::send,
                          Opcode::send_se_inv}));
}

TEST(WdpExamples, TheCookieIsMadeOfWhatThePageSays) {
  CookieSecret secret;
  for (size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i);
  const auto req = WdpCtl::parse(example("REQ"));
  ASSERT_TRUE(req.ok());
  const CookieSubject subject{Gid::from_ipv4(0xc0000201), 40000, req->source_token, req->xid};
  Buffer encoded(CookieSubject::kSize);
  subject.encode(encoded.data());
  EXPECT_EQ(to_hex(encoded), to_hex(example(kSubject)));
  const auto cookie = make_cookie(secret, subject);
  EXPECT_EQ(WdpCtl::parse(example("COOKIE"))->cookie, cookie);
  EXPECT_EQ(WdpCtl::parse(example("REQ with cookie"))->cookie, cookie);
}

// Section 2.8: what this version does not know, and has to refuse.
TEST(WdpExamples, AnUnknownCriticalTlvIsSeen) {
  const Buffer without = example("UD question");
  const Buffer with = example("UD question with TLV");
  EXPECT_FALSE(has_critical_tlv(WdpCtl::parse(without)->tlvs));
  EXPECT_TRUE(has_critical_tlv(WdpCtl::parse(with)->tlvs));
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

  const Buffer first = example("E11 first");
  EXPECT_TRUE(wdp_crc_matches(first));
  auto parsed = WdpData::parse(first);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, d);
  EXPECT_TRUE(parsed->has_immediate());
  EXPECT_EQ(parsed->segment_count(), 2U);
  EXPECT_EQ(parsed->segment_index(), 0U);
  EXPECT_EQ(to_hex(sealed(d, from_text("weft uc segmente"))), to_hex(first));

  d.psn = next(d.psn);
  d.mo = MessageOffset{16};
  d.to = d.to + 16;
  d.last = true;
  const Buffer last = example("E11 last");
  EXPECT_TRUE(wdp_crc_matches(last));
  parsed = WdpData::parse(last);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, d);
  EXPECT_EQ(parsed->segment_count(), 2U);
  EXPECT_EQ(parsed->segment_index(), 1U);
  EXPECT_EQ(parsed->payload_size(), 3U);
  EXPECT_EQ(to_hex(sealed(d, from_text("d!!"))), to_hex(last));
}

TEST(ExampleE12, UdSendWithImmediate) {
  const Buffer b = example("E12");
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
  EXPECT_EQ(to_hex(sealed(u, from_text("hello"))), to_hex(b));
}

TEST(ExampleE13, Request) {
  const Buffer b = example("E13");
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
  const Buffer b = example("E14");
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
