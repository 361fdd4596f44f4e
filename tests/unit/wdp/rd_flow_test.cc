#include "wdp/rd_flow.h"

#include <gtest/gtest.h>

#include <vector>

#include "wdp/rd_limits.h"

namespace weft::wdp {
namespace {

constexpr uint16_t kStride = 400;

struct RdFlowTest : ::testing::Test {
  // Begins a message of so many bytes and sends its segments, or only the first few of them.
  void send(uint64_t request, uint32_t length, uint32_t segments = UINT32_MAX,
            bool has_response = false) {
    flow.add(request);
    ASSERT_TRUE(flow.begin(kStride, has_response));
    ASSERT_EQ(flow.current(), request);
    for (uint32_t i = 0; i < segments && flow.partial(); ++i) say(length);
  }
  void send_read(uint64_t request) { send(request, 0, 1, true); }
  // The next segment. The channel gives numbers.
  void say(uint32_t length) {
    const RdSegment next = flow.segment();
    if (next.offset == 0) ++number;
    wire::WdpData d{.msn = Msn{number},
                    .mo = MessageOffset{next.offset},
                    .mlen = length,
                    .last = length - next.offset <= kStride,
                    .flow_open = next.opens,
                    .opcode = wire::Opcode::send,
                    .stride = kStride};
    opened = next.offset == 0 ? next.opens : opened;
    flow.said(d);
  }
  std::vector<uint64_t> acknowledge(uint32_t msn) {
    std::vector<uint64_t> all;
    while (const auto request = flow.take_acknowledged(Msn{msn})) all.push_back(*request);
    return all;
  }
  using Requests = std::vector<uint64_t>;

