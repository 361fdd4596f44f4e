#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

// --- the peer goes

TEST(Stream, AFinBetweenFpdusIsAnEnd) {
  ScriptPeer p;
  p.hears(kEmptyWrite);
  p.stream.peer_closed(p.now);
  EXPECT_EQ(p.host.end->kind, Kind::peer_closed);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// spec/rdmap 5.4: nothing more is answered.
TEST(Stream, ReadRequestsBeforeAFinMayStayUnanswered) {
  for (const bool in_time : {true, false}) {
    ScriptPeer p;
    Buffer memory = pattern_bytes(100, 1);
    p.hears(test::read_request(1, {.size = 100,
                                   .source_stag = p.host.add_region(memory),
                                   .source_to = test::address_of(memory)}));
    if (in_time) {
      EXPECT_EQ(names(p.says()), "RDMA Read Response");
    }
    p.stream.peer_closed(p.now);
    EXPECT_TRUE(p.says().empty());
    EXPECT_EQ(p.host.end->kind, Kind::peer_closed);
    EXPECT_EQ(p.stream.wish(), Wish::close);
  }
}

TEST(Stream, AFinInsideAnFpduIsALoss) {
  ScriptPeer p;
  p.hears_bytes(Bytes{test::make_fpdu(kEmptyWrite)}.first(7));
  p.stream.peer_closed(p.now);
  EXPECT_EQ(p.host.end->kind, Kind::lost);
  EXPECT_EQ(p.host.end->error, term::kMpaConnectionLost);
}

TEST(Stream, AResetIsALoss) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.connection_lost();
  EXPECT_EQ(p.host.end->kind, Kind::lost);
  EXPECT_EQ(p.host.sent.at(0).status, work::Status::flushed);
  EXPECT_EQ(p.stream.wish(), Wish::close);
  EXPECT_FALSE(p.stream.wants_bytes());
}

TEST(Stream, MemoryThatIsGoneInTheMiddleOfAnFpdu) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.source_lost(data.data());
  EXPECT_EQ(p.host.end->kind, Kind::local_error);
  EXPECT_EQ(p.host.sent.at(0).status, work::Status::local_protection);
  EXPECT_EQ(names(p.says()), "") << "no FPDU can follow the bytes that are missing";
}

// ibv_destroy_qp(3) has come first: the requests are no more, and neither is who they were of.
TEST(Stream, MemoryThatIsGoneBehindTheQueuePairIsNobodysFault) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  const work::SendWqe& w = post_send(p, data);
  p.says();
  p.stream.leave(p.now);
  p.stream.source_lost(data.data());
  EXPECT_EQ(w.status, work::Status::success);
  EXPECT_EQ(p.stream.wish(), Wish::close);
  EXPECT_EQ(names(p.says()), "");
}

TEST(Stream, MemoryOfThePeersThatIsGoneBehindTheQueuePairIsNobodysFault) {
  ScriptPeer p;
  Buffer room(10);
  const work::SendWqe& w =
      p.host.post({.wr_id = 1, .operation = work::Operation::read}, {segment(p.host, room)});
  const auto asked = p.says();
  ASSERT_EQ(asked.size(), 1U);
  const Buffer response =
      test::make_fpdu(tagged({.op = wire::Opcode::read_response,
                              .stag = wire::ReadRequest::parse(asked[0].payload.data()).sink_stag},
                             pattern_bytes(10, 1)));
  p.hears_bytes(Bytes{response}.first(20));
  p.stream.leave(p.now);
  p.stream.peer_source_lost();
  EXPECT_EQ(w.status, work::Status::success);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// --- bytes in

TEST(Stream, DirectPlacesAreAskedForAnew) {
  rdmap::StreamConfig config = test::script_config();
  config.mpa.crc = false;  // then they are in the program's memory
  ScriptPeer p(config);
  Buffer memory(40'000);
  const Stag stag = p.host.add_region(memory);
  const Buffer frame = test::make_fpdu(
      tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(40'000, 1)));
  p.hears_bytes(Bytes{frame}.first(1000));
  ASSERT_TRUE(p.stream.direct());
  PieceList places;
  ASSERT_TRUE(p.stream.direct_places(places, p.now));
  EXPECT_EQ(places.pieces()[0].iov_base, memory.data() + 1000 - 16);
  p.host.regions.erase(stag);
  PieceList gone;
  EXPECT_FALSE(p.stream.direct_places(gone, p.now));
  EXPECT_EQ(p.host.end->error, term::kTaggedInvalidStag);
}

TEST(Stream, AClosingStreamTakesRequestsUntilTheFin) {
  ScriptPeer p;
  Buffer memory = pattern_bytes(16, 1);
  const Stag stag = p.host.add_region(memory);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.close(p.now);
  p.hears(test::read_request(1, {.sink_stag = Stag{5},
                                 .size = 16,
                                 .source_stag = stag,
                                 .source_to = test::address_of(memory)}));
  EXPECT_EQ(names(p.says()), "Delivered, RDMA Read Response");
}

}  // namespace
}  // namespace weft::rdmap
