// A message of UD and the RDACK of what came before share a datagram (spec/wdp-rd 4.1, 6.7).

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/wdp/rd_channel_fixture.h"
#include "wire/wdp_bundle.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using wire::WdpAck;
using wire::WdpBundle;
using wire::WdpClass;

struct RdAckBesideMessage : RdChannelTest {
  // B has got a message that it has not acknowledged; what it says next is an answer of the
  // program's.
  void ask() {
    p.post_receives(1);
    q.post_receives(1);
    p.send(kB, 5, pattern_bytes(64, 1));
    talk();
    ASSERT_EQ(q.received.size(), 1U);
    ASSERT_TRUE(p.host.sent.empty());
  }
  Watch keep(const Watch& watch = {}) {
    return [this, watch](bool from_a, const Buffer& d) {
      if (!from_a) said.push_back(d);
      return !watch || watch(from_a, d);
    };
  }
  std::vector<WdpClass> classes() const {
    std::vector<WdpClass> all;
    for (const Buffer& d : said) all.push_back(class_of(d));
    return all;
  }
  std::vector<Buffer> said;  // by B
};

TEST_F(RdAckBesideMessage, OneDatagram) {
  stand();
  ask();
  work::SendWqe w;
  w.operation = work::Operation::send_immediate;
  w.immediate = 0xcafe;
  w.solicited = true;
  q.send(kA, 3, pattern_bytes(64, 2), w);
  talk(keep());
  ASSERT_EQ(classes(), std::vector{WdpBundle::kClass});
  EXPECT_EQ(said[0].size(),
            WdpBundle::kSize + 2 * WdpBundle::kFrame + wire::WdpData::kSize + 64 + WdpAck::kSize);
  EXPECT_FALSE(wire::WdpCommon::parse(said[0])->flags.immediate) << "the part says so";
  Bytes rest = Bytes{said[0]}.subspan(WdpBundle::kSize);
  EXPECT_EQ(wire::WdpCommon::parse(*WdpBundle::take(rest))->wdp_class, WdpClass::rd);
  EXPECT_TRUE(WdpAck::parse(*WdpBundle::take(rest)).ok());
  EXPECT_EQ(p.host.sent.size(), 1U);
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(64, 2));
  EXPECT_EQ(p.received[0].source, q.number);
  EXPECT_TRUE(p.received[0].solicited);
  EXPECT_EQ(p.received[0].immediate, 0xcafeU);
}

TEST_F(RdAckBesideMessage, WithCrcs) {
  for (RdNode* n : {&a, &b}) {
    n->socket.channels().enable({.own_port = RdNode::kPort, .crc = true, .window = 1 << 20});
  }
  stand();
  ask();
  q.send(kA, 3, pattern_bytes(64, 2));
  talk(keep([this](bool from_a, const Buffer& d) {
    if (from_a) return true;
    for (const size_t at : {WdpBundle::kSize + WdpBundle::kFrame + 50, d.size() - 1}) {
      Buffer bad = d;
      bad[at] ^= std::byte{1};
      a.hear(bad, b.address, now);
    }
    return true;
  }));
  EXPECT_EQ(classes(), std::vector{WdpBundle::kClass});
  EXPECT_EQ(drops(a, wire::WdpDrop::bad_crc), 2U);
  EXPECT_EQ(p.host.sent.size(), 1U);
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(64, 2));
}

// What is sent again is the message; by then the RDACK has been said.
TEST_F(RdAckBesideMessage, TheMessageAloneComesAgain) {
  stand();
  ask();
  q.send(kA, 3, pattern_bytes(64, 2));
  int lost = 0;
  const Watch first_is_lost =
      keep([&](bool from_a, const Buffer&) { return from_a || lost++ > 0; });
  talk(first_is_lost);
  later(1s, first_is_lost);
  ASSERT_GE(said.size(), 2U);
  EXPECT_EQ(class_of(said[0]), WdpBundle::kClass);
  EXPECT_EQ(std::count_if(said.begin(), said.end(), is_data), 1);
  EXPECT_EQ(p.host.sent.size(), 1U);
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(64, 2));
  EXPECT_EQ(q.host.sent.size(), 1U);
}

// Beyond what each path carries.
TEST_F(RdAckBesideMessage, ALongMessageHasADatagramOfItsOwn) {
  stand();
  ask();
  q.send(kA, 3, text);
  talk(keep());
  EXPECT_EQ(classes(), (std::vector{WdpClass::rd, WdpClass::rd_ack}));
  EXPECT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.received.size(), 1U);
}

TEST_F(RdAckBesideMessage, SoHasOneOfSeveral) {
  stand();
  ask();
  p.post_receives(1);
  b.polls = false;
  for (uint32_t i = 0; i < 2; ++i) q.send(kA, 3, pattern_bytes(500, i));
  talk(keep());
  EXPECT_EQ(classes(), (std::vector{WdpClass::rd, WdpClass::rd, WdpClass::rd_ack}));
  EXPECT_EQ(p.received.size(), 2U);
}

TEST_F(RdAckBesideMessage, OfSeveralThatShareADatagram) {
  stand();
  ask();
  p.post_receives(1);
  b.polls = false;
  for (uint32_t i = 0; i < 2; ++i) q.send(kA, 3, pattern_bytes(64, i));
  talk(keep());
  EXPECT_EQ(classes(), std::vector{WdpBundle::kClass});
  EXPECT_EQ(p.received.size(), 2U);
}

// spec/wdp-rd 6.7: an end without the feature drops bundles.
TEST_F(RdAckBesideMessage, APeerWithoutResponsesGetsTwo) {
  q.post_receives(1);
  p.send(kB, 5, text);
  for (const auto& d : a.said(now)) {
    auto req = *wire::WdpCtl::parse(d.bytes);
    ASSERT_EQ(req.type, wire::CtlType::req);
    req.features.responses = false;
    Buffer older(req.size());
    req.encode(older.data());
    b.hear(older, a.address, now);
  }
  talk();
  later(1ms);
  ASSERT_EQ(p.host.sent.size(), 1U);
  p.host.sent.clear();
  q.received.clear();
  ask();
  q.send(kA, 3, pattern_bytes(64, 2));
  talk(keep());
  EXPECT_EQ(classes(), (std::vector{WdpClass::rd, WdpClass::rd_ack}));
  EXPECT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.received.size(), 1U);
}

}  // namespace
}  // namespace weft::wdp
