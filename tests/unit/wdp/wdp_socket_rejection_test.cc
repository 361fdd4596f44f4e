// What a port counts of the REJs that it says: each once, by its reason.

#include "tests/unit/wdp/wdp_socket_fixture.h"
#include "wire/wdp_tlv.h"

namespace weft::wdp {
namespace {

struct RejectionTest : PortTest {
  // What B says to these bytes of a stranger is one REJ, and that is what it counts.
  void expect_rejection(const Buffer& request, RejReason why) {
    SCOPED_TRACE(wire::to_string(why));
    const uint64_t before = b.port.rejections().of(why);
    const uint64_t all = b.port.rejections().total();
    b.hear(request, kStranger, now);
    const auto said = b.said(now);
    ASSERT_EQ(said.size(), 1U);
    const WdpCtl rej = parse(said[0].bytes);
    EXPECT_EQ(rej.type, CtlType::rej);
    EXPECT_EQ(rej.reason, static_cast<uint32_t>(why));
    EXPECT_EQ(b.port.rejections().of(why), before + 1);
    EXPECT_EQ(b.port.rejections().total(), all + 1) << "and nothing else";
  }
};

TEST_F(RejectionTest, WhatNobodyBehindTheGateCouldAccept) {
  Buffer tlv(12);
  wire::WdpTlv{.type = 3, .critical = true, .value = Bytes{tlv}.first(2)}.encode(tlv.data());
  expect_rejection(request(1, 1, [&](WdpCtl& c) { c.tlvs = Bytes{tlv}.first(8); }),
                   RejReason::critical_tlv);
  expect_rejection(request(2, 2, [](WdpCtl& c) { c.service = wire::CtlService::rc_flow; }),
                   RejReason::service_mismatch);
  expect_rejection(request(3, 3, [](WdpCtl& c) { c.max_payload = 1; }), RejReason::bad_parameters);
  Buffer other = request(4, 4);
  other[0] = std::byte{0xd2};
  expect_rejection(other, RejReason::version);
}

TEST_F(RejectionTest, WhatTheOwnerSays) {
  for (const RejReason why :
       {RejReason::no_listener, RejReason::service_mismatch, RejReason::no_resources}) {
    b.refuse = why;
    expect_rejection(request(5, 5 + static_cast<uint32_t>(why)), why);
  }
  const auto called = [](WdpCtl& c) { c.ib_style = true; };
  expect_rejection(request(6, 50, called), RejReason::qpn_unknown);
  b.callee = {&b.add_peer().connection, offer_of_b()};
  expect_rejection(request(7, 51, called), RejReason::bad_parameters);
}

TEST_F(RejectionTest, WhatTheProgramSaysLater) {
  for (const RejReason why : {RejReason::application, RejReason::no_resources}) {
    const auto xid = static_cast<uint32_t>(why);
    b.hear(request(8, xid), kStranger, now);
    EXPECT_TRUE(b.port.reject(b.requests.back().key, why, pattern_bytes(9, 3)));
    EXPECT_FALSE(b.port.reject(b.requests.back().key, why, {}));
    EXPECT_EQ(b.said(now).size(), 1U);
    EXPECT_EQ(b.port.rejections().of(why), 1U);
  }
  EXPECT_EQ(b.port.rejections().total(), 2U);
}

// spec/wdp 4.3: duplicate REQ repeats the last answer, private data and all. The program hears of
// the call once.
TEST_F(RejectionTest, TheSameIsSaidToACopyOfTheRequest) {
  const auto twice = [&](const Buffer& req, RejReason why) {
    SCOPED_TRACE(wire::to_string(why));
    const auto said = b.said(now);
    ASSERT_EQ(said.size(), 1U);
    const size_t heard = b.requests.size();
    b.refuse.reset();
    expect_rejection(req, why);
    b.hear(req, kStranger, now);
    const auto more = b.said(now);
    ASSERT_EQ(more.size(), 1U);
    EXPECT_EQ(more[0].bytes, said[0].bytes);
    EXPECT_EQ(b.requests.size(), heard);
    EXPECT_EQ(b.port.half_open(), 0U);
  };
  b.hear(request(8, 1), kStranger, now);
  EXPECT_TRUE(b.port.reject(b.requests.back().key, RejReason::application, pattern_bytes(9, 3)));
  twice(request(8, 1), RejReason::application);
  b.refuse = RejReason::no_listener;
  b.hear(request(9, 2), kStranger, now);
  twice(request(9, 2), RejReason::no_listener);
}

// Who floods the port drives out what others were told; their copies are new calls then.
TEST_F(RejectionTest, OldRefusalsAreForgotten) {
  b.refuse = RejReason::no_listener;
  for (uint32_t i = 0; i <= Refusals::kMost; ++i) b.hear(request(i + 1, i), kStranger, now);
  (void)b.said(now);
  b.refuse.reset();
  b.requests.clear();
  b.hear(request(Refusals::kMost + 1, Refusals::kMost), kStranger, now);
  EXPECT_TRUE(b.requests.empty());
  b.hear(request(1, 0), kStranger, now);
  EXPECT_EQ(b.requests.size(), 1U);
}

// WAIT, COOKIE and REP are none.
TEST_F(RejectionTest, OtherAnswersAreNotCounted) {
  stand();
  for (uint32_t i = 0; i <= RequestGate::kMostHalfOpen; ++i) {
    b.hear(request(i + 1, i), kStranger, now);
    b.hear(request(i + 1, i), kStranger, now);
  }
  EXPECT_FALSE(b.said(now).empty());
  EXPECT_EQ(a.port.rejections().total() + b.port.rejections().total(), 0U);
}

// A REJ that finds no room is not said.
TEST_F(RejectionTest, WhatIsNotSaidIsNotCounted) {
  b.refuse = RejReason::no_listener;
  for (uint32_t i = 0; i < 200; ++i) b.hear(request(i + 1, i), kStranger, now);
  EXPECT_EQ(b.port.rejections().of(RejReason::no_listener), b.said(now).size());
}

// A connection says its REJs itself: its handshake tells.
TEST_F(RejectionTest, AConnectionThatIsGivenUpTellsWhatItSaid) {
  caller = &call();
  talk();
  callee = &accept();
  EXPECT_FALSE(callee->connection.handshake()->rejected_by_us());
  callee->connection.abort(0, now);
  EXPECT_EQ(callee->connection.handshake()->rejected_by_us(), RejReason::application);
  EXPECT_EQ(b.port.rejections().total(), 0U);
  talk();
  EXPECT_FALSE(caller->connection.handshake()->rejected_by_us()) << "it was the peer that said it";
}

}  // namespace
}  // namespace weft::wdp
