// Regions that are deregistered while requests use them: nothing touches them afterwards, and
// whoever used them is told.

#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Operation;
using work::Status;
using Kind = work::StreamEnd::Kind;

constexpr size_t kSize = 2'000'000;

PairOptions slow(uint64_t seed) {
  PairOptions o{.seed = seed};
  o.link.segmentation = sim::Segmentation::mss;
  o.link.window = 60'000;
  o.link.jitter = 20us;
  o.mpa.extension = seed % 2 == 0;
  o.mpa.crc = seed % 3 == 0;
  return o;
}
Duration some_time(uint64_t seed) {
  return Duration{static_cast<int64_t>(seed) * 377'000};
}

TEST(Memory, ATargetOfAWriteGoesAway) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    Pair p{slow(seed)};
    Buffer from = pattern_bytes(kSize, 1);
    Buffer to(kSize);
    const Stag stag = p.b.host.add_region(to);
    p.a.host.post({.operation = Operation::write,
                   .signaled = true,
                   .remote_stag = stag,
                   .remote_to = address_of(to)},
                  {segment(p.a.host, from)});
    Buffer then;
    p.scheduler.after(some_time(seed), [&] {
      p.b.deregister(stag);
      then = to;
    });
    p.drive();
    if (p.b.host.end) {
      EXPECT_TRUE(to == then) << "bytes came after the deregistration";
      EXPECT_EQ(p.b.host.end->error, wire::term::kTaggedInvalidStag);
      // A plain peer's Write is complete once the kernel has it.
      if (p.a.stream.parameters().extension) {
        EXPECT_EQ(p.a.host.sent.at(0).status, Status::remote_access);
      }
    } else {
      EXPECT_TRUE(to == from) << "it was through by then";
    }
  }
}

TEST(Memory, ASourceOfAReadGoesAway) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    Pair p{slow(seed)};
    Buffer source = pattern_bytes(kSize, 1);
    Buffer sink(kSize);
    const Stag stag = p.b.host.add_region(source);
    p.a.host.post({.operation = Operation::read,
                   .signaled = true,
                   .remote_stag = stag,
                   .remote_to = address_of(source)},
                  {segment(p.a.host, sink)});
    p.scheduler.after(some_time(seed), [&] {
      p.b.deregister(stag);
      // What is sent from now on would be wrong.
      std::fill(source.begin(), source.end(), std::byte{0xee});
    });
    p.drive();
    ASSERT_EQ(p.a.host.sent.size(), 1U);
    if (p.a.host.sent[0].status == Status::success) {
      EXPECT_TRUE(sink == pattern_bytes(kSize, 1));
    } else {
      EXPECT_EQ(p.a.host.sent[0].status, Status::remote_access);
      EXPECT_EQ(p.a.host.end->kind, Kind::terminated);
      EXPECT_EQ(p.b.host.end->kind, Kind::protocol_error);
      const Buffer good = pattern_bytes(kSize, 1);
      for (size_t i = 0; i < kSize; ++i)
        ASSERT_TRUE(sink[i] == good[i] || sink[i] == std::byte{0}) << i;
    }
  }
}

TEST(Memory, ASinkOfAReadGoesAway) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    Pair p{slow(seed)};
    Buffer source = pattern_bytes(kSize, 1);
    Buffer sink(kSize);
    const work::LocalSegment local = segment(p.a.host, sink);
    p.a.host.post({.operation = Operation::read,
                   .signaled = true,
                   .remote_stag = p.b.host.add_region(source),
                   .remote_to = address_of(source)},
                  {local});
    Buffer then;
    p.scheduler.after(some_time(seed), [&] {
      p.a.deregister(local.lkey);
      then = sink;
    });
    p.drive();
    ASSERT_EQ(p.a.host.sent.size(), 1U);
    if (p.a.host.sent[0].status == Status::success) continue;
    EXPECT_EQ(p.a.host.sent[0].status, Status::local_protection);
    EXPECT_TRUE(sink == then);
    EXPECT_EQ(p.a.host.end->kind, Kind::local_error);
    EXPECT_EQ(p.b.host.end->error, wire::term::kLocalCatastrophic);
  }
}

TEST(Memory, AReceiveGoesAway) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    Pair p{slow(seed)};
    Buffer from = pattern_bytes(kSize, 1);
    Buffer box(kSize);
    const work::LocalSegment local = segment(p.b.host, box);
    p.b.host.post_receive(3, {local});
    p.a.host.post({.operation = Operation::send, .signaled = true}, {segment(p.a.host, from)});
    Buffer then;
    p.scheduler.after(some_time(seed), [&] {
      p.b.deregister(local.lkey);
      then = box;
    });
    p.drive();
    ASSERT_EQ(p.b.host.received.size(), 1U);
    if (p.b.host.received[0].status == Status::success) continue;
    EXPECT_EQ(p.b.host.received[0].status, Status::local_protection);
    EXPECT_TRUE(box == then);
    EXPECT_EQ(p.b.host.end->kind, Kind::local_error);
  }
}

TEST(Memory, ASourceOfASendGoesAway) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    Pair p{slow(seed)};
    Buffer from = pattern_bytes(kSize, 1);
    Buffer box(kSize);
    p.b.host.post_receive(3, {segment(p.b.host, box)});
    const work::LocalSegment local = segment(p.a.host, from);
    p.a.host.post({.operation = Operation::send, .signaled = true}, {local});
    p.scheduler.after(some_time(seed), [&] {
      p.a.deregister(local.lkey);
      std::fill(from.begin(), from.end(), std::byte{0xee});
    });
    p.drive();
    ASSERT_EQ(p.a.host.sent.size(), 1U);
    if (p.a.host.sent[0].status == Status::success) {
      EXPECT_TRUE(box == pattern_bytes(kSize, 1));
      continue;
    }
    EXPECT_EQ(p.a.host.sent[0].status, Status::local_protection);
    EXPECT_TRUE(p.b.host.received.empty()) << "half a message is none";
    EXPECT_EQ(p.b.host.end->kind, Kind::terminated);
    const Buffer good = pattern_bytes(kSize, 1);
    for (size_t i = 0; i < kSize; ++i)
      ASSERT_TRUE(box[i] == good[i] || box[i] == std::byte{0}) << i;
  }
}

// A Send with Invalidate takes the target of the Write behind it away.
TEST(Memory, InvalidationIsInOrder) {
  for (const uint64_t seed : sim::seeds(6)) {
    WEFT_SIM_TRACE(seed);
    Pair p{slow(seed)};
    Buffer from = pattern_bytes(20'000, 1);
    Buffer to(20'000);
    const Stag stag = p.b.host.add_region(to);
    const work::SendWqe write{.wr_id = 1,
                              .operation = Operation::write,
                              .signaled = true,
                              .remote_stag = stag,
                              .remote_to = address_of(to)};
    const auto local = segment(p.a.host, from);
    p.b.host.post_receive(3, {});
    p.a.host.post(write, {local});
    p.a.host.post({.wr_id = 2,
                   .operation = Operation::send_invalidate,
                   .signaled = true,
                   .remote_stag = stag});
    p.a.host.post(write, {local});
    p.drive();
    EXPECT_EQ(to, from);
    EXPECT_EQ(p.b.host.invalidated, std::vector{stag});
    ASSERT_TRUE(p.b.host.end);
    EXPECT_EQ(p.b.host.end->error, wire::term::kTaggedInvalidStag);
  }
}

}  // namespace
}  // namespace weft::test
