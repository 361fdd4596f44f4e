// Messages of reliable UD that share datagrams (spec/wdp-rd 6.7).

#include <gtest/gtest.h>

#include "tests/support/rd_messages.h"
#include "tests/unit/wdp/rd_channel_fixture.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::messages_in;
using test::pattern_bytes;
using test::WantOfMemory;
using work::Status;

struct RdSharedMessages : RdChannelTest {
  RdSharedMessages() { p.way = {.most = 1472}; }
  // How many messages each datagram of A's has.
  Watch count() {
    return [this](bool from_a, const Buffer& d) {
      const size_t messages = messages_in(d).size();
      if (from_a && messages > 0) counts.push_back(messages);
      return true;
    };
  }
  // A has asked what the path carries, and knows.
  void learn_the_path() {
    send(5);
    talk();
    later(1ms);
    ASSERT_EQ(p.host.sent.size(), 5U);
    p.host.sent.clear();
    q.received.clear();
  }
  void send(uint32_t number, size_t size = 64) {
    q.post_receives(number);
    for (uint32_t i = 0; i < number; ++i) p.send(kB, 5, pattern_bytes(size, i));
  }
  void expect_all(uint32_t number, size_t size = 64) {
    ASSERT_EQ(q.received.size(), number);
    ASSERT_EQ(p.host.sent.size(), number);
    for (uint32_t i = 0; i < number; ++i) {
      EXPECT_EQ(q.received[i].bytes, pattern_bytes(size, i)) << i;
      EXPECT_EQ(p.host.sent[i].status, Status::success) << i;
    }
  }
  std::vector<size_t> counts;
};

// Each path carries 548: 16 bytes for the bundle, and 116 for each message.
TEST_F(RdSharedMessages, FewUntilThePathIsKnown) {
  stand();
  send(10);
  talk(count());
  later(1ms);
  expect_all(10);
  EXPECT_EQ(counts, (std::vector<size_t>{4, 4, 2}));
}

TEST_F(RdSharedMessages, AsManyAsThePathCarries) {
  stand();
  learn_the_path();
  send(24);
  talk(count());
  later(1ms);
  expect_all(24);
  EXPECT_EQ(counts, (std::vector<size_t>{12, 12}));
}

// They have nothing to gain by it.
TEST_F(RdSharedMessages, FewDoNotAskForThePath) {
  stand();
  for (int i = 0; i < 3; ++i) {
    send(1);
    talk(count());
    later(1ms);
  }
  send(4);
  talk(count());
  later(1ms);
  EXPECT_FALSE(of_a().out().search().has_begun());
  EXPECT_EQ(counts, (std::vector<size_t>{1, 1, 1, 4}));
  send(5);
  talk(count());
  EXPECT_TRUE(of_a().out().search().has_begun());
}

// spec/wdp-rd 4.1: their sender waits for the RDACK alone.
TEST_F(RdSharedMessages, FourAreAcknowledgedAtOnce) {
  stand();
  learn_the_path();
  send(3);
  talk();
  EXPECT_EQ(p.host.sent.size(), 0U) << "not due yet";
  later(1ms);
  expect_all(3);
  p.host.sent.clear();
  q.received.clear();
  send(4);
  talk();
  expect_all(4);
}

TEST_F(RdSharedMessages, AreLostAndComeAgainTogether) {
  stand();
  learn_the_path();
  send(5);
  talk([](bool from_a, const Buffer& d) { return !from_a || messages_in(d).empty(); });
  EXPECT_EQ(q.received.size(), 0U);
  later(100ms, count());
  expect_all(5);
  EXPECT_EQ(counts, std::vector<size_t>{5});
}

// Those of another queue pair, and to another peer, go elsewhere; each client hears of its own.
TEST_F(RdSharedMessages, OfOneQueuePairInARow) {
  auto& r = a.add_pair(4);
  stand();
  learn_the_path();
  q.post_receives(8);
  for (uint32_t i = 0; i < 4; ++i) {
    for (auto* from : {&p, &r}) from->send(kB, 5, pattern_bytes(20, i));
  }
  talk(count());
  later(1ms);
  EXPECT_EQ(q.received.size(), 8U);
  EXPECT_EQ(p.host.sent.size(), 4U);
  EXPECT_EQ(r.host.sent.size(), 4U);
  EXPECT_EQ(counts, (std::vector<size_t>{4, 4}));
}

TEST_F(RdSharedMessages, ToTwoPeersByTurnsGoAlone) {
  stand();
  q.post_receives(3);
  // Its own host is a peer like another.
  auto& r = a.add_pair(6);
  r.post_receives(3);
  for (uint32_t i = 0; i < 3; ++i) {
    p.send(kB, 5, pattern_bytes(20, i));
    p.send(kA, 6, pattern_bytes(20, 10 + i));
  }
  talk();
  later(5ms);
  ASSERT_EQ(q.received.size(), 3U);
  ASSERT_EQ(r.received.size(), 3U);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(q.received[i].bytes, pattern_bytes(20, i));
    EXPECT_EQ(r.received[i].bytes, pattern_bytes(20, 10 + i));
  }
  ASSERT_EQ(p.host.sent.size(), 6U);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(p.host.sent[i].wr_id, i + 2) << "in order, once each";
}

// A receive for each of them, and for one.
TEST_F(RdSharedMessages, WaitForTheirReceivesOneByOne) {
  stand();
  learn_the_path();
  for (uint32_t i = 0; i < 6; ++i) p.send(kB, 5, pattern_bytes(64, i));
  talk();
  EXPECT_EQ(q.received.size(), 0U);
  q.post_receives(1);
  talk();
  EXPECT_EQ(q.received.size(), 1U);
  q.post_receives(5);
  talk();
  later(1ms);
  expect_all(6);
}

// One whose memory is gone ends the queue pair's sending; those before it go.
TEST_F(RdSharedMessages, OneThatIsAtFaultIsTakenOut) {
  stand();
  learn_the_path();
  send(3);
  const work::SendQueue& queue = p.host.send_queue();
  p.host.regions.at(p.host.send_queue().at(queue.tail() - 1).segment()->lkey).length = 0;
  talk(count());
  later(1ms);
  EXPECT_EQ(counts, std::vector<size_t>{2});
  ASSERT_EQ(q.received.size(), 2U);
  EXPECT_EQ(q.received[1].bytes, pattern_bytes(64, 1));
  EXPECT_EQ(p.host.sent.size(), 2U);
  EXPECT_EQ(p.failures, 1);
}

}  // namespace
}  // namespace weft::wdp
