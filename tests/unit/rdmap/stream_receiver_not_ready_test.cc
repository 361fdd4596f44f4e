// Messages without a receive: how long both sides wait, and what is said in the end.

#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

// spec/rdmap 4.7: a plain peer gets a Terminate after rnr_wait.
TEST(Stream, APlainPeersSendWaitsForAReceiveButNotForEver) {
  ScriptPeer p(script_config(false));
  const Buffer message = untagged({.msn = 1}, pattern_bytes(12, 1));
  p.hears({message, kEmptyWrite});
  p.later(9999ms);
  EXPECT_FALSE(p.host.end);
  p.later(1ms);
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->error, term::kUntaggedNoBuffer);
  const auto t = terminate_in(p.says());
  EXPECT_EQ(t.error, term::kUntaggedNoBuffer);
  EXPECT_EQ(test::to_hex(Bytes{t.ddp_header}.first(t.ddp_header_size)),
            test::to_hex(Bytes{message}.first(18)))
      << "the message that waits, not the Write that came last";
  EXPECT_EQ(t.segment_length, message.size());
}

TEST(Stream, AProgramThatPostsReceivesNowAndThenIsInTime) {
  ScriptPeer p(script_config(false));
  for (uint32_t msn = 1; msn <= 10; ++msn) p.hears(untagged({.msn = msn}));
  for (uint32_t i = 1; i < 10; ++i) {
    p.later(6s);
    p.post_receive(i, {});
    ASSERT_FALSE(p.host.end) << "receive " << i;
    EXPECT_EQ(p.host.received.size(), i);
  }
  p.later(10s);
  EXPECT_TRUE(p.host.end) << "and the last one waits in vain";
}

TEST(Stream, BetweenWeftsTheReceiverWaits) {
  ScriptPeer p;
  p.hears(untagged({.msn = 1}));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Delivered");
  EXPECT_EQ(frames[0].stag, Stag{0x100 | 12}) << "waiting, with the code of min_rnr_timer";
  EXPECT_EQ(frames[0].to, 0U);
  p.later(3600s);
  EXPECT_FALSE(p.host.end) << "the sender decides when to give up";
  p.post_receive(1, {});
  const auto got = p.says();
  ASSERT_EQ(names(got), "Delivered");
  EXPECT_EQ(got[0].stag, Stag{0}) << "said at once, AW or not";
  EXPECT_EQ(got[0].to, 1U);
}

TEST(Stream, TheSenderGivesUpAfterItsRetries) {
  StreamConfig c = script_config();
  c.rnr_retry = 2;
  ScriptPeer p(c);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(delivered(0, 0x100 | 14));
  p.later(3 * 1280us - 1us);
  EXPECT_FALSE(p.host.end);
  p.later(1us);
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->kind, Kind::local_error);
  EXPECT_EQ(p.host.sent.at(0).status, work::Status::rnr_retry_exceeded);
  EXPECT_EQ(terminate_in(p.says()).error, term::kLocalCatastrophic);
}

// The receive came while the message was still on its way: its rest may take as long as it likes.
TEST(Stream, TheSenderIsPatientOnceTheReceiveIsThere) {
  StreamConfig c = script_config();
  c.rnr_retry = 2;
  ScriptPeer p(c);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(delivered(0, 0x100 | 14));
  p.hears(delivered(0));
  p.later(3600s);
  EXPECT_FALSE(p.host.end);
  p.hears(delivered(1));
  EXPECT_EQ(p.host.sent.at(0).status, work::Status::success);
}

TEST(Stream, NewSettingsOfTheQueuePairCount) {
  ScriptPeer p;
  p.stream.set_rnr(1, 20);
  p.hears(untagged({.msn = 1}));
  EXPECT_EQ(p.says().at(0).stag, Stag{0x100 | 20});
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(delivered(0, 0x100 | 1));
  p.later(20us);
  EXPECT_TRUE(p.host.end);
}

// A Read that waited behind a Send is judged when its turn comes, and quoted then.
TEST(Stream, AnErrorOfWhatWaitedQuotesWhatWaited) {
  ScriptPeer p;
  const Buffer request = test::read_request(1, {.size = 5, .source_stag = Stag{0xbad00}});
  p.hears({untagged({.msn = 1}), request, tagged({.stag = Stag{1}})});
  p.post_receive(1, {});
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->error, term::kProtectionInvalidStag);
  const auto t = terminate_in(p.says());
  EXPECT_EQ(test::to_hex(Bytes{t.ddp_header}.first(t.ddp_header_size)),
            test::to_hex(Bytes{request}.first(18)));
  EXPECT_EQ(test::to_hex(Bytes{t.rdmap_header}.first(t.rdmap_header_size)),
            test::to_hex(Bytes{request}.subspan(18)));
}

}  // namespace
}  // namespace weft::rdmap
