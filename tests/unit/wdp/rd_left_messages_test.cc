// Messages that have come, and wait for receives when their channel ends (spec/wdp-rd 2.4): their
// senders were told that they came.
#include <gtest/gtest.h>

#include "tests/unit/wdp/rd_channel_fixture.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern_bytes;
using wire::CtlType;
using wire::WdpDrop;
using work::Status;

struct RdLeftMessages : RdChannelTest {
  // Two of them.
  void SetUp() override {
    stand();
    p.send(kB, 5, number(1));
    p.send(kB, 5, number(2));
    talk();
    later(10ms);
    ASSERT_EQ(p.host.sent.size(), 2U);
    ASSERT_TRUE(q.received.empty());
  }
  Buffer number(uint8_t n) { return pattern_bytes(500, n); }
  void post_and_expect(uint8_t n) {
    q.post_receives(1);
    talk();
    ASSERT_EQ(q.received.size(), n);
    EXPECT_EQ(q.received.back().bytes, number(n));
  }
};

TEST_F(RdLeftMessages, OutliveAnIdleChannel) {
  later(kIdleChannel + 5s);
  EXPECT_TRUE(a.links.empty());
  post_and_expect(1);
  EXPECT_EQ(b.links.size(), 1U);
  post_and_expect(2);
  EXPECT_TRUE(b.links.empty());
  EXPECT_EQ(b.socket.channels().size(), 0U);
}

// A process that has sent, and was told so, may end.
TEST_F(RdLeftMessages, OutliveTheirSender) {
  of_a().close(now);
  talk();
  EXPECT_TRUE(a.links.empty()) << "the DREP came";
  EXPECT_FALSE(of_b().is_usable());
  later(600s);
  post_and_expect(1);
  post_and_expect(2);
  EXPECT_TRUE(b.links.empty());
}

// By whatever channel the later ones come.
TEST_F(RdLeftMessages, AreBeforeLaterOnesOfTheSamePeer) {
  for (uint8_t n = 3; n <= 5; ++n) {
    of_a().close(now);
    talk();
    p.send(kB, 5, number(n));
    talk();
    later(10ms);
  }
  EXPECT_EQ(b.links.size(), 4U);
  for (uint8_t n = 1; n <= 5; ++n) post_and_expect(n);
  EXPECT_EQ(b.links.size(), 1U);
}

// Also when a receive was posted of which the channels have not heard yet.
TEST_F(RdLeftMessages, AreNotPassedByOneThatComesNow) {
  of_a().close(now);
  talk();
  Buffer& room = q.rooms.emplace_back(1200);
  q.host.post_receive(q.rooms.size() - 1,
                      {{reinterpret_cast<uintptr_t>(room.data()), 1200, q.host.add_region(room)}});
  p.send(kB, 5, number(3));
  talk();
  later(10ms);
  q.post_receives(2);
  talk();
  ASSERT_EQ(q.received.size(), 3U);
  for (uint8_t n = 1; n <= 3; ++n) EXPECT_EQ(q.received[n - 1U].bytes, number(n));
}

TEST_F(RdLeftMessages, HoldUpNoOtherQueuePair) {
  test::RdNode::Pair& other = b.add_pair(6);
  of_a().close(now);
  talk();
  other.post_receives(1);
  p.send(kB, 6, number(9));
  talk();
  later(10ms);
  EXPECT_EQ(other.received.size(), 1U);
}

// A peer that has not heard the DREP says goodbye again; one that asks is told that it is over.
TEST_F(RdLeftMessages, TheGoodbyeIsAnsweredAgain) {
  of_a().close(now);
  const auto dreq = a.said(now);
  ASSERT_EQ(dreq.size(), 1U);
  for (int i = 0; i < 2; ++i) {
    b.hear(dreq[0].bytes, a.address, now);
    const auto said = b.said(now);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_TRUE(is_ctl(said[0].bytes, CtlType::drep));
    if (i == 1) a.hear(said[0].bytes, b.address, now);
  }
  EXPECT_TRUE(a.links.empty() || of_a().is_gone());
  post_and_expect(1);
}

TEST_F(RdLeftMessages, DataAndUnknownWordsAreDropped) {
  p.send(kB, 5, number(3));
  const auto data = a.said(now);
  of_a().abort();
  const Buffer question = of_a().question();
  of_b().abort();
  const auto before = drops(b, WdpDrop::unknown_token);
  for (const auto& d : data) b.hear(d.bytes, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::unknown_token), before + data.size());
  b.hear(question, a.address, now);
  const auto said = b.said(now);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(is_ctl(said[0].bytes, CtlType::drep));
  post_and_expect(1);
}

// With its queue pair, or the socket, they go.
TEST_F(RdLeftMessages, GoWithTheirQueuePair) {
  of_a().close(now);
  talk();
  b.pairs.clear();
  talk();
  EXPECT_TRUE(b.links.empty());
}

TEST_F(RdLeftMessages, GoWithTheirSocket) {
  of_a().close(now);
  talk();
  ASSERT_EQ(b.links.size(), 1U);
  of_b().close(now);
  talk();
  EXPECT_TRUE(b.links.empty());
}

TEST_F(RdLeftMessages, ASocketKeepsSoManyAndNoMore) {
  size_t most = 0;
  size_t links = 0;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 800; ++k) p.send(kB, 5, text);
    talk();
    later(50ms);
    a.links.back().channel.close(now);
    talk();
    later(2s);
    size_t left = 0;
    for (const auto& l : b.links) left += l.channel.left_bytes();
    most = std::max(most, left);
    links = std::max(links, b.links.size());
    if (b.links.size() < links) break;
  }
  EXPECT_GT(most, kMostLeft - kMostLeft / 16);
  EXPECT_LE(most, kMostLeft);
}

}  // namespace
}  // namespace weft::wdp
