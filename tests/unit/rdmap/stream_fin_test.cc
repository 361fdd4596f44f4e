// When a stream that closes may send its FIN.

#include <gtest/gtest.h>

#include "rdmap/stream.h"
#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

// Linux siw gives up a request that it has just sent when a FIN comes close behind the answer.
TEST(StreamFin, APlainPeerThatHasJustSpokenGetsItLater) {
  for (const bool leaves : {false, true}) {
    ScriptPeer p(script_config(false));
    p.hears(kEmptyWrite);
    p.later(5ms);
    if (leaves) {
      p.stream.leave(p.now);
    } else {
      p.stream.close(p.now);
    }
    EXPECT_EQ(p.stream.wish(), Wish::none);
    EXPECT_EQ(p.stream.settles_at(), p.now + 15ms);
    EXPECT_EQ(p.stream.deadline(), p.now + 15ms);
    p.later(15ms);
    EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
    EXPECT_TRUE(p.stream.settles_at().is_never());
  }
}

TEST(StreamFin, WhatComesWhileItClosesPutsItOff) {
  ScriptPeer p(script_config(false));
  p.stream.close(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write) << "the peer has said nothing";
  p.hears(kEmptyWrite);
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.later(20ms);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

TEST(StreamFin, APeerThatIsQuietOrClosesItselfNeedsNoWaiting) {
  ScriptPeer quiet(script_config(false));
  quiet.hears(kEmptyWrite);
  quiet.later(20ms);
  quiet.says();  // the opening Write
  quiet.stream.close(quiet.now);
  EXPECT_EQ(quiet.stream.wish(), Wish::shutdown_write);

  ScriptPeer closes(script_config(false));
  closes.hears(kEmptyWrite);
  closes.stream.leave(closes.now);
  EXPECT_EQ(closes.stream.wish(), Wish::none);
  closes.stream.peer_closed(closes.now);
  EXPECT_EQ(closes.stream.wish(), Wish::shutdown_write);
}

// spec/mpa 2.5.5: siw may sleep over the first FPDU, and loses it when a FIN is what wakes it.
TEST(StreamFin, APlainPeerThatHasSaidNothingIsKickedFirst) {
  for (const bool leaves : {false, true}) {
    ScriptPeer p(script_config(false));
    Buffer data = pattern_bytes(10, 1);
    post_send(p, data);
    EXPECT_EQ(names(p.says()), "Send");
    const Time first = p.now;
    if (leaves) {
      p.stream.leave(p.now);
    } else {
      p.stream.close(p.now);
    }
    std::vector<Duration> kicks;
    while (p.stream.wish() == Wish::none && p.now < first + 1s) {
      EXPECT_EQ(p.stream.settles_at(), first + 50ms);
      EXPECT_LE(p.stream.deadline(), first + 50ms);
      p.later(1ms);
      if (!p.says().empty()) kicks.push_back(p.now - first);
    }
    EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
    EXPECT_EQ(p.now - first, 50ms);
    EXPECT_EQ(kicks, (std::vector<Duration>{5ms, 20ms})) << (leaves ? "leaves" : "closes");
  }
}

TEST(StreamFin, AKickNeverStandsInsideAMessage) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(8U << 20, 1);
  post_send(p, data);
  mpa::TxBatch batch;
  p.stream.fill(batch, p.now);
  ASSERT_FALSE(batch.empty());
  p.stream.leave(p.now);
  p.later(5ms);
  EXPECT_EQ(p.stream.output(), Output::none);
}

TEST(StreamFin, WeftGetsItAtOnce) {
  ScriptPeer p(script_config(true));
  p.hears(kEmptyWrite);
  p.stream.leave(p.now);
  p.says();
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

// spec/mpa 2.5.6: siw's kernel dies of an end that comes too soon after the RTR.
TEST(StreamFin, ATerminateWaitsUntilTheRtrHasSettled) {
  StreamConfig c = script_config(false);
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::write;
  ScriptPeer p(c);
  EXPECT_EQ(names(p.says()), "RDMA Write");
  p.stream.abort(p.now);
  // siw may sleep over the RTR, and would wake to the Terminate.
  for (const auto step : {5ms, 15ms, 60ms}) {
    p.later(step - 1ms);
    EXPECT_EQ(names(p.says()), "");
    p.later(1ms);
    EXPECT_EQ(names(p.says()), "RDMA Write");
  }
  p.later(69ms);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.later(1ms);
  EXPECT_EQ(names(p.says()), "Terminate");
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);

  // What the peer says does not show that it has seen the RTR.
  ScriptPeer speaks(c);
  EXPECT_EQ(names(speaks.says()), "RDMA Write");
  speaks.hears(kEmptyWrite);
  speaks.stream.abort(speaks.now);
  speaks.later(149ms);
  EXPECT_EQ(names(speaks.says()), "");
  speaks.later(1ms);
  EXPECT_EQ(names(speaks.says()), "Terminate");

  // Nor may one that the first thing the program asks for brings about.
  ScriptPeer fails(c);
  fails.host.post({.wr_id = 1, .operation = work::Operation::write_immediate, .signaled = true},
                  {});
  EXPECT_EQ(names(fails.says()), "RDMA Write");
  fails.later(150ms);
  EXPECT_EQ(names(fails.says()), "Terminate");
}

}  // namespace
}  // namespace weft::rdmap
