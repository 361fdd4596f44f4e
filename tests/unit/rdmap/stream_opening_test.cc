// Who may speak first, the RTR frame, and the kicks that wake a peer.

#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

// RFC 5044 section 7.1.2: the Responder MUST NOT send any FPDU before it has received one.
TEST(Stream, AResponderIsSilentUntilTheFirstFpdu) {
  ScriptPeer p(responder());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "");
  p.later(5s);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_FALSE(p.host.ready);
  p.hears(kEmptyWrite);
  EXPECT_TRUE(p.host.ready);
  EXPECT_EQ(names(p.says()), "Send");
}

TEST(Stream, AnFpduThatIsRefusedOpensNothing) {
  ScriptPeer p(responder());
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  EXPECT_FALSE(p.host.ready);
  EXPECT_EQ(p.host.end->kind, Kind::protocol_error);
}

TEST(Stream, AResponderThatClosesStaysSilent) {
  ScriptPeer p(responder());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.stream.close(p.now);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::none) << "the first FPDU may come yet";
  p.later(1s);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);

  ScriptPeer idle(responder());
  idle.stream.close(idle.now);
  EXPECT_EQ(idle.stream.wish(), Wish::shutdown_write) << "nothing to wait for";

  ScriptPeer opened(responder());
  post_send(opened, data);
  opened.stream.close(opened.now);
  opened.hears(kEmptyWrite);
  EXPECT_EQ(names(opened.says()), "Delivered, Send");
  EXPECT_FALSE(opened.host.ready) << "it is closing";
}

TEST(Stream, AResponderThatAbortsSaysNothing) {
  ScriptPeer p(responder());
  p.stream.abort(p.now);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// spec/mpa 2.4: the frame that was agreed on is the very first one.
TEST(Stream, TheRtrFrameComesFirst) {
  for (const auto& [rtr, expected] : {std::pair{mpa::Rtr::write, "RDMA Write, Send"},
                                      std::pair{mpa::Rtr::read, "RDMA Read Request, Send"},
                                      std::pair{mpa::Rtr::fpdu, "empty FPDU, Send"}}) {
    StreamConfig c = script_config();
    c.mpa.peer_to_peer = true;
    c.mpa.rtr = rtr;
    ScriptPeer p(c);
    Buffer data = pattern_bytes(10, 1);
    post_send(p, data);
    EXPECT_EQ(names(p.says()), expected);
  }
}

// siw's Responder does not wait for it: its requests may be there before ours are out.
TEST(Stream, TheRtrWriteComesBeforeAnswersToAnImpatientPeer) {
  StreamConfig c = script_config();
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::write;
  ScriptPeer p(c);
  p.hears(test::read_request(1, {.sink_stag = Stag{5}, .size = 0}));
  EXPECT_EQ(names(p.says()), "RDMA Write, RDMA Read Response");
}

// A Responder may choose the RTR read and allow no other.
TEST(Stream, TheRtrReadNeedsNoOrd) {
  StreamConfig c = script_config();
  c.mpa = {.peer_to_peer = true, .rtr = mpa::Rtr::read, .ird = 0, .ord = 0};
  ScriptPeer active(c);
  const auto frames = active.says();
  ASSERT_EQ(names(frames), "RDMA Read Request");
  const auto request = wire::ReadRequest::parse(frames[0].payload.data());
  EXPECT_EQ(request.size, 0U);

  c.initiator = false;
  ScriptPeer passive(c);
  passive.hears(frames[0].ulpdu);
  const auto answer = passive.says();
  ASSERT_EQ(names(answer), "RDMA Read Response");
  EXPECT_FALSE(passive.host.end);
  active.hears(answer[0].ulpdu);
  EXPECT_FALSE(active.host.end);
  EXPECT_TRUE(active.host.sent.empty()) << "it completes no request";
}

TEST(Stream, OnlyAResponderTakesAnEmptyFpdu) {
  StreamConfig c = script_config();
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::fpdu;
  ScriptPeer active(c);
  active.hears(Buffer{});
  EXPECT_EQ(active.host.end->error, term::kMpaLength);
  c.initiator = false;
  ScriptPeer passive(c);
  passive.hears(Buffer{});
  EXPECT_TRUE(passive.host.ready);
}

// spec/mpa 2.4: a server that speaks first waits for an FPDU that no program posted.
TEST(Stream, AnIdleInitiatorOpensWithAnEmptyWrite) {
  ScriptPeer weft(script_config(true));
  weft.later(0s);
  EXPECT_EQ(names(weft.says()), "RDMA Write") << "at once where X is agreed";
  ScriptPeer plain(script_config(false));
  plain.later(9ms);
  EXPECT_EQ(names(plain.says()), "");
  plain.later(1ms);
  EXPECT_EQ(names(plain.says()), "RDMA Write");
  plain.later(4ms);
  EXPECT_EQ(names(plain.says()), "");
}

TEST(Stream, AnInitiatorWithWorkNeedsNoEmptyWrite) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "Send");
  p.hears(kEmptyWrite);
  p.later(1s);
  EXPECT_EQ(names(p.says()), "");
}

// spec/mpa 2.5.5: 5, 20, 80 and 320 ms after the first FPDU, until a byte comes.
TEST(Stream, KicksAPeerThatSaysNothing) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "Send");
  const Time first = p.now;
  std::vector<Duration> kicks;
  for (int ms = 1; ms <= 2000; ++ms) {
    p.later(1ms);
    if (!p.says().empty()) kicks.push_back(p.now - first);
  }
  EXPECT_EQ(kicks, (std::vector<Duration>{5ms, 20ms, 80ms, 320ms}));
  EXPECT_EQ(p.host.sent.size(), 1U) << "a kick completes nothing";
}

TEST(Stream, TheFirstByteEndsTheKicks) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.later(6ms);
  EXPECT_EQ(names(p.says()), "RDMA Write");
  p.hears_bytes(Buffer(1));
  p.later(1s);
  EXPECT_EQ(names(p.says()), "");
}

TEST(Stream, NoKicksBetweenWeftsNorFromAResponder) {
  Buffer data = pattern_bytes(10, 1);
  for (const bool initiator : {true, false}) {
    StreamConfig c = script_config(initiator);
    c.initiator = initiator;
    ScriptPeer p(c);
    if (!initiator) p.hears(kEmptyWrite);
    post_send(p, data, false);
    EXPECT_EQ(names(p.says()), "Send");
    p.later(2s);
    EXPECT_EQ(names(p.says()), "");
  }
}

TEST(Stream, KicksGoOnAfterARtr) {
  StreamConfig c = script_config(false);
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::write;
  ScriptPeer p(c);
  EXPECT_EQ(names(p.says()), "RDMA Write");
  p.later(5ms);
  EXPECT_EQ(names(p.says()), "RDMA Write");
}

}  // namespace
}  // namespace weft::rdmap
