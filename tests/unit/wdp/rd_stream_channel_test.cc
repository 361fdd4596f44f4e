// Which channel a connection goes by (spec/wdp-rd 7.1): not one whose peer has ended, or is about
// to, while both sides agreed over TCP.

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/wdp/rd_stream_fixture.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using wire::CtlType;

using End = RdStreamEnd;

struct RdStreamChannel : RdStreamTest {
  // There is a channel, from connections before that are over.
  void stand() {
    open();
    EXPECT_EQ(p.send(pattern_bytes(10, 1)), 10U);
    later(1s);
    p.stream.leave(false);
    q.stream.leave(false);
    later(1s);
    ASSERT_EQ(a.links.size(), 1U);
    ASSERT_EQ(b.links.size(), 1U);
  }
  static bool is_ctl(const Buffer& d, CtlType type) {
    return wire::WdpCommon::parse(d)->wdp_class == wire::WdpClass::ctl &&
           wire::WdpCtl::parse(d)->type == type;
  }
  void meet(RdNode& x, RdNode& y) {
    for (bool any = true; any;) {
      any = false;
      for (const auto& d : x.said(now)) any = true, y.hear(d.bytes, x.address, now);
      for (const auto& d : y.said(now)) any = true, x.hear(d.bytes, y.address, now);
    }
  }
  // `to` is reached by a message of `from`'s, and answers.
  void expect_to_talk(RdNode& x, End& from, RdNode& y, End& to) {
    const Buffer there = pattern_bytes(5000, 3);
    const Buffer back = pattern_bytes(3000, 4);
    EXPECT_EQ(from.send(there), there.size());
    meet(x, y);
    EXPECT_EQ(to.read(), there);
    ASSERT_TRUE(to.stream.has_channel());
    EXPECT_EQ(to.send(back), back.size());
    meet(x, y);
    EXPECT_EQ(from.read(), back);
    EXPECT_EQ(from.stream.error(), 0);
    EXPECT_EQ(to.stream.error(), 0);
  }
};

struct Two final : RdStreamChannel {
  void TestBody() override {}
};

TEST_F(RdStreamChannel, OneThatIsThereIsAskedFirst) {
  stand();
  End r{a, 4, 0x3333};
  End s{b, 6, 0x4444};
  s.begin(r);
  r.begin(s);
  EXPECT_FALSE(r.stream.has_channel());
  EXPECT_FALSE(r.stream.needs_channel());
  const int before = r.changes;
  talk();
  EXPECT_GT(r.changes, before);
  ASSERT_TRUE(r.stream.has_channel());
  expect_to_talk(a, r, b, s);
  EXPECT_EQ(a.links.size(), 1U);
}

TEST_F(RdStreamChannel, AQuestionThatIsLostIsAskedAgain) {
  stand();
  End r{a, 4, 0x3333};
  const End s{b, 6, 0x4444};
  r.begin(s);
  (void)a.said(now);
  later(500ms, [](bool, const Buffer& d) { return !is_ctl(d, CtlType::kaa); });
  EXPECT_FALSE(r.stream.has_channel());
  later(1s);
  EXPECT_TRUE(r.stream.has_channel());
  r.stream.leave(false);
}

// spec/wdp-rd 2.5: nobody has heard whether its peer knows it yet. Either end may be the first.
TEST_F(RdStreamChannel, OneAtRestIsAskedFirst) {
  a.rests = b.rests = true;
  stand();
  for (const bool a_wakes : {true, false}) {
    later(kMemoryRests + 1s);
    ASSERT_TRUE(a.links.empty() && b.links.empty());
    End r{a, 4, a_wakes ? 0x3333U : 0x3334U};
    End s{b, 6, a_wakes ? 0x4444U : 0x4445U};
    r.begin(s);
    s.begin(r);
    End& first = a_wakes ? r : s;
    End& second = a_wakes ? s : r;
    ASSERT_TRUE(first.stream.channel_rests());
    ASSERT_TRUE(second.stream.channel_rests());
    first.node.open(first.stream.path(), now);
    EXPECT_FALSE(first.stream.has_channel());
    talk([](bool, const Buffer& d) {
      EXPECT_FALSE(is_ctl(d, CtlType::req));
      return true;
    });
    ASSERT_TRUE(first.stream.has_channel());
    expect_to_talk(first.node, first, second.node, second);
    r.stream.leave(false);
    s.stream.leave(false);
    talk();
  }
}

TEST_F(RdStreamChannel, OneAtRestOfAPeerThatHasBegunAnewEnds) {
  a.rests = true;
  stand();
  later(kMemoryRests + 1s);
  ASSERT_TRUE(a.links.empty());
  RdNode again{kB, 99, now};
  End r{a, 4, 0x3333};
  End s{again, 6, 0x4444};
  s.begin(r);
  r.begin(s);
  a.open(r.stream.path(), now);
  EXPECT_FALSE(r.stream.has_channel());
  meet(a, again);
  ASSERT_TRUE(r.stream.needs_channel());
  a.open(r.stream.path(), now);
  ASSERT_TRUE(r.stream.has_channel());
  expect_to_talk(a, r, again, s);
}

