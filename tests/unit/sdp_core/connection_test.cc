#include "sdp/core/connection.h"

#include <gtest/gtest.h>

#include "tests/unit/sdp_core/pair.h"

namespace weft::sdp {
namespace {

using testing::Side;

class SdpConnection : public ::testing::Test {
 protected:
  void move(Side& from, Side& to) {
    from.send_controls();
    while (!from.out.empty()) {
      to.take(from.out.front());
      from.out.pop_front();
    }
  }
  void settle() {
    do {
      move(a, b);
      a.collect(), b.collect();
      move(b, a);
      a.collect(), b.collect();
      a.send_controls(), b.send_controls();
    } while (!a.out.empty() || !b.out.empty());
  }
  std::optional<Violation> refused(std::vector<std::byte> message) {
    const auto in = b.connection.on_message(message);
    return in.ok() ? std::nullopt : std::optional{in.error()};
  }
  static std::vector<std::byte> message(MessageId mid, uint32_t mseq, size_t extra = 0) {
    std::vector<std::byte> m(Bsdh::kSize + extra);
    Bsdh{.mid = mid, .bufs = 6, .length = static_cast<uint32_t>(m.size()), .mseq = mseq}.encode(
        m.data());
    return m;
  }

  Side a{0};
  Side b{1};
};

// spec/sdp 4: three credits stay for other messages.
TEST_F(SdpConnection, DataStopsAtTheLastThreeCredits) {
  int sent = 0;
  while (a.send_data(10)) ++sent;
  EXPECT_EQ(sent, Side::kBufs - 3);
  move(a, b);
  EXPECT_EQ(b.received, 30U);
  b.send_controls();
  EXPECT_TRUE(b.out.empty()) << "nothing to tell while no receive is posted again";
  b.repost();
  b.send_controls();
  ASSERT_EQ(b.out.size(), 1U) << "the peer has to learn of the receives";
  move(b, a);
  EXPECT_TRUE(a.connection.data_may_go());
}

// spec/sdp 4: a side without credit goes on when the peer posts, by the credit that is kept for it.
TEST_F(SdpConnection, BothSidesWithoutCreditsGoOn) {
  while (a.send_data(1)) {
  }
  while (b.send_data(1)) {
  }
  move(a, b);
  move(b, a);
  EXPECT_FALSE(a.connection.data_may_go());
  EXPECT_FALSE(b.connection.data_may_go());
  a.repost();
  b.repost();
  settle();
  EXPECT_TRUE(a.connection.data_may_go());
  EXPECT_TRUE(b.connection.data_may_go());
}

// Neither program reads, and each message of one side takes a receive that it has posted again.
TEST_F(SdpConnection, TwoFullSidesComeToRest) {
  constexpr int kMost = 20;
  while (a.send_data(1)) {
  }
  while (b.send_data(1)) {
  }
  move(a, b);
  move(b, a);
  a.connection.greet();
  int messages = 0;
  const auto answer = [&messages](Side& from, Side& to) {
    from.send_controls();
    for (; !from.out.empty(); ++messages) {
      to.take(from.out.front());
      from.out.pop_front();
      to.connection.posted();
      ++to.receives;
    }
  };
  int before = -1;
  while (messages != before && messages < kMost) {
    before = messages;
    answer(a, b);
    answer(b, a);
  }
  EXPECT_LT(messages, kMost);
  a.connection.abort();
  answer(a, b);
  b.connection.abort();
  answer(b, a);
  EXPECT_GE(messages, before + 2) << "credits are left for what has to be said";
}

// spec/sdp 6, 1 to 2: no data until the buffer is read, in several Reads.
TEST_F(SdpConnection, ABufferIsReadInPieces) {
  ASSERT_TRUE(a.advertise(1000));
  EXPECT_FALSE(a.connection.data_may_go());
  move(a, b);
  EXPECT_EQ(b.received, 0U) << "a payload of a byte is read once more";
  EXPECT_EQ(b.connection.sink().available(), 1000U);
  b.start_read(600);
  b.start_read(600);
  EXPECT_EQ(b.reads.back().length, 400U);
  b.finish_read();
  move(b, a);
  EXPECT_TRUE(a.connection.advertising());
  b.finish_read();
  move(b, a);
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_EQ(a.sent, 1000U);
  EXPECT_EQ(b.received, 1000U);
  EXPECT_TRUE(a.connection.data_may_go());
}

// spec/sdp 6, 3.
TEST_F(SdpConnection, WhatTheSinkWillNotReadIsSentAsData) {
  ASSERT_TRUE(a.advertise(500));
  move(a, b);
  b.start_read(200);
  b.finish_read();
  b.connection.refuse_src_avail();
  move(b, a);
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_EQ(a.sent, 200U);
  ASSERT_TRUE(a.send_data(150));
  move(a, b);
  EXPECT_EQ(b.received, 350U);
}

// spec/sdp 6, 4: nothing of it has been read.
TEST_F(SdpConnection, ACancelIsAnsweredBySendSm) {
  ASSERT_TRUE(a.advertise(500));
  move(a, b);
  a.connection.cancel_src_avail();
  settle();
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_EQ(a.outcomes, 1);
  EXPECT_EQ(a.sent, 0U);
  EXPECT_FALSE(b.connection.sink().advertised());
}

// spec/sdp 6, 4: while a Read is under way, the cancel is not acknowledged.
TEST_F(SdpConnection, ACancelWaitsForAReadUnderWay) {
  ASSERT_TRUE(a.advertise(500));
  move(a, b);
  b.start_read(100);
  a.connection.cancel_src_avail();
  settle();
  EXPECT_TRUE(a.connection.advertising());
  EXPECT_EQ(b.connection.sink().available(), 0U) << "no further Read may start";
  ASSERT_TRUE(b.send_data(1));
  const auto header = Bsdh::parse(b.out.front().data());
  EXPECT_EQ(header->mseq_ack, 1U);
  b.finish_read();
  b.send_controls();
  ASSERT_EQ(b.out.size(), 3U);
  EXPECT_EQ(Bsdh::parse(b.out[1].data())->mid, MessageId::rdma_rd_compl);
  EXPECT_EQ(Bsdh::parse(b.out[2].data())->mid, MessageId::send_sm);
  EXPECT_EQ(Bsdh::parse(b.out[2].data())->mseq_ack, 2U);
  move(b, a);
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_EQ(a.sent, 100U);
}

// spec/sdp 6, 4: it crosses the answer to what it takes back.
TEST_F(SdpConnection, ACancelThatComesTooLateIsIgnored) {
  ASSERT_TRUE(a.advertise(500));
  move(a, b);
  b.start_read(500);
  b.finish_read();
  a.connection.cancel_src_avail();
  settle();
  EXPECT_EQ(a.sent, 500U);
  EXPECT_EQ(a.outcomes, 1);
  ASSERT_TRUE(a.advertise(300));
  settle();
  EXPECT_EQ(b.connection.sink().available(), 300U);
}

// spec/sdp 6, 5.
TEST_F(SdpConnection, TwoThatAdvertiseAtOnceTakeBoth) {
  ASSERT_TRUE(a.advertise(500));
  ASSERT_TRUE(b.advertise(400));
  settle();
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_FALSE(b.connection.advertising());
  a.repost();
  b.repost();
  settle();
  ASSERT_TRUE(a.send_data(100));
  ASSERT_TRUE(b.send_data(100));
  settle();
  EXPECT_EQ(a.received, 100U);
  EXPECT_EQ(b.received, 100U);
}

TEST_F(SdpConnection, ASideThatHoldsItsPeersBufferAdvertisesNone) {
  ASSERT_TRUE(a.advertise(500));
  settle();
  ASSERT_EQ(b.connection.sink().available(), 500U);
  EXPECT_FALSE(b.advertise(400));
  b.connection.refuse_src_avail();
  EXPECT_TRUE(b.advertise(400));
}

// spec/sdp 8: DisConn goes behind what is advertised.
TEST_F(SdpConnection, TheEndWaitsForWhatIsAdvertised) {
  ASSERT_TRUE(a.advertise(50));
  a.connection.end_sending();
  a.connection.everything_is_sent();
  move(a, b);
  EXPECT_FALSE(b.connection.got_end());
  b.start_read(50);
  b.finish_read();
  settle();
  EXPECT_TRUE(b.connection.got_end());
  EXPECT_FALSE(b.connection.sent_end());
  ASSERT_TRUE(b.send_data(5)) << "the other half goes on";
  settle();
  EXPECT_EQ(a.received, 5U);
  b.connection.end_sending();
  b.connection.everything_is_sent();
  settle();
  EXPECT_TRUE(a.connection.got_end());
}

// spec/sdp 8.
TEST_F(SdpConnection, AbortIsAMessageBeforeAllOthers) {
  ASSERT_TRUE(b.send_data(5));
  move(b, a);
  a.repost();
  a.connection.greet();
  a.connection.abort();
  a.send_controls();
  ASSERT_FALSE(a.out.empty());
  EXPECT_EQ(Bsdh::parse(a.out.front().data())->mid, MessageId::abort_conn);
  const auto in = b.connection.on_message(a.out.front());
  ASSERT_TRUE(in.ok());
  EXPECT_TRUE(in->aborted);
}

// spec/sdp 8: what a killed peer had not read makes its end a reset.
TEST_F(SdpConnection, WhatThePeerHasReadIsToldByItsMessages) {
  EXPECT_TRUE(a.connection.peer_has_read_all());
  ASSERT_TRUE(a.send_data(5));
  EXPECT_FALSE(a.connection.peer_has_read_all()) << "it may not have come";
  move(a, b);
  ASSERT_TRUE(b.send_data(1));
  move(b, a);
  EXPECT_FALSE(a.connection.peer_has_read_all()) << "it has come, and its user has not read it";
  b.repost();
  ASSERT_TRUE(b.send_data(1));
  move(b, a);
  EXPECT_TRUE(a.connection.peer_has_read_all());
}

// What a killed peer had to keep for want of credits, or had advertised, is lost.
TEST_F(SdpConnection, AThrottledPeerMayHaveMore) {
  EXPECT_FALSE(a.connection.peer_may_have_more());
  while (b.send_data(5)) move(b, a);
  EXPECT_TRUE(a.connection.peer_may_have_more());
  a.repost();
  EXPECT_TRUE(a.connection.peer_may_have_more()) << "it was not told yet";
  a.send_controls();
  EXPECT_FALSE(a.connection.peer_may_have_more());
  move(a, b);
  ASSERT_TRUE(b.advertise(500));
  move(b, a);
  EXPECT_TRUE(a.connection.peer_may_have_more());
}

TEST_F(SdpConnection, AReceiveSizeIsAskedForAndStaysAsItIs) {
  auto ask = message(MessageId::ch_rcv_buf, 1, 4);
  LengthHeader{1 << 20}.encode(ask.data() + Bsdh::kSize);
  ASSERT_FALSE(refused(ask));
  b.send_controls();
  ASSERT_EQ(b.out.size(), 1U);
  EXPECT_EQ(Bsdh::parse(b.out[0].data())->mid, MessageId::ch_rcv_buf_ack);
  EXPECT_EQ(LengthHeader::parse(b.out[0].data() + Bsdh::kSize).length, Side::kReceive);
}

// spec/sdp 2 and 5: what ends the connection.
TEST_F(SdpConnection, WhatIsNotAllowedIsRefused) {
  EXPECT_EQ(refused({}), Violation::length);
  EXPECT_EQ(refused(std::vector<std::byte>(15)), Violation::length);
  auto unknown = message(MessageId::data, 1);
  unknown[0] = std::byte{0x44};
  EXPECT_EQ(refused(unknown), Violation::identifier);
  auto longer = message(MessageId::data, 1);
  longer.resize(20);
  EXPECT_EQ(refused(longer), Violation::length);
  EXPECT_EQ(refused(message(MessageId::src_avail, 1, 15)), Violation::length);
  EXPECT_EQ(refused(message(MessageId::dis_conn, 1, 1)), Violation::length);
  EXPECT_EQ(refused(message(MessageId::data, 2)), Violation::number);
  EXPECT_EQ(refused(message(MessageId::data, 0)), Violation::number);
  auto acknowledges = message(MessageId::data, 1);
  store_be<uint32_t>(acknowledges.data() + 12, 1);
  EXPECT_EQ(refused(acknowledges), Violation::number);
}

TEST_F(SdpConnection, AnswersToWhatWasNotAskedAreRefused) {
  EXPECT_EQ(refused(message(MessageId::send_sm, 1)), Violation::advert);
  EXPECT_EQ(refused(message(MessageId::rdma_rd_compl, 2, 4)), Violation::advert);
  EXPECT_EQ(refused(message(MessageId::rdma_wr_compl, 3, 4)), Violation::advert);
}

TEST_F(SdpConnection, MoreBytesThanTheBufferHasAreRefused) {
  ASSERT_TRUE(b.advertise(100));
  auto read = message(MessageId::rdma_rd_compl, 1, 4);
  LengthHeader{101}.encode(read.data() + Bsdh::kSize);
  EXPECT_EQ(refused(read), Violation::advert);
}

TEST_F(SdpConnection, DataWhileABufferIsAdvertisedIsRefused) {
  ASSERT_TRUE(a.advertise(100));
  move(a, b);
  EXPECT_EQ(refused(message(MessageId::data, 2, 1)), Violation::mode);
}

TEST_F(SdpConnection, DataBehindTheEndIsRefused) {
  ASSERT_FALSE(refused(message(MessageId::dis_conn, 1)));
  ASSERT_FALSE(refused(message(MessageId::data, 2))) << "news of credits may come";
  EXPECT_EQ(refused(message(MessageId::data, 3, 1)), Violation::after_end);
  EXPECT_EQ(refused(message(MessageId::dis_conn, 4)), Violation::after_end);
}

// spec/sdp 5: the four changes, and no other.
TEST_F(SdpConnection, ChangesOfMode) {
  uint32_t mseq = 0;
  const auto change = [&](bool send_half, Mode mode) {
    auto m = message(MessageId::mode_change, ++mseq, 4);
    ModeChange{send_half, mode}.encode(m.data() + Bsdh::kSize);
    b.repost();
    const auto in = b.connection.on_message(m);
    b.receives--;
    return in.ok();
  };
  EXPECT_TRUE(change(false, Mode::pipelined));
  EXPECT_TRUE(change(false, Mode::combined));
  EXPECT_FALSE(change(false, Mode::combined));
  EXPECT_FALSE(change(true, Mode::combined));
  EXPECT_FALSE(change(true, Mode::buffered));
  EXPECT_TRUE(change(false, Mode::buffered));
  EXPECT_FALSE(change(false, Mode::pipelined));
  auto advert = message(MessageId::src_avail, ++mseq, 17);
  SrcAvail{100, 1, 2}.encode(advert.data() + Bsdh::kSize);
  EXPECT_EQ(refused(advert), Violation::mode) << "in Buffered mode";
}

// Two threads of a program send in place: each hears of its own buffer.
TEST_F(SdpConnection, AdvertisesNothingBeforeTheLastOutcomeIsTaken) {
  ASSERT_TRUE(a.advertise(1000));
  move(a, b);
  b.start_read(1000);
  b.finish_read();
  b.send_controls();
  for (const auto& m : b.out) ASSERT_TRUE(a.connection.on_message(m).ok());
  EXPECT_FALSE(a.connection.may_advertise());
  EXPECT_TRUE(a.connection.data_may_go());
  const auto outcome = a.connection.take_outcome();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->bytes, 1000U);
  EXPECT_TRUE(a.connection.may_advertise());
}

TEST_F(SdpConnection, ABufferOfOneByteIsRead) {
  ASSERT_TRUE(a.advertise(1));
  move(a, b);
  b.start_read(1);
  b.finish_read();
  settle();
  EXPECT_EQ(b.received, 1U);
  EXPECT_EQ(a.outcomes, 1);
}

}  // namespace
}  // namespace weft::sdp
