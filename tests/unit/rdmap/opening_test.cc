#include "rdmap/opening.h"

#include <gtest/gtest.h>

namespace weft::rdmap {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart = Time::from_ns(7'000'000'000);

StreamConfig config(bool initiator, bool extension) {
  StreamConfig c;
  c.initiator = initiator;
  c.mpa.extension = extension;
  return c;
}

TEST(OpeningOfAStream, AResponderIsSilentOnce) {
  const StreamConfig c = config(false, true);
  Opening o{c, kStart};
  EXPECT_TRUE(o.silent());
  EXPECT_TRUE(o.deadline(true).is_never()) << "it speaks when it is spoken to";
  EXPECT_TRUE(o.end_silence());
  EXPECT_FALSE(o.silent());
  EXPECT_FALSE(o.end_silence());
}

TEST(OpeningOfAStream, APlainInitiatorIsNotWaitedForForEver) {
  StreamConfig c = config(false, false);
  c.responder_wait = 100ms;
  Opening o{c, kStart};
  EXPECT_EQ(o.deadline(true), kStart + 100ms);
  EXPECT_FALSE(o.silence_due(kStart + 99ms));
  EXPECT_TRUE(o.silence_due(kStart + 100ms));
  o.stop();
  EXPECT_TRUE(o.deadline(true).is_never());
}

TEST(OpeningOfAStream, AnInitiatorWithNothingToSayWritesNothing) {
  for (const bool extension : {true, false}) {
    const StreamConfig c = config(true, extension);
    Opening o{c, kStart};
    const Time due = extension ? kStart : kStart + 10ms;
    EXPECT_EQ(o.deadline(true), due);
    EXPECT_TRUE(o.write_due(due));
    EXPECT_FALSE(o.write_due(due + 1s)) << "once";

    Opening speaks{c, kStart};
    speaks.wrote(kStart);
    EXPECT_FALSE(speaks.write_due(due)) << "the program's own FPDU opens it";
  }
}

TEST(OpeningOfAStream, APlainPeerIsKickedUntilItSpeaks) {
  const StreamConfig c = config(true, false);
  Opening o{c, kStart};
  EXPECT_TRUE(o.wrote(kStart)) << "it has said nothing";
  EXPECT_FALSE(o.wrote(kStart + 1ms)) << "told once";
  for (const Duration d : kKickAfter) {
    EXPECT_EQ(o.deadline(true), kStart + d);
    EXPECT_TRUE(o.deadline(false).is_never());
    EXPECT_FALSE(o.kick_due(kStart + d - 1us));
    EXPECT_TRUE(o.kick_due(kStart + d));
  }
  EXPECT_TRUE(o.deadline(true).is_never());

  Opening answered{c, kStart};
  answered.wrote(kStart);
  answered.received();
  EXPECT_TRUE(answered.deadline(true).is_never());

  Opening spoken_to{c, kStart};
  spoken_to.received();
  EXPECT_FALSE(spoken_to.wrote(kStart)) << "it is awake";
}

TEST(OpeningOfAStream, AnRtrSettlesAtAPlainPeer) {
  for (const bool extension : {true, false}) {
    StreamConfig c = config(true, extension);
    c.mpa.peer_to_peer = true;
    Opening o{c, kStart};
    EXPECT_TRUE(o.owes_rtr());
    o.rtr_written(kStart);
    EXPECT_FALSE(o.owes_rtr());
    EXPECT_EQ(o.rtr_settled(), extension);
    if (extension) continue;
    EXPECT_EQ(o.deadline(true), kStart + kRtrSettles);
    o.settle(kStart + kRtrSettles);
    EXPECT_TRUE(o.rtr_settled());
  }
}

}  // namespace
}  // namespace weft::rdmap
