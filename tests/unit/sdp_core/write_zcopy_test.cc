// Pipelined mode and Write ZCopy (spec/sdp 5 and 7): each row of the tables in write_source.h and
// write_sink.h, and the crossings of 7.
#include <gtest/gtest.h>

#include "tests/unit/sdp_core/pair.h"

namespace weft::sdp {
namespace {

using testing::Side;

constexpr uint32_t kBuffer = 1000;

// `a` is the source and `b` the sink of the half connection that is looked at.
class SdpWriteZcopy : public ::testing::Test {
 protected:
  SdpWriteZcopy() { a.peer = &b, b.peer = &a; }

  void move_one(Side& from, Side& to) {
    ASSERT_FALSE(from.out.empty());
    to.take(from.out.front());
    from.out.pop_front();
    to.repost();
  }
  void move(Side& from, Side& to) {
    from.send_controls();
    while (!from.out.empty()) move_one(from, to);
  }
  void settle() {
    do {
      move(a, b);
      move(b, a);
      a.send_controls(), b.send_controls();
    } while (!a.out.empty() || !b.out.empty());
  }
  void pipeline() {
    ASSERT_TRUE(a.connection.change_send_mode(Mode::pipelined));
    settle();
    ASSERT_EQ(b.connection.receive_mode(), Mode::pipelined);
  }
  // `a` is told of a buffer by a message that acknowledges the last one that it has sent.
  std::optional<Violation> refused_behind(uint32_t acknowledged) {
    std::vector<std::byte> m(Bsdh::kSize + SinkAvail::kSize);
    Bsdh{.mid = MessageId::sink_avail,
         .bufs = Side::kBufs,
         .length = static_cast<uint32_t>(m.size()),
         .mseq = ++mseq,
         .mseq_ack = acknowledged}
        .encode(m.data());
    SinkAvail{kBuffer, 1, 2, 0}.encode(m.data() + Bsdh::kSize);
    const auto in = a.connection.on_message(m);
    return in.ok() ? std::nullopt : std::optional{in.error()};
  }
  // The next message of `from`.
  static MessageId first(const Side& from) { return Bsdh::parse(from.out.front().data())->mid; }
  // A message of the sink's that `a` gets next.
  std::optional<Violation> refused(MessageId mid, const SinkAvail& buffer = {}) {
    std::vector<std::byte> m(Bsdh::kSize + extended_header_size(mid));
    Bsdh{.mid = mid, .bufs = Side::kBufs, .length = static_cast<uint32_t>(m.size()), .mseq = ++mseq}
        .encode(m.data());
    if (mid == MessageId::sink_avail) buffer.encode(m.data() + Bsdh::kSize);
    if (mid == MessageId::rdma_wr_compl) LengthHeader{buffer.length}.encode(m.data() + Bsdh::kSize);
    const auto in = a.connection.on_message(m);
    return in.ok() ? std::nullopt : std::optional{in.error()};
  }
  // `a` is told that it may advertise buffers, and the other way round.
  void pipeline_by_hand() {
    ASSERT_TRUE(a.connection.change_send_mode(Mode::pipelined));
    a.send_controls();
    ASSERT_EQ(a.connection.send_mode(), Mode::pipelined);
  }

