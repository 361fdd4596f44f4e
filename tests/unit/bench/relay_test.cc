#include "bench/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::bench {
namespace {

using testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

std::vector<std::byte> packet(uint8_t number, size_t size = 1000) {
  std::vector<std::byte> p(size);
  for (size_t i = 0; i < size; ++i) p[i] = static_cast<std::byte>(number + 7 * i);
  return p;
}

TEST(LinkQueue, APacketTakesTheDelay) {
  LinkQueue q{1};
  q.shape({.delay = std::chrono::milliseconds{5}});
  EXPECT_EQ(q.next(), INT64_MAX);
  EXPECT_TRUE(q.take(packet(1), 0));
  EXPECT_TRUE(q.take(packet(2), kMs));
  EXPECT_EQ(q.next(), 5 * kMs);
  EXPECT_THAT(q.arrived(5 * kMs - 1), IsEmpty());
  EXPECT_EQ(q.arrived(5 * kMs), packet(1));
  EXPECT_THAT(q.arrived(5 * kMs), IsEmpty());
  EXPECT_EQ(q.arrived(6 * kMs), packet(2));
}

// 1000 bytes in a ms. Those behind wait, and what finds no room is lost.
TEST(LinkQueue, ItCarriesSoManyBits) {
  LinkQueue q{1};
  q.shape({.bits_per_s = 8e6, .queue = 2500});
  EXPECT_TRUE(q.take(packet(1), 0));
  EXPECT_TRUE(q.take(packet(2), 0));
  EXPECT_FALSE(q.take(packet(3), 0));
  EXPECT_THAT(q.arrived(kMs - 1), IsEmpty());
  EXPECT_EQ(q.arrived(kMs), packet(1));
  EXPECT_TRUE(q.take(packet(4), kMs));
  EXPECT_EQ(q.arrived(2 * kMs), packet(2));
  EXPECT_EQ(q.next(), 3 * kMs);
  EXPECT_EQ(q.arrived(3 * kMs), packet(4));
}

TEST(LinkQueue, ItLosesAShare) {
  LinkQueue q{1};
  q.shape({.loss = 0.1});
  int lost = 0;
  for (int i = 0; i < 10'000; ++i) lost += q.take(packet(1, 100), 0) ? 0 : 1;
  EXPECT_GT(lost, 800);
  EXPECT_LT(lost, 1200);
}

// What has left the queue is on the way, and takes no room in it.
TEST(LinkQueue, TheWayIsNoQueue) {
  LinkQueue q{1};
  q.shape({.delay = std::chrono::seconds{1}, .bits_per_s = 8e6, .queue = 1000});
  for (int64_t i = 0; i < 100; ++i) EXPECT_TRUE(q.take(packet(1), i * kMs));
}

TEST(Link, HasAQueueOfTwoRoundTrips) {
  EXPECT_EQ(Link::of(20, 0, 100).queue, 1'000'000U);  // 80 ms
  EXPECT_EQ(Link::of(1, 0, 100).queue, 250'000U);     // 20 ms
}

}  // namespace
}  // namespace weft::bench
