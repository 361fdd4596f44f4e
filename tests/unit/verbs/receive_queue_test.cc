#include "verbs/receive_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::verbs {
namespace {

TEST(ReceiveQueue, TakesWhatWasPostedInOrder) {
  ReceiveQueue q(3, 2);
  for (uint64_t round = 0; round < 5; ++round) {
    for (uint64_t i = 0; i < 3; ++i) {
      const LocalSegment s[] = {{.address = round, .length = 10}, {.address = i, .length = 20}};
      ASSERT_TRUE(
          q.post({.wr_id = round * 10 + i, .segments = s, .count = static_cast<uint32_t>(i)}).ok());
    }
    EXPECT_EQ(q.size(), 3U);
    for (uint64_t i = 0; i < 3; ++i) {
      work::Receive r;
      ASSERT_TRUE(q.take(r));
      EXPECT_EQ(r.wr_id, round * 10 + i);
      EXPECT_EQ(r.segments, i);
      EXPECT_EQ(r.length, i == 0 ? 0U : i == 1 ? 10U : 30U);
      if (i > 0) {
        EXPECT_EQ(r.segment[0].address, round);
      }
    }
    work::Receive none;
    EXPECT_FALSE(q.take(none));
    EXPECT_TRUE(q.empty());
  }
}

TEST(ReceiveQueue, RefusesTooManySegmentsAndTooManyReceives) {
  ReceiveQueue q(2, 1);
  const LocalSegment s[2] = {};
  const auto wide = q.post({.segments = s, .count = 2});
  ASSERT_FALSE(wide.ok());
  EXPECT_EQ(wide.error(), Errc::invalid);
  EXPECT_TRUE(q.post({}).ok());
  EXPECT_TRUE(q.post({}).ok());
  const auto full = q.post({});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error(), Errc::no_memory);
  EXPECT_EQ(q.capacity(), 2U);
}

// The room of many large segments does not wrap in 32 bits.
TEST(ReceiveQueue, RoomBeyond4GiB) {
  ReceiveQueue q(1, 30);
  std::array<LocalSegment, 30> s;
  s.fill({.length = 0xffffffff});
  ASSERT_TRUE(q.post({.segments = s.data(), .count = 30}).ok());
  work::Receive r;
  ASSERT_TRUE(q.take(r));
  EXPECT_EQ(r.length, 30 * uint64_t{0xffffffff});
}

TEST(ReceiveQueue, AQueueOfNone) {
  ReceiveQueue q(0, 0);
  EXPECT_FALSE(q.post({}).ok());
  work::Receive r;
  EXPECT_FALSE(q.take(r));
}

TEST(ReceiveQueue, TwoThreads) {
  constexpr uint64_t kCount = 100'000;
  ReceiveQueue q(32, 1);
  std::thread poster([&] {
    for (uint64_t i = 0; i < kCount;) {
      const LocalSegment s{.address = ~i, .length = 1};
      if (q.post({.wr_id = i, .segments = &s, .count = 1}).ok()) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint64_t i = 0; i < kCount;) {
    work::Receive r;
    if (!q.take(r)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(r.wr_id, i);
    ASSERT_EQ(r.segment[0].address, ~i);
    ++i;
  }
  poster.join();
}

}  // namespace
}  // namespace weft::verbs
