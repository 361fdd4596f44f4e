// Channels at rest (spec/wdp-rd 2.5): what is kept of them, and what brings them back.
#include <gtest/gtest.h>

#include "tests/unit/wdp/rd_channel_fixture.h"
#include "tests/unit/wdp/rd_queue_fixture.h"
#include "wdp/ecn.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern_bytes;
using test::WantOfMemory;
using wire::CtlType;
using wire::WdpDrop;
using work::Status;

size_t at_rest(test::RdNode& n) {
  return n.socket.channels().resting().size();
}

struct RdRest : RdChannelTest {
  void SetUp() override {
    a.rests = b.rests = true;
    q.post_receives(20);
    p.post_receives(20);
    p.send(kB, 5, text);
    talk();
    later(1ms);
    ASSERT_EQ(q.received.size(), 1U);
    q.received.clear();
  }
  void rest() {
    later(kMemoryRests + 1ms, [](bool, const Buffer&) {
      ADD_FAILURE() << "nobody says anything";
      return true;
    });
    ASSERT_TRUE(a.links.empty());
    ASSERT_TRUE(b.links.empty());
    ASSERT_EQ(at_rest(a), 1U);
    ASSERT_EQ(at_rest(b), 1U);
  }
  void expect_success(const test::RdNode::Pair& of) {
    ASSERT_EQ(of.host.sent.size(), of.posted);
    for (const auto& d : of.host.sent) EXPECT_EQ(d.status, Status::success) << d.wr_id;
  }
};

TEST_F(RdRest, ASecondAfterItsLastMessage) {
  later(kMemoryRests - 10ms);
  EXPECT_EQ(a.links.size(), 1U);
  rest();
  EXPECT_EQ(a.socket.channels().size(), 1U);
}

// Both ways, and more than once: the numbers of datagrams and of messages go on.
TEST_F(RdRest, WhatIsSentNextIsTheFirstThatIsSaid) {
  for (uint8_t round = 0; round < 3; ++round) {
    rest();
    const bool from_a = round != 1;
    auto& from = from_a ? p : q;
    auto& to = from_a ? q : p;
    size_t said = 0;
    from.send(from_a ? kB : kA, from_a ? 5 : 3, pattern_bytes(700, round));
    talk([&](bool, const Buffer& d) {
      EXPECT_FALSE(class_of(d) == wire::WdpClass::ctl);
      if (said++ == 0) {
        EXPECT_TRUE(is_data(d));
      }
      return true;
    });
    later(1ms);
    ASSERT_EQ(to.received.size(), 1U);
    EXPECT_EQ(to.received[0].bytes, pattern_bytes(700, round));
    to.received.clear();
  }
  expect_success(p);
  expect_success(q);
}

TEST_F(RdRest, WhatIsLostComesAgain) {
  rest();
  for (uint8_t i = 0; i < 3; ++i) p.send(kB, 5, pattern_bytes(900, i));
  size_t said = 0;
  talk([&](bool, const Buffer&) { return said++ != 0; });
  later(500ms);
  ASSERT_EQ(q.received.size(), 3U);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(q.received[i].bytes, pattern_bytes(900, i));
  expect_success(p);
}

// A copy that comes late is one still.
TEST_F(RdRest, ACopyIsToldFromWhatIsNew) {
  p.send(kB, 5, pattern_bytes(500, 1));
  Buffer copy;
  talk([&](bool from_a, const Buffer& d) {
    if (from_a && is_data(d)) copy = d;
    return true;
  });
  ASSERT_FALSE(copy.empty());
  later(1ms);
  q.received.clear();
  rest();
  const uint64_t before = drops(b, WdpDrop::duplicate);
  b.hear(copy, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::duplicate), before + 1);
  EXPECT_TRUE(q.received.empty());
  EXPECT_EQ(b.links.size(), 1U) << "it says again what has come";
  later(kMemoryRests + 1ms);
  EXPECT_EQ(at_rest(b), 1U);
}

TEST_F(RdRest, AStrangerWakesNobody) {
  p.send(kB, 5, pattern_bytes(500, 1));
  Buffer datagram;
  talk([&](bool from_a, const Buffer& d) {
    if (from_a && is_data(d)) datagram = d;
    return true;
  });
  later(1ms);
  rest();
  Endpoint elsewhere = a.address;
  ++elsewhere.port;
  const uint64_t before = b.socket.drops().of(WdpDrop::wrong_address);
  b.hear(datagram, elsewhere, now);
  EXPECT_EQ(b.socket.drops().of(WdpDrop::wrong_address), before + 1);
  EXPECT_EQ(at_rest(b), 1U);
}

