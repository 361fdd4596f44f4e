// A Responder whose peer is silent: how long it waits for the first FPDU, and what it does then.

#include <gtest/gtest.h>

#include "rdmap/stream.h"
#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

StreamConfig impatient(bool extension = false) {
  StreamConfig c = responder(extension);
  c.responder_wait = 100ms;
  return c;
}

// Linux siw's programs may wait for the server's first message, and siw sends nothing unasked.
TEST(StreamResponderWait, SpeaksFirstToAPlainPeerThatSaysNothing) {
  ScriptPeer p(impatient());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.later(99ms);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_FALSE(p.host.ready);
  p.later(1ms);
  EXPECT_TRUE(p.host.ready);
  EXPECT_EQ(names(p.says()), "Send");
}

TEST(StreamResponderWait, WhatIsPostedLaterGoesOutAtOnce) {
  ScriptPeer p(impatient());
  p.later(100ms);
  EXPECT_EQ(names(p.says()), "") << "it had nothing to say";
  EXPECT_EQ(p.stream.deadline(), Time::never());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "Send");
}

TEST(StreamResponderWait, ThePeersFirstFpduEndsTheWait) {
  ScriptPeer p(impatient());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.hears(kEmptyWrite);
  EXPECT_EQ(names(p.says()), "Send");
  EXPECT_EQ(p.stream.deadline(), Time::never());
}

// RFC 6581 section 9: there the Initiator owes the RTR frame; and weft opens with a Write.
TEST(StreamResponderWait, WaitsForEverWhereTheInitiatorOwesTheFirstFpdu) {
  StreamConfig peer_to_peer = impatient();
  peer_to_peer.mpa.peer_to_peer = true;
  peer_to_peer.mpa.rtr = mpa::Rtr::write;
  for (const StreamConfig& c : {peer_to_peer, impatient(true)}) {
    ScriptPeer p(c);
    Buffer data = pattern_bytes(10, 1);
    post_send(p, data);
    p.later(1h);
    EXPECT_EQ(names(p.says()), "");
    p.hears(kEmptyWrite);
    EXPECT_TRUE(p.host.ready);
  }
}

TEST(StreamResponderWait, AClosingResponderSaysWhatWasPostedFirst) {
  ScriptPeer p(impatient());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.stream.close(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.later(100ms);
  EXPECT_FALSE(p.host.ready) << "it is closing";
  EXPECT_EQ(names(p.says()), "Send");
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

}  // namespace
}  // namespace weft::rdmap