  Side a{0};
  Side b{1};
  uint32_t mseq = 0;
};

// spec/sdp 5: REQ_PIPE is a wish, which weft's source grants.
TEST_F(SdpWriteZcopy, ASinkAsksForPipelinedModeOnce) {
  b.connection.ask_for_pipelined();
  b.send_controls();
  ASSERT_EQ(b.out.size(), 1U);
  EXPECT_EQ(Bsdh::parse(b.out.front().data())->flags, Bsdh::kRequestPipelined);
  b.connection.ask_for_pipelined();
  b.send_controls();
  EXPECT_EQ(b.out.size(), 1U) << "once, though there was no answer";
  settle();
  EXPECT_EQ(a.connection.send_mode(), Mode::pipelined);
  EXPECT_EQ(b.connection.receive_mode(), Mode::pipelined);
  EXPECT_EQ(b.connection.send_mode(), Mode::combined) << "the other half stays as it is";
  b.connection.ask_for_pipelined();
  b.send_controls();
  EXPECT_TRUE(b.out.empty());
}

TEST_F(SdpWriteZcopy, AChangeOfModeWaitsForWhatIsAdvertised) {
  ASSERT_TRUE(a.advertise(500));
  ASSERT_TRUE(a.connection.change_send_mode(Mode::pipelined));
  EXPECT_FALSE(a.connection.change_send_mode(Mode::buffered)) << "one change at a time";
  settle();
  EXPECT_EQ(b.connection.receive_mode(), Mode::combined);
  b.start_read(500);
  b.finish_read();
  settle();
  EXPECT_EQ(b.connection.receive_mode(), Mode::pipelined);
}

TEST_F(SdpWriteZcopy, InPipelinedModeASrcAvailHasNoPayload) {
  pipeline();
  ASSERT_TRUE(a.advertise(500));
  EXPECT_EQ(a.out.back().size(), Bsdh::kSize + SrcAvail::kSize);
  settle();
  b.start_read(500);
  b.finish_read();
  settle();
  EXPECT_EQ(a.sent, 500U);
}

TEST_F(SdpWriteZcopy, ASrcAvailOfPipelinedModeWithPayloadIsRefused) {
  Sink sink;
  ASSERT_TRUE(sink.on_mode_change(Mode::pipelined));
  EXPECT_FALSE(sink.on_src_avail({100, 1, 2}, 1));
  EXPECT_TRUE(sink.on_src_avail({100, 1, 2}, 0));
}

TEST_F(SdpWriteZcopy, ASinkAdvertisesInPipelinedModeAlone) {
  EXPECT_FALSE(b.offer(kBuffer));
  pipeline();
  EXPECT_TRUE(b.offer(kBuffer));
  EXPECT_TRUE(b.offer(kBuffer));
  EXPECT_FALSE(b.offer(kBuffer)) << "two at a time";
}

TEST_F(SdpWriteZcopy, ABufferIsWrittenToAndCompleted) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_FALSE(a.advertise(500)) << "a source that may write does not advertise";
  ASSERT_TRUE(a.write(700));
  EXPECT_FALSE(a.connection.data_may_go()) << "RdmaWrCompl goes first";
  EXPECT_FALSE(a.connection.may_write());
  a.send_controls();
  ASSERT_EQ(first(a), MessageId::rdma_wr_compl);
  EXPECT_TRUE(a.connection.data_may_go());
  move(a, b);
  EXPECT_EQ(b.received, 700U);
  EXPECT_FALSE(b.connection.offering());
}

TEST_F(SdpWriteZcopy, BuffersAreCompletedOldestFirst) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  ASSERT_TRUE(a.write(10));
  a.send_controls();
  ASSERT_TRUE(a.write(5000));
  settle();
  EXPECT_EQ(b.received, 10U + kBuffer);
  EXPECT_TRUE(b.offers.empty());
}

// spec/sdp 7, 2: Data that goes while a buffer is held discards it on both sides.
TEST_F(SdpWriteZcopy, DataDiscardsABufferThatIsHeld) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  ASSERT_TRUE(a.send_data(20));
  EXPECT_FALSE(a.connection.may_write());
  settle();
  EXPECT_FALSE(b.connection.offering());
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.write(100)) << "the counts still agree";
  settle();
  EXPECT_EQ(b.received, 120U);
}

// A message that tells of receives alone is no Data to a buffer.
TEST_F(SdpWriteZcopy, AMessageWithoutPayloadDiscardsNoBuffer) {
  pipeline();
  ASSERT_TRUE(a.send_data(0));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.connection.may_write()) << "it crossed one, and is fresh";
  ASSERT_TRUE(a.send_data(0));
  settle();
  EXPECT_TRUE(b.connection.offering());
  ASSERT_TRUE(a.write(100));
  settle();
  EXPECT_EQ(b.received, 100U);
}

TEST_F(SdpWriteZcopy, ABufferThatCrossesDataIsStale) {
  pipeline();
  ASSERT_TRUE(a.send_data(20));
  ASSERT_TRUE(a.send_data(30));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_FALSE(a.connection.may_write());
  settle();
  EXPECT_FALSE(b.connection.offering());
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.write(100)) << "the counts agree again";
  settle();
  EXPECT_EQ(b.received, 150U);
}

TEST_F(SdpWriteZcopy, OfTwoBuffersThatCrossOneMessageTheSecondHolds) {
  pipeline();
  ASSERT_TRUE(a.send_data(20));
  ASSERT_TRUE(b.offer(kBuffer));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  ASSERT_TRUE(a.write(100));
  EXPECT_FALSE(a.connection.may_write());
  settle();
  EXPECT_EQ(b.received, 120U);
}