  RdFlow flow;
  uint32_t number = 0;
  bool opened = false;  // the last message said F
};

TEST_F(RdFlowTest, IsIdleUntilItIsGivenARequest) {
  EXPECT_TRUE(flow.idle());
  EXPECT_FALSE(flow.has_more());
  flow.add(5);
  EXPECT_FALSE(flow.idle());
  EXPECT_EQ(flow.next(), 5U);
  ASSERT_TRUE(flow.begin(kStride, false));
  EXPECT_FALSE(flow.any_waits());
  EXPECT_TRUE(flow.has_more());
}

TEST_F(RdFlowTest, SendsAMessageSegmentBySegment) {
  send(5, 1000, 1);
  EXPECT_TRUE(flow.peer_has_part());
  EXPECT_EQ(flow.segment().offset, 400U);
  EXPECT_EQ(flow.segment().msn, Msn{1});
  EXPECT_EQ(flow.segment().stride, kStride);
  say(1000);
  say(1000);
  EXPECT_FALSE(flow.partial());
  EXPECT_FALSE(flow.has_more());
  EXPECT_FALSE(flow.idle()) << "it is not answered";
}

TEST_F(RdFlowTest, TheFirstMessageAloneOpens) {
  send(5, 1000);
  EXPECT_TRUE(opened);
  send(6, 100);
  EXPECT_FALSE(opened);
}

TEST_F(RdFlowTest, AllSegmentsOfAMessageThatOpensSaySo) {
  send(5, 1000, 1);
  EXPECT_TRUE(flow.segment().opens);
  say(1000);
  EXPECT_TRUE(flow.segment().opens);
  say(1000);
  send(6, 1000, 1);
  EXPECT_FALSE(flow.segment().opens);
}

TEST_F(RdFlowTest, AnAcknowledgementIsOfAllBeforeIt) {
  send(5, 100);
  send(6, 100);
  send(7, 100);
  EXPECT_EQ(acknowledge(2), (Requests{5, 6}));
  EXPECT_EQ(acknowledge(2), Requests{});
  EXPECT_EQ(acknowledge(3), Requests{7});
  EXPECT_TRUE(flow.idle());
}

TEST_F(RdFlowTest, AnAcknowledgementPassesReadsOver) {
  send(5, 100);
  send_read(6);
  send(7, 100);
  EXPECT_EQ(acknowledge(3), (Requests{5, 7}));
  EXPECT_TRUE(flow.any_unanswered());
  EXPECT_EQ(flow.find(Msn{2}), 0U);
  EXPECT_EQ(flow.take(0), 6U);
  EXPECT_FALSE(flow.any_unanswered());
}

TEST_F(RdFlowTest, AnAcknowledgementIsNotOfWhatIsPartial) {
  send(5, 100);
  send(6, 1000, 2);
  EXPECT_EQ(acknowledge(2), Requests{5});
  EXPECT_TRUE(flow.is_partial(0));
}

TEST_F(RdFlowTest, FindsNoneOfWhichThePeerHasHeardNothing) {
  send(5, 100);
  send(6, 1000, 0);
  EXPECT_EQ(flow.find(Msn{1}), 0U);
  EXPECT_FALSE(flow.find(Msn{}).has_value());
  EXPECT_FALSE(flow.peer_has_part());
  say(1000);
  EXPECT_EQ(flow.find(Msn{2}), 1U);
}

TEST_F(RdFlowTest, WhatIsRefusedIsSentAgainInOrder) {
  send(5, 100);
  send(6, 100);
  send_read(7);
  flow.add(8);
  flow.refuse(1);
  EXPECT_TRUE(flow.refused());
  EXPECT_FALSE(flow.any_unanswered());
  for (uint64_t request = 6; request <= 8; ++request) {
    ASSERT_EQ(flow.next(), request);
    ASSERT_TRUE(flow.begin(kStride, false));
    say(100);
    EXPECT_EQ(opened, request == 6) << "the first behind a refusal opens";
    EXPECT_FALSE(flow.refused());
  }
}

TEST_F(RdFlowTest, APartialMessageIsSentAgainFromItsBeginning) {
  send(5, 1000, 2);
  flow.refuse(0);
  EXPECT_FALSE(flow.partial());
  ASSERT_TRUE(flow.begin(kStride, false));
  EXPECT_EQ(flow.segment().offset, 0U);
  EXPECT_EQ(flow.segment().msn, Msn{});
}

TEST_F(RdFlowTest, AMessageOfNothingOpensAfterARefusal) {
  send(5, 100);
  flow.refuse(0);
  flow.opened();
  EXPECT_FALSE(flow.refused());
}

TEST_F(RdFlowTest, TriesAgainAsOftenAsItMay) {
  EXPECT_TRUE(flow.may_try_again(2));
  EXPECT_TRUE(flow.may_try_again(2));
  EXPECT_FALSE(flow.may_try_again(2));
  EXPECT_TRUE(flow.may_try_again(2)) << "the next one has its own tries";
  EXPECT_TRUE(flow.may_try_again(2));
  flow.taken();
  EXPECT_TRUE(flow.may_try_again(2));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(flow.may_try_again(kRnrForEver));
}

TEST_F(RdFlowTest, OpensAnewWhereThePeerKnowsNothingOfIt) {
  send(5, 100);
  send(6, 100);
  flow.unknown_at(Msn{2});
  send(7, 100);
  EXPECT_TRUE(opened);
  flow.unknown_at(Msn{2});
  send(8, 100);
  EXPECT_FALSE(opened) << "F is behind that message";
}

TEST_F(RdFlowTest, HoldsAReadUpWhileManyAreUnanswered) {
  for (uint64_t i = 0; i < kFlowReads; ++i) send_read(i);
  flow.add(100);
  EXPECT_FALSE(flow.begin(kStride, true));
  EXPECT_EQ(flow.next(), 100U);
  EXPECT_EQ(flow.take(3), 3U);
  EXPECT_TRUE(flow.begin(kStride, true));
}

TEST_F(RdFlowTest, OneAnswerComesAtATime) {
  EXPECT_FALSE(flow.take_response(Msn{1}, false)) << "it has no beginning";
  EXPECT_TRUE(flow.take_response(Msn{1}, true));
  EXPECT_TRUE(flow.take_response(Msn{1}, false));
  EXPECT_FALSE(flow.take_response(Msn{2}, false));
  flow.end_response();
  EXPECT_FALSE(flow.take_response(Msn{1}, false));
}

TEST_F(RdFlowTest, AnAnswerThatNobodyWaitsForCountsUntilItsEnd) {
  send_read(5);
  flow.abandon(Msn{1});
  EXPECT_EQ(flow.take(0), 5U);
  EXPECT_FALSE(flow.idle());
  EXPECT_TRUE(flow.any_unanswered());
  EXPECT_FALSE(flow.forget_abandoned(Msn{2}));
  EXPECT_TRUE(flow.forget_abandoned(Msn{1}));
  EXPECT_TRUE(flow.idle());
  EXPECT_FALSE(flow.any_unanswered());
}

TEST_F(RdFlowTest, AMessageWhoseMemoryIsGoneIsDropped) {
  send(5, 100);
  send(6, 1000, 0);
  flow.drop_message();
  EXPECT_EQ(flow.take_current(), 6U);
  EXPECT_EQ(acknowledge(1), Requests{5});
  EXPECT_TRUE(flow.idle());
}

TEST_F(RdFlowTest, AMessageThatIsGivenUpHasOpenedAllTheSame) {
  send(5, 1000, 1);
  flow.end_message();
  EXPECT_EQ(flow.take_current(), 5U);
  send(6, 100);
  EXPECT_FALSE(opened);
}

TEST_F(RdFlowTest, BeginsAgainWithAllThatWasSent) {
  send(5, 100);
  send_read(6);
  send(7, 1000, 1);
  flow.abandon(Msn{9});
  flow.begin_again();
  EXPECT_FALSE(flow.partial());
  EXPECT_FALSE(flow.any_unanswered());
  for (uint64_t request = 5; request <= 7; ++request) {
    ASSERT_EQ(flow.next(), request);
    ASSERT_TRUE(flow.begin(kStride, false));
    say(100);
    EXPECT_EQ(opened, request == 5);
  }
}

TEST_F(RdFlowTest, GivesAllBackInOrder) {
  send(5, 100);
  send(6, 1000, 1);
  flow.add(7);
  flow.reset();
  EXPECT_EQ(flow.take_any(), 5U);
  EXPECT_EQ(flow.take_any(), 6U);
  EXPECT_EQ(flow.take_any(), 7U);
  EXPECT_FALSE(flow.take_any().has_value());
  EXPECT_TRUE(flow.idle());
}

}  // namespace
}  // namespace weft::wdp
