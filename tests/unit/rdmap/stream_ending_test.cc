#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

// --- closing

TEST(Stream, CloseSendsWhatIsPostedAndAsksToHaveItCovered) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data, false);
  p.says();
  p.stream.close(p.now);
  EXPECT_EQ(names(p.says()), "RDMA Write") << "AW for the Send that asked for none";
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.hears(delivered(2));
  EXPECT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  p.stream.write_side_shut(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.stream.peer_closed(p.now);
  EXPECT_EQ(p.host.end->kind, Kind::closed);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// What comes after it is flushed, as in an InfiniBand queue pair that rdma_disconnect(3) put into
// error.
TEST(Stream, CloseDoesNotSendWhatIsPostedLater) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.stream.close(p.now);
  post_send(p, data).wr_id = 2;
  EXPECT_EQ(names(p.says()), "Send");
  p.hears(delivered(1));
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write) << "the second one holds up nothing";
  p.stream.write_side_shut(p.now);
  p.stream.peer_closed(p.now);
  ASSERT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.host.sent[0].status, work::Status::success);
  EXPECT_EQ(p.host.sent[1].wr_id, 2U);
  EXPECT_EQ(p.host.sent[1].status, work::Status::flushed);
}

TEST(Stream, CloseWaitsForReads) {
  ScriptPeer p;
  Buffer sink(10);
  p.host.post({.wr_id = 1, .operation = work::Operation::read, .signaled = true},
              {segment(p.host, sink)});
  const auto frames = p.says();
  p.stream.close(p.now);
  p.says();
  EXPECT_EQ(p.stream.wish(), Wish::none);
  const auto request = wire::ReadRequest::parse(frames.at(0).payload.data());
  p.hears(
      {tagged({.op = wire::Opcode::read_response, .stag = request.sink_stag}, pattern_bytes(10, 2)),
       delivered(2)});
  EXPECT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

TEST(Stream, CloseDoesNotWaitForEver) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.close(p.now);
  p.later(1s);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  p.stream.write_side_shut(p.now);
  p.later(1s);
  EXPECT_EQ(p.host.end->kind, Kind::closed);
  EXPECT_EQ(p.host.sent.at(0).status, work::Status::flushed);
}

// The FIN cannot go out, because the socket takes nothing.
TEST(Stream, CloseGivesUpAPeerWhoseWindowStaysShut) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.stream.close(p.now);
  p.later(5s);
  EXPECT_FALSE(p.host.end);
  p.later(6s);
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->kind, Kind::lost);
  EXPECT_EQ(p.stream.wish(), Wish::reset);
}

TEST(Stream, CloseIsPatientWhileRequestsMoveOn) {
  StreamConfig c = script_config(false);
  ScriptPeer p(c);
  Buffer data = pattern_bytes(3 << 20, 1);
  p.host.post({.wr_id = 1, .operation = work::Operation::write, .signaled = true},
              {segment(p.host, data)});
  p.stream.close(p.now);
  // Half a MiB in 900 ms.
  for (mpa::TxBatch batch; p.host.sent.empty();) {
    p.stream.fill(batch, p.now);
    ASSERT_FALSE(batch.empty());
    p.later(900ms);
    ASSERT_FALSE(p.host.end);
    batch.clear();
    p.stream.llp_took_all(p.now);
  }
  EXPECT_EQ(p.host.sent[0].status, work::Status::success);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

// spec/rdmap 4.3: a Delivered goes out before FIN; what is not covered by then fails on the other
// side.
TEST(Stream, TheFinComesBehindTheDelivered) {
  for (const bool asked : {true, false}) {
    ScriptPeer p;
    p.hears(tagged({.stag = Stag{1}, .ack_wanted = asked}));
    EXPECT_EQ(p.stream.output(), asked ? Output::deferrable : Output::none);
    p.stream.close(p.now);
    EXPECT_EQ(p.stream.output(), Output::ready);
    EXPECT_EQ(p.stream.wish(), Wish::none);
    const auto frames = p.says();
    ASSERT_EQ(names(frames), "Delivered");
    EXPECT_EQ(frames[0].to, 1U);
    EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  }
}

TEST(Stream, NothingIsSaidBehindTheFin) {
  ScriptPeer p;
  Buffer memory(16);
  p.stream.close(p.now);
  p.stream.write_side_shut(p.now);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.hears({tagged({.stag = Stag{1}, .ack_wanted = true}), test::read_request(1, {.size = 0})});
  EXPECT_EQ(p.stream.output(), Output::none);
  EXPECT_EQ(names(p.says()), "");
  // Not even a Terminate.
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  EXPECT_EQ(p.host.end->kind, Kind::protocol_error);
  EXPECT_EQ(p.stream.output(), Output::none);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

TEST(Stream, APeerThatClosesFirstEndsAClose) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.close(p.now);
  p.stream.peer_closed(p.now);
  EXPECT_EQ(p.host.end->kind, Kind::closed);
  EXPECT_EQ(p.host.sent.at(0).status, work::Status::flushed);
}

// --- the queue pair goes

TEST(Stream, LeaveSaysWhatIsOwedAndNoMore) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  p.hears({tagged({.stag = Stag{1}}), tagged({.stag = Stag{1}})});
  post_send(p, data);
  p.stream.leave(p.now);
  p.stream.detach();
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Delivered") << "asked for or not: later the peer cannot learn of it";
  EXPECT_EQ(frames[0].to, 2U);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  p.stream.write_side_shut(p.now);
  EXPECT_TRUE(p.stream.wants_bytes()) << "to be discarded";
  p.hears_bytes(pattern_bytes(100, 1));
  p.stream.peer_closed(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::close);
  EXPECT_FALSE(p.host.end) << "it is not told";
}