// spec/wdp-rd 2.4: as one that is awake, and its peer hears.
TEST_F(RdRest, EndsForWantOfMessages) {
  rest();
  size_t goodbyes = 0;
  later(kIdleChannel, [&](bool, const Buffer& d) {
    if (is_ctl(d, CtlType::dreq)) ++goodbyes;
    return true;
  });
  EXPECT_GT(goodbyes, 0U);
  EXPECT_EQ(a.socket.channels().size(), 0U);
  EXPECT_EQ(b.socket.channels().size(), 0U);
  p.send(kB, 5, pattern_bytes(300, 9));
  talk();
  later(1ms);
  ASSERT_EQ(q.received.size(), 1U);
  expect_success(p);
}

// spec/wdp-rd 2.2: the peer has begun anew, which knows nothing of the channel.
TEST_F(RdRest, APeerThatBeginsAnewHasAnotherChannel) {
  rest();
  test::RdNode again{kB, 77, now};
  auto& r = again.add_pair(5);
  r.send(kA, 3, pattern_bytes(400, 3));
  for (int i = 0; i < 20; ++i) {
    for (const auto& d : again.said(now)) a.hear(d.bytes, b.address, now);
    for (const auto& d : a.said(now)) again.hear(d.bytes, a.address, now);
  }
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(400, 3));
  EXPECT_EQ(at_rest(a), 0U);
}

TEST_F(RdRest, NotWhileAMessageLacksItsReceive) {
  for (uint8_t i = 0; i < 20; ++i) p.send(kB, 5, pattern_bytes(100, i));
  talk();
  later(3s);
  EXPECT_EQ(b.links.size(), 1U);
  q.post_receives(1);
  talk();
  later(2s);
  EXPECT_EQ(q.received.size(), 20U);
  EXPECT_EQ(at_rest(b), 1U);
}

TEST_F(RdRest, NotWhileSomethingIsNotAcknowledged) {
  p.send(kB, 5, pattern_bytes(100, 1));
  later(3s, [](bool from_a, const Buffer&) { return from_a; });
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(p.host.sent.size(), p.posted - 1);
  later(3s);
  EXPECT_EQ(at_rest(a), 1U);
  expect_success(p);
}

TEST_F(RdRest, NotWhileAConnectionIsThere) {
  of_a().enter();
  later(3s);
  EXPECT_EQ(a.links.size(), 1U);
  of_a().leave();
  later(2s);
  EXPECT_EQ(at_rest(a), 1U);
}

// RFC 9000 13.4.2.1: the count of marks goes on, at both ends.
TEST_F(RdRest, MarksAreCountedOn) {
  router = [](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
    return from_a && (traffic_class & kEcnBits) == kEct0 ? static_cast<uint8_t>(traffic_class | kCe)
                                                         : traffic_class;
  };
  p.send(kB, 5, pattern_bytes(100, 1));
  talk();
  later(1ms);
  ASSERT_GT(of_a().sender().counters().marked, 0U);
  rest();
  router = {};
  p.send(kB, 5, pattern_bytes(100, 2));
  talk();
  later(1ms);
  EXPECT_EQ(of_a().sender().counters().marked, 0U) << "those of before are known";
  router = [](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
    return from_a ? static_cast<uint8_t>(traffic_class | kCe) : traffic_class;
  };
  p.send(kB, 5, pattern_bytes(100, 3));
  talk();
  later(1ms);
  EXPECT_EQ(of_a().sender().counters().marked, 1U);
}

// Wherever memory is missing, on the way to rest or back, nothing is lost.
TEST_F(RdRest, WithoutMemoryItGoesOnLater) {
  for (uint64_t n = 0; n < 12; ++n) {
    WantOfMemory::after(n, 1);
    later(kMemoryRests + 1ms);
    WantOfMemory::end();
    later(kMemoryRests + 1ms);
    ASSERT_EQ(at_rest(a), 1U) << n;
    ASSERT_EQ(at_rest(b), 1U) << n;
    p.send(kB, 5, pattern_bytes(100, n));
    auto& back = n % 2 == 0 ? q : p;
    if (n % 2 == 0) back.send(kA, 3, pattern_bytes(200, n));
    WantOfMemory::after(n, 1);
    talk();
    WantOfMemory::end();
    later(500ms);
    ASSERT_EQ(q.received.size(), 1U) << n;
    EXPECT_EQ(q.received[0].bytes, pattern_bytes(100, n));
    q.received.clear();
    q.post_receives(1);
  }
  expect_success(p);
  expect_success(q);
}

// Queue pairs of type RD keep pointers to it.
struct RdRestOfQueues : RdQueueTest {};

TEST_F(RdRestOfQueues, NeverOnceTheyHaveSpokenByIt) {
  a.rests = b.rests = true;
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(100, 1));
  talk();
  later(5s);
  ASSERT_EQ(q.received.size(), 1U);
  expect_all(p, Status::success);
  EXPECT_EQ(at_rest(a), 0U);
  EXPECT_EQ(at_rest(b), 0U);
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U);
}

}  // namespace
}  // namespace weft::wdp
