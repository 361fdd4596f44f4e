#include "work/send_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace weft::work {
namespace {

TEST(SendQueue, HoldsExactlyItsCapacity) {
  for (const uint32_t capacity : {1U, 2U, 3U, 7U, 64U}) {
    SendQueue q(capacity, 2, 0);
    for (uint32_t round = 0; round < 3; ++round) {
      for (uint32_t i = 0; i < capacity; ++i) {
        SendWqe* w = q.reserve(0);
        ASSERT_NE(w, nullptr);
        *w = {.wr_id = round * 100 + i};
        q.publish(1);
      }
      EXPECT_EQ(q.reserve(0), nullptr);
      for (uint32_t i = 0; i < capacity; ++i) {
        EXPECT_EQ(q.at(q.head()).wr_id, round * 100 + i);
        q.free_head();
      }
      EXPECT_EQ(q.head(), q.tail());
    }
  }
}

TEST(SendQueue, ARequestHasItsSlotUntilItsCompletionIsPolled) {
  SendQueue q(4, 1, 0);
  for (uint32_t i = 0; i < 4; ++i) *q.reserve(i) = {.wr_id = i};
  q.publish(4);
  // The third and the fourth have completions.
  for (uint32_t i = 0; i < 4; ++i) {
    if (i >= 2) q.report_head();
    q.free_head();
  }
  EXPECT_EQ(q.head(), 4U);
  EXPECT_NE(q.reserve(1), nullptr);
  EXPECT_EQ(q.reserve(2), nullptr);
  q.polled();
  EXPECT_NE(q.reserve(2), nullptr);
  EXPECT_EQ(q.reserve(3), nullptr);
  q.forget_completions();
  EXPECT_NE(q.reserve(3), nullptr);
  EXPECT_EQ(q.reserve(4), nullptr);
}

TEST(SendQueue, AListIsPublishedAtOnce) {
  SendQueue q(4, 1, 0);
  for (uint32_t i = 0; i < 3; ++i) *q.reserve(i) = {.wr_id = i};
  EXPECT_EQ(q.tail(), 0U) << "nothing is seen of it before";
  EXPECT_EQ(q.reserve(4), nullptr);
  q.publish(3);
  EXPECT_EQ(q.tail(), 3U);
  EXPECT_EQ(q.at(2).wr_id, 2U);
}

TEST(SendQueue, EachSlotHasRoomForItsPayload) {
  // Neither segments nor inline data nor the arguments of a bind reach into the next slot; ASan
  // watches the last one.
  for (const uint32_t segments : {0U, 1U, 30U}) {
    for (const uint32_t inlined : {0U, 16U, 1024U}) {
      SendQueue q(4, segments, inlined);
      const size_t room = std::max<size_t>({segments * sizeof(LocalSegment), inlined, 48});
      for (uint32_t i = 0; i < 4; ++i) {
        SendWqe* w = q.reserve(i);
        *w = {.wr_id = i};
        std::memset(w->payload(), static_cast<int>(i + 1), room);
      }
      q.publish(4);
      for (uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(q.at(i).wr_id, i);
        EXPECT_EQ(q.at(i).payload()[0], static_cast<std::byte>(i + 1));
        EXPECT_EQ(q.at(i).payload()[room - 1], static_cast<std::byte>(i + 1));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(&q.at(i)) % 64, 0U);
      }
    }
  }
}

// One thread posts, another one is the engine.
TEST(SendQueue, TwoThreads) {
  constexpr uint64_t kCount = 100'000;
  SendQueue q(16, 1, 0);
  std::thread poster([&] {
    for (uint64_t i = 0; i < kCount;) {
      SendWqe* w = q.reserve(0);
      if (w == nullptr) {
        std::this_thread::yield();
        continue;
      }
      *w = {.wr_id = i, .remote_to = TaggedOffset{~i}};
      q.publish(1);
      ++i;
    }
  });
  for (uint64_t i = 0; i < kCount;) {
    if (q.head() == q.tail()) {
      std::this_thread::yield();
      continue;
    }
    const SendWqe& w = q.at(q.head());
    ASSERT_EQ(w.wr_id, i);
    ASSERT_EQ(w.remote_to.value(), ~i);
    q.free_head();
    ++i;
  }
  poster.join();
}

}  // namespace
}  // namespace weft::work