// spec/sdp 7, 3.
TEST_F(SdpWriteZcopy, ASrcAvailThatCrossesABufferIsTakenBack) {
  pipeline();
  ASSERT_TRUE(a.advertise(500));
  ASSERT_TRUE(b.offer(kBuffer));
  a.connection.cancel_src_avail();
  settle();
  EXPECT_FALSE(b.connection.sink().advertised());
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_EQ(a.outcomes, 1);
  EXPECT_EQ(a.sent, 0U);
  EXPECT_TRUE(b.connection.offering());
  ASSERT_TRUE(a.write(500));
  settle();
  EXPECT_EQ(b.received, 500U);
}

TEST_F(SdpWriteZcopy, ASrcAvailBehindDataThatCrossesABufferStays) {
  pipeline();
  ASSERT_TRUE(a.send_data(20));
  ASSERT_TRUE(a.advertise(500));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.connection.advertising());
  move(a, b);
  EXPECT_EQ(b.connection.sink().available(), 500U);
  EXPECT_FALSE(b.offer(kBuffer)) << "a sink that may read does not advertise";
  b.start_read(500);
  b.finish_read();
  EXPECT_FALSE(b.offer(kBuffer)) << "RdmaRdCompl goes first";
  settle();
  EXPECT_EQ(b.received, 520U);
  EXPECT_TRUE(b.offer(kBuffer));
}

// The cancel of a buffer that a SinkAvail has taken back must not meet the next one.
TEST_F(SdpWriteZcopy, ACancelEndsWithTheSrcAvailThatIsTakenBack) {
  pipeline();
  ASSERT_TRUE(a.advertise(500));
  a.connection.cancel_src_avail();
  ASSERT_TRUE(b.offer(kBuffer));
  move_one(b, a);
  ASSERT_FALSE(a.connection.advertising());
  a.collect();
  ASSERT_TRUE(a.send_data(10)) << "which discards the buffer";
  ASSERT_TRUE(a.advertise(300));
  settle();
  EXPECT_EQ(b.connection.sink().available(), 300U);
}

// A sink that has a SinkAvail outstanding drops a SrcAvail, but not a byte of the stream.
TEST_F(SdpWriteZcopy, ASrcAvailWithPayloadIsRefusedWhereABufferIsOffered) {
  ReceivingHalf sink{1};
  ASSERT_TRUE(sink.on_mode_change(Mode::pipelined));
  (void)sink.advertise(kBuffer);
  const std::byte byte{};
  EXPECT_TRUE(sink.on_src_avail({500, 1, 2}, {}).ok());
  const auto with_byte = sink.on_src_avail({500, 1, 2}, {&byte, 1});
  ASSERT_FALSE(with_byte.ok());
  EXPECT_EQ(with_byte.error(), Violation::mode);
}

// spec/sdp 7, 5.
TEST_F(SdpWriteZcopy, ACancelIsAnsweredWhereABufferIsDropped) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  ASSERT_TRUE(b.offer(kBuffer));
  b.connection.cancel_sink_avail();
  EXPECT_FALSE(b.offer(kBuffer)) << "no buffer follows before the answer";
  move(b, a);
  EXPECT_FALSE(a.connection.may_write());
  EXPECT_FALSE(a.connection.data_may_go()) << "SinkCancelAck goes first";
  a.send_controls();
  ASSERT_EQ(first(a), MessageId::sink_cancel_ack);
  EXPECT_TRUE(b.connection.offering()) << "it is the peer's until the answer";
  ASSERT_TRUE(a.send_data(20));
  settle();
  EXPECT_FALSE(b.connection.offering());
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.write(100)) << "the counts agree";
}

TEST_F(SdpWriteZcopy, ACancelThatCrossesACompletionHasNoAnswer) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  ASSERT_TRUE(a.write(300));
  b.connection.cancel_sink_avail();
  move(b, a);
  a.send_controls();
  ASSERT_EQ(a.out.size(), 1U);
  EXPECT_EQ(first(a), MessageId::rdma_wr_compl);
  settle();
  EXPECT_EQ(b.received, 300U);
  EXPECT_TRUE(b.offer(kBuffer)) << "the cancel is over";
}

TEST_F(SdpWriteZcopy, ACancelThatCrossesDataHasNoAnswer) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  ASSERT_TRUE(a.send_data(20));
  b.connection.cancel_sink_avail();
  move(b, a);
  a.send_controls();
  for (const auto& m : a.out) EXPECT_EQ(Bsdh::parse(m.data())->mid, MessageId::data);
  settle();
  EXPECT_FALSE(b.connection.offering());
  EXPECT_TRUE(b.offer(kBuffer));
}

