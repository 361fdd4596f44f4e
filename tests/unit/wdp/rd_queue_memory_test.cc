// Queue pairs of type RD without memory.
#include <gtest/gtest.h>

#include "tests/support/new_that_may_fail.h"
#include "tests/unit/wdp/rd_queue_fixture.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::address_of;
using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using test::WantOfMemory;
using work::Status;

// Requests of each kind, wherever one allocation fails: all are done once.
TEST(RdQueueMemory, WhateverFailsEachRequestIsDoneOnce) {
  struct Run final : RdQueueTest {
    void TestBody() override {}
    void take_turns() {
      talk();
      later(3s);
    }
  };
  bool failed = true;
  for (uint64_t n = 0; failed; n += 1 + n / 20) {
    Run t;
    WantOfMemory::after(n);
    const TaggedOffset board = address_of(t.q.board);
    t.q.post_receives(3);
    for (uint8_t i = 0; i < 6; ++i) t.p.send(Run::kB, 2, pattern_bytes(i < 3 ? 4500 : 10, i));
    t.p.add(Run::kB, 2, 1, t.q.rkey, board);
    t.p.write(Run::kB, 2, pattern_bytes(3000, 9), t.q.rkey, board + 8);
    const Buffer& back = t.p.read(Run::kB, 2, 3000, t.q.rkey, board + 8);
    t.take_turns();
    t.q.post_receives(20);
    t.take_turns();
    failed = WantOfMemory::came();
    WantOfMemory::end();
    t.take_turns();
    t.expect_all(t.p, Status::success);
    ASSERT_EQ(t.q.received.size(), 6U) << n;
    for (uint8_t i = 0; i < 6; ++i) {
      EXPECT_EQ(t.q.received[i].bytes, pattern_bytes(i < 3 ? 4500 : 10, i)) << n;
    }
    EXPECT_EQ(back, pattern_bytes(3000, 9)) << n;
    EXPECT_EQ(t.q.board[7], std::byte{0}) << n;
    EXPECT_EQ(t.q.board[0], std::byte{1}) << n;
  }
}

// A queue pair that goes in the middle of a message, and has no memory to say so: the channel ends,
// and its peer's requests are answered by that.
TEST_F(RdQueueTest, WithoutMemoryForLastWordsTheChannelEnds) {
  RdNode::Member& other = a.add_member(3);
  Buffer large(4 << 20);
  q.host.post_receive(0, {test::segment(q.host, large)});
  q.rooms.emplace_back(4 << 20);
  p.send(kB, 2, Buffer(4 << 20));
  talk([](bool, const Buffer& bytes) {
    const auto common = wire::WdpCommon::parse(bytes);
    return common.ok() && common->wdp_class != wire::WdpClass::rd_ack;
  });
  ASSERT_TRUE(p.host.sent.empty());
  other.send(kB, 2, Buffer(10));
  other.send(kB, 2, Buffer(1400));  // fills its datagram: last words need another
  talk([](bool, const Buffer&) { return false; });
  WantOfMemory::after(0, WantOfMemory::kNever);
  EXPECT_TRUE(WantOfMemory::during([&] { p.queue.reset(); }));
  WantOfMemory::end();
  expect_all(other, Status::retry_exceeded);
  later(60s);
  EXPECT_TRUE(a.links.empty());
  EXPECT_TRUE(b.links.empty());
}

// Whoever asks for a receive may find no memory even to say that there is none.
struct RdQueueReceiveMemory : RdQueueTest {};
TEST_F(RdQueueReceiveMemory, WhatWasNotTakenIsNoReceive) {
  q.lacks_memory = true;
  const Buffer text = pattern_bytes(700, 3);
  p.send(kB, 2, text);
  talk();
  EXPECT_FALSE(q.lacks_memory);
  q.post_receives(2);
  later(3s);
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, text);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.status_of(0), Status::success);
}

}  // namespace
}  // namespace weft::wdp
