// The ways in which streams end when the other side does not help (spec/errors 4, spec/rdmap 5).

#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Operation;
using work::Status;
using Kind = work::StreamEnd::Kind;

work::SendWqe writing(Side& to, Buffer& memory, uint64_t wr_id = 1, bool signaled = true) {
  return {.wr_id = wr_id,
          .operation = Operation::write,
          .signaled = signaled,
          .remote_stag = to.host.add_region(memory),
          .remote_to = address_of(memory)};
}

// B does not read any more, and A has more to say than the window holds.
struct DeafPeer {
  explicit DeafPeer(bool extension)
      : p(options(extension)), from(pattern_bytes(3'000'000, 1)), to(3'000'000) {
    p.drive(20ms);
    p.b.deaf(true);
    p.a.host.post(writing(p.b, to), {segment(p.a.host, from)});
    p.drive(100ms);
    EXPECT_TRUE(p.a.host.sent.empty());
  }
  static PairOptions options(bool extension) {
    PairOptions o;
    o.mpa.extension = extension;
    o.link.window = 200'000;
    return o;
  }
  Pair p;
  Buffer from;
  Buffer to;
};

TEST(Ending, ATerminateBehindAFullWindowEndsInAReset) {
  for (const bool extension : {true, false}) {
    DeafPeer d(extension);
    // B's own bytes still come through; one of its requests is wrong.
    Buffer memory(8);
    d.p.b.host.post({.operation = Operation::write, .remote_stag = Stag{0xbad}},
                    {segment(d.p.b.host, memory)});
    d.p.drive(100ms);
    ASSERT_TRUE(d.p.a.host.end);
    EXPECT_EQ(d.p.a.host.sent.at(0).status, Status::flushed);
    EXPECT_FALSE(d.p.a.closed());
    d.p.drive(1s);
    EXPECT_TRUE(d.p.a.closed() && d.p.a.was_reset());
    d.p.b.deaf(false);
    d.p.drive();
    ASSERT_TRUE(d.p.b.host.end);
    EXPECT_EQ(d.p.b.host.end->kind, Kind::lost);
  }
}

TEST(Ending, ACloseBehindAFullWindowEndsInTheEnd) {
  for (const bool extension : {true, false}) {
    DeafPeer d(extension);
    d.p.a.close();
    d.p.drive(5s);
    EXPECT_FALSE(d.p.a.host.end) << "the peer may come back";
    d.p.drive(10s);
    ASSERT_TRUE(d.p.a.host.end);
    EXPECT_EQ(d.p.a.host.end->kind, Kind::lost);
    EXPECT_TRUE(d.p.a.closed() && d.p.a.was_reset());
  }
}

TEST(Ending, ALeaveBehindAFullWindowEndsInAReset) {
  for (const bool extension : {true, false}) {
    DeafPeer d(extension);
    d.p.a.leave();
    EXPECT_EQ(d.p.a.host.sent.at(0).status, Status::flushed);
    d.p.drive(2s);
    EXPECT_TRUE(d.p.a.closed() && d.p.a.was_reset());
  }
}

TEST(Ending, AnAbortBehindAFullWindowEndsInAReset) {
  DeafPeer d(true);
  d.p.a.abort();
  d.p.drive(2s);
  EXPECT_TRUE(d.p.a.closed() && d.p.a.was_reset());
}

TEST(Ending, ADeafPeerThatComesBackInTimeGetsItAll) {
  for (const bool extension : {true, false}) {
    DeafPeer d(extension);
    d.p.a.close();
    d.p.drive(5s);
    d.p.b.deaf(false);
    d.p.drive();
    EXPECT_TRUE(d.to == d.from);
    EXPECT_EQ(d.p.a.host.sent.at(0).status, Status::success);
    EXPECT_EQ(d.p.a.host.end->kind, Kind::closed);
    EXPECT_EQ(d.p.b.host.end->kind, Kind::peer_closed);
  }
}

// A program that destroys its queue pair while the peer's Writes are through and nobody asked for
// them: the peer learns of it.
TEST(Ending, LeavingCoversWhatWasPlaced) {
  Pair p;
  Buffer from = pattern_bytes(1000, 1);
  Buffer to(1000);
  for (uint64_t i = 0; i < 5; ++i) {
    p.a.host.post(writing(p.b, to, i, false), {segment(p.a.host, from)});
  }
  p.drive(10ms);
  EXPECT_TRUE(p.a.host.sent.empty()) << "nobody asked";
  p.b.leave();
  p.drive();
  ASSERT_EQ(p.a.host.sent.size(), 5U);
  for (const auto& d : p.a.host.sent) EXPECT_EQ(d.status, Status::success);
  EXPECT_EQ(p.a.host.end->kind, Kind::peer_closed);
}

// The same with the orderly close of the other side.
TEST(Ending, ClosingCoversWhatWasPlaced) {
  Pair p;
  Buffer from = pattern_bytes(1000, 1);
  Buffer to(1000);
  p.a.host.post(writing(p.b, to, 1, true), {segment(p.a.host, from)});
  p.a.host.post(writing(p.b, to, 2, false), {segment(p.a.host, from)});
  // B closes in the instant in which the Writes arrive.
  p.scheduler.after(26us, [&] { p.b.close(); });
  p.drive();
  ASSERT_EQ(p.a.host.sent.size(), 2U);
  EXPECT_EQ(p.a.host.sent[0].status, Status::success);
  EXPECT_EQ(p.a.host.sent[1].status, Status::success);
}

TEST(Ending, BothCloseAtOnce) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o{.seed = seed};
    o.link.jitter = 100us;
    Pair p{o};
    Buffer from = pattern_bytes(100'000, 1);
    Buffer to(100'000);
    Buffer back(100'000);
    p.drive(1ms);
    p.a.host.post(writing(p.b, to), {segment(p.a.host, from)});
    p.b.host.post(writing(p.a, back), {segment(p.b.host, from)});
    p.a.close();
    p.b.close();
    p.drive();
    ASSERT_TRUE(p.a.host.end && p.b.host.end);
    EXPECT_EQ(p.a.host.end->kind, Kind::closed);
    EXPECT_EQ(p.b.host.end->kind, Kind::closed);
    EXPECT_TRUE(p.a.closed() && p.b.closed());
  }
}

// The receive of a message that never comes to its end is not lost.
TEST(Ending, TheReceiveOfAnUnfinishedMessageIsFlushed) {
  PairOptions o;
  o.mpa.extension = false;
  Pair p{o};
  Buffer from = pattern_bytes(100'000, 1);
  Buffer box(100'000);
  p.b.host.post_receive(5, {segment(p.b.host, box)});
  p.a.host.post({.operation = Operation::send}, {segment(p.a.host, from)});
  p.link.cut_after(p.link.a(), 50'000, sim::Cut::reset);
  p.drive();
  ASSERT_TRUE(p.b.host.end);
  EXPECT_TRUE(p.b.host.received.empty());
  const auto r = p.b.stream.abandon_receive();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->wr_id, 5U);
}

TEST(Ending, OwnMemoryThatIsGone) {
  Pair p;
  Buffer from = pattern_bytes(100, 1);
  Buffer to(100);
  p.a.host.post(writing(p.b, to), {segment(p.a.host, from)});
  p.a.stream.source_lost(from.data() + 99);
  p.drive();
  EXPECT_EQ(p.a.host.sent.at(0).status, Status::local_protection);
  EXPECT_EQ(p.a.host.end->kind, Kind::local_error);
  EXPECT_TRUE(p.a.closed());
  EXPECT_TRUE(p.b.host.end);
}

}  // namespace
}  // namespace weft::test
