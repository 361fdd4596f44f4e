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
    EXPECT_EQ(p.stream.fin_at(), p.now + 15ms);
    EXPECT_EQ(p.stream.deadline(), p.now + 15ms);
    p.later(15ms);
    EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
    EXPECT_TRUE(p.stream.fin_at().is_never());
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

TEST(StreamFin, WeftGetsItAtOnce) {
  ScriptPeer p(script_config(true));
  p.hears(kEmptyWrite);
  p.stream.leave(p.now);
  p.says();
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

}  // namespace
}  // namespace weft::rdmap