TEST(Stream, LeaveEndsInAResetWhereTheFinDoesNotGetOut) {
  ScriptPeer p;
  p.hears(tagged({.stag = Stag{1}}));
  p.stream.leave(p.now);
  p.stream.detach();
  p.later(1s);
  EXPECT_EQ(p.stream.wish(), Wish::reset);
}

TEST(Stream, LeaveEndsWithoutTheFinOfThePeer) {
  ScriptPeer p;
  p.stream.leave(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  p.stream.write_side_shut(p.now);
  p.later(1s);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

TEST(Stream, AbortSaysTerminate) {
  ScriptPeer p;
  p.stream.abort(p.now);
  p.stream.detach();
  EXPECT_EQ(terminate_in(p.says()).error, term::kLocalCatastrophic);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  EXPECT_FALSE(p.host.end);
}

TEST(Stream, AbortBehindTheFinJustEnds) {
  ScriptPeer p;
  p.stream.close(p.now);
  p.stream.write_side_shut(p.now);
  p.stream.abort(p.now);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// The queue pair is destroyed while its connection still says goodbye: nothing of it is touched any
// more.
TEST(Stream, TheConsumerMayDieOnceItLetGo) {
  for (int way = 0; way < 4; ++way) {
    auto host = std::make_unique<test::Host>();
    Buffer memory(64);
    Buffer data = pattern_bytes(10, 1);
    host->post({.wr_id = 1, .operation = work::Operation::send}, {segment(*host, data)});
    host->post_receive(1, {segment(*host, memory)});
    Time now = Time::from_ns(1000);
    Stream stream(*host, script_config(), 1, now);
    mpa::TxBatch batch;
    stream.fill(batch, now);
    batch.clear();
    // In the middle of a message.
    stream.received(test::make_fpdu(tagged({.stag = Stag{1}})), now);
    stream.received(test::make_fpdu(untagged({.last = false}, pattern_bytes(8, 1))), now);
    if (way == 0) stream.leave(now);
    if (way == 1) stream.abort(now);
    if (way == 2) stream.received(test::make_fpdu(untagged({.qn = 7})), now);
    if (way == 3) stream.connection_lost();
    (void)stream.abandon_receive();
    stream.detach();
    host.reset();
    for (int step = 0; step < 8; ++step) {
      (void)stream.output();
      stream.fill(batch, now);
      batch.clear();
      stream.llp_took_all(now);
      if (stream.wish() == Wish::shutdown_write) stream.write_side_shut(now);
      if (stream.wants_bytes()) stream.received(pattern_bytes(100, 1), now);
      stream.receives_posted(now);
      stream.trim();
      if (step == 3) stream.peer_closed(now);
      if (step == 6) stream.connection_lost();
      if (!stream.deadline().is_never()) stream.tick(now = stream.deadline());
    }
    EXPECT_TRUE(stream.ended());
  }
}

}  // namespace
}  // namespace weft::rdmap