// Another process has B's port, and has agreed with A over TCP. A calls it.
TEST_F(RdStreamChannel, APeerThatHasBegunAnewIsCalledAnew) {
  stand();
  RdNode again{kB, 99, now};
  End r{a, 4, 0x3333};
  End s{again, 6, 0x4444};
  s.begin(r);
  r.begin(s);
  EXPECT_FALSE(r.stream.needs_channel());
  meet(a, again);
  ASSERT_TRUE(r.stream.needs_channel());
  a.open(r.stream.path(), now);
  ASSERT_TRUE(r.stream.has_channel());
  expect_to_talk(a, r, again, s);
  EXPECT_EQ(a.links.size(), 1U);
}

// The same where it calls, with and without A's question, which may be late.
TEST(RdStreamChannels, APeerThatHasBegunAnewCalls) {
  for (const bool asks : {true, false}) {
    Two run;
    run.stand();
    RdNode again{Two::kB, 99, run.now};
    End r{run.a, 4, 0x3333};
    End s{again, 6, 0x4444};
    r.begin(s);
    s.begin(r);
    EXPECT_FALSE(r.stream.has_channel());
    if (!asks) (void)run.a.said(run.now);
    ASSERT_TRUE(s.stream.needs_channel());
    again.open(s.stream.path(), run.now);
    ASSERT_TRUE(s.stream.has_channel());
    run.expect_to_talk(again, s, run.a, r);
  }
}

// A channel ends for want of messages while a connection agrees on it; its goodbye and the question
// cross.
TEST(RdStreamChannels, OneThatEndsMeanwhileIsNotGoneBy) {
  for (const bool a_calls : {true, false}) {
    Two t;
    t.stand();
    End r{t.a, 4, 0x3333};
    End s{t.b, 6, 0x4444};
    t.b.links.front().channel.close(t.now);
    r.begin(s);
    s.begin(r);
    const auto question = t.a.said(t.now);
    const auto goodbye = t.b.said(t.now);
    ASSERT_TRUE(Two::is_ctl(question.at(0).bytes, CtlType::ka));
    ASSERT_TRUE(Two::is_ctl(goodbye.at(0).bytes, CtlType::dreq));
    EXPECT_TRUE(s.stream.needs_channel()) << "B has said goodbye";
    for (const auto& d : question) t.b.hear(d.bytes, t.a.address, t.now);
    if (a_calls) {
      for (const auto& d : goodbye) t.a.hear(d.bytes, t.b.address, t.now);
      ASSERT_TRUE(r.stream.needs_channel());
      t.a.open(r.stream.path(), t.now);
      ASSERT_TRUE(r.stream.has_channel());
      t.expect_to_talk(t.a, r, t.b, s);
    } else {
      // Its call overtakes the goodbye.
      t.b.open(s.stream.path(), t.now);
      ASSERT_TRUE(s.stream.has_channel());
      t.expect_to_talk(t.b, s, t.a, r);
      for (const auto& d : goodbye) t.a.hear(d.bytes, t.b.address, t.now);
    }
    t.talk();
    EXPECT_EQ(r.stream.error(), 0);
    EXPECT_EQ(s.stream.error(), 0);
  }
}

// A build that does not say that it does not know the channel.
TEST_F(RdStreamChannel, APeerThatNeverAnswersIsCalledAnewAtLast) {
  stand();
  End r{a, 4, 0x3333};
  const End s{b, 6, 0x4444};
  r.begin(s);
  later(14s, [](bool, const Buffer&) { return false; });
  EXPECT_FALSE(r.stream.needs_channel());
  later(2s, [](bool, const Buffer&) { return false; });
  EXPECT_TRUE(r.stream.needs_channel());
  EXPECT_EQ(r.stream.error(), 0);
}

// The first message of the peer's says which channel is the connection's.
TEST_F(RdStreamChannel, TheChannelOfAMessageIsTheConnections) {
  stand();
  End r{a, 4, 0x3333};
  End s{b, 6, 0x4444};
  s.begin(r);
  talk();
  ASSERT_TRUE(s.stream.has_channel());
  r.begin(s);
  EXPECT_FALSE(r.stream.has_channel());
  EXPECT_EQ(s.send(pattern_bytes(10, 2)), 10U);
  for (const auto& d : b.said(now)) a.hear(d.bytes, b.address, now);
  EXPECT_TRUE(r.stream.has_channel()) << "without an answer to its question";
}

}  // namespace
}  // namespace weft::wdp