TEST_F(SdpWriteZcopy, ACancelOfAWrittenAndAnUnusedBufferIsAnsweredBehindTheCompletion) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  ASSERT_TRUE(a.write(300));
  b.connection.cancel_sink_avail();
  move(b, a);
  a.send_controls();
  ASSERT_EQ(a.out.size(), 2U);
  EXPECT_EQ(first(a), MessageId::rdma_wr_compl);
  settle();
  EXPECT_EQ(b.received, 300U);
  EXPECT_FALSE(b.connection.offering());
}

// spec/sdp 5: the change to Combined ends what the sink has advertised, though it crosses.
TEST_F(SdpWriteZcopy, ABufferThatCrossesTheChangeToCombinedIsDiscarded) {
  pipeline();
  ASSERT_TRUE(a.send_data(10));
  settle();
  ASSERT_TRUE(a.connection.change_send_mode(Mode::combined));
  a.send_controls();
  ASSERT_TRUE(a.send_data(20));
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_FALSE(a.connection.may_write());
  settle();
  EXPECT_FALSE(b.connection.offering());
  EXPECT_EQ(b.received, 30U);
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.write(100)) << "the counts agree";
}

TEST_F(SdpWriteZcopy, DataInFrontOfTheChangeDiscardsABufferThatCrossesBoth) {
  pipeline();
  ASSERT_TRUE(a.send_data(20));
  ASSERT_TRUE(a.connection.change_send_mode(Mode::combined));
  a.send_controls();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  settle();
  EXPECT_FALSE(b.connection.offering());
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  EXPECT_TRUE(a.write(100)) << "the counts agree";
}

TEST_F(SdpWriteZcopy, TheWayBackToPipelinedWaitsUntilTheSinkHasLeft) {
  pipeline();
  ASSERT_TRUE(a.connection.change_send_mode(Mode::combined));
  a.send_controls();
  a.out.clear();
  ASSERT_TRUE(a.connection.change_send_mode(Mode::pipelined));
  a.send_controls();
  EXPECT_TRUE(a.out.empty());
}

// A SrcAvail that was not read is dropped, and the source advertises it again.
TEST_F(SdpWriteZcopy, AChangeToCombinedDropsASrcAvailThatIsNotBeingRead) {
  Sink sink;
  ASSERT_TRUE(sink.on_mode_change(Mode::pipelined));
  ASSERT_TRUE(sink.on_src_avail({100, 1, 2}, 0));
  ASSERT_TRUE(sink.on_mode_change(Mode::combined));
  EXPECT_FALSE(sink.advertised());
  ASSERT_TRUE(sink.on_mode_change(Mode::pipelined));
  ASSERT_TRUE(sink.on_src_avail({100, 1, 2}, 0));
  (void)sink.start_read(10);
  EXPECT_FALSE(sink.on_mode_change(Mode::combined));
}

TEST_F(SdpWriteZcopy, TheEndOfTheStreamEndsWhatIsAdvertised) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  a.connection.end_sending();
  a.connection.everything_is_sent();
  a.send_controls();
  ASSERT_EQ(first(a), MessageId::dis_conn);
  move(b, a);
  EXPECT_FALSE(a.connection.may_write());
  settle();
  EXPECT_FALSE(b.connection.offering());
  EXPECT_TRUE(b.offers.empty());
  EXPECT_FALSE(b.offer(kBuffer));
}

TEST_F(SdpWriteZcopy, ASourceThatHasEndedIgnoresWhatIsAdvertised) {
  pipeline_by_hand();
  a.connection.end_sending();
  a.connection.everything_is_sent();
  a.send_controls();
  ASSERT_TRUE(a.connection.sent_end());
  EXPECT_FALSE(refused(MessageId::sink_avail, {0, 1, 2, 9}));
  EXPECT_FALSE(a.connection.may_write());
}

TEST_F(SdpWriteZcopy, TheEndGoesBehindACompletion) {
  pipeline();
  ASSERT_TRUE(b.offer(kBuffer));
  move(b, a);
  ASSERT_TRUE(a.write(300));
  a.connection.end_sending();
  a.connection.everything_is_sent();
  a.send_controls();
  EXPECT_EQ(first(a), MessageId::rdma_wr_compl);
  settle();
  EXPECT_EQ(b.received, 300U);
  EXPECT_TRUE(b.connection.got_end());
}

// A SinkAvail may carry data of its sender's own half connection.
TEST_F(SdpWriteZcopy, ThePayloadOfASinkAvailIsData) {
  pipeline_by_hand();
  std::vector<std::byte> m(Bsdh::kSize + SinkAvail::kSize + 3);
  Bsdh{.mid = MessageId::sink_avail,
       .bufs = Side::kBufs,
       .length = static_cast<uint32_t>(m.size()),
       .mseq = 1,
       .mseq_ack = 1}
      .encode(m.data());
  SinkAvail{kBuffer, 1, 2, 0}.encode(m.data() + Bsdh::kSize);
  const auto in = a.connection.on_message(m);
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(in->payload.size(), 3U);
  EXPECT_TRUE(a.connection.may_write());
}

TEST_F(SdpWriteZcopy, ASinkAvailOutsideOfPipelinedModeIsRefused) {
  EXPECT_EQ(refused(MessageId::sink_avail, {kBuffer, 1, 2, 0}), Violation::mode);
}

TEST_F(SdpWriteZcopy, UselessBuffersAreRefused) {
  const SinkAvail useless[] = {
      {0, 1, 2, 0},
      {Side::kReceive - Bsdh::kSize - 1, 1, 2, 0},  // less than one message carries
      {kBuffer, 1, UINT64_MAX - kBuffer + 2, 0},    // it wraps
      {kBuffer, 1, 2, 1},                           // more Data than was sent
      {kBuffer, 1, 2, UINT32_MAX / 2},
  };
  for (const SinkAvail& buffer : useless) {
    WriteSource source{2, Side::kReceive - Bsdh::kSize};
    EXPECT_EQ(source.on_sink_avail(buffer, false), WriteSource::Taken::broken);
  }
  WriteSource source{2, Side::kReceive - Bsdh::kSize};
  EXPECT_EQ(source.on_sink_avail({kBuffer, 1, UINT64_MAX - kBuffer + 1, 0}, false),
            WriteSource::Taken::held)
      << "it ends at the last address";
  pipeline_by_hand();
  EXPECT_EQ(refused(MessageId::sink_avail, {0, 1, 2, 0}), Violation::advert);
}

TEST_F(SdpWriteZcopy, MoreBuffersThanMayBeAreRefused) {
  pipeline_by_hand();
  EXPECT_FALSE(refused(MessageId::sink_avail, {kBuffer, 1, 2, 0}));
  EXPECT_FALSE(refused(MessageId::sink_avail, {kBuffer, 1, 2, 0}));
  EXPECT_EQ(refused(MessageId::sink_avail, {kBuffer, 1, 2, 0}), Violation::advert);
}

// A peer that had taken the SrcAvail would have read it.
TEST_F(SdpWriteZcopy, ABufferOfASinkThatHoldsASrcAvailIsRefused) {
  pipeline_by_hand();
  ASSERT_TRUE(a.advertise(500));
  EXPECT_EQ(refused_behind(2), Violation::mode) << "the change of mode is message 1";
}

TEST_F(SdpWriteZcopy, ABufferOfASinkThatHasNotGotTheSrcAvailHolds) {
  pipeline_by_hand();
  ASSERT_TRUE(a.advertise(500));
  EXPECT_EQ(refused_behind(1), std::nullopt);
  EXPECT_FALSE(a.connection.advertising());
  EXPECT_TRUE(a.connection.may_write());
}

TEST_F(SdpWriteZcopy, AnswersToNoBufferAreRefused) {
  EXPECT_EQ(refused(MessageId::rdma_wr_compl, {.length = 1}), Violation::advert);
}

TEST_F(SdpWriteZcopy, AnAnswerToNoCancelIsRefused) {
  EXPECT_EQ(refused(MessageId::sink_cancel_ack), Violation::advert);
}

TEST_F(SdpWriteZcopy, ACompletionIsOfOneByteToAllOfTheBuffer) {
  for (const auto& [bytes, good] :
       {std::pair{0U, false}, {1U, true}, {kBuffer, true}, {kBuffer + 1, false}}) {
    WriteSink sink{1};
    (void)sink.advertise(kBuffer);
    EXPECT_EQ(sink.on_written(bytes), good) << bytes;
  }
}

// Two threads of a program receive: each hears of its own buffer.
TEST_F(SdpWriteZcopy, AdvertisesNothingBeforeTheLastOutcomeIsTaken) {
  WriteSink sink{1};
  (void)sink.advertise(kBuffer);
  ASSERT_TRUE(sink.on_written(5));
  EXPECT_FALSE(sink.may_advertise());
  EXPECT_EQ(sink.take_outcome(), 5U);
  EXPECT_TRUE(sink.may_advertise());
}

}  // namespace
}  // namespace weft::sdp
