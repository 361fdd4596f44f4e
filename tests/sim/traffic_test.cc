// All kinds of requests from both sides at once, over any cutting of the stream: every byte is
// where it belongs and every request completes once, in order.

#include <gtest/gtest.h>

#include "sim/draw.h"
#include "tests/support/traffic.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

// What a link and a pair of streams can be like.
PairOptions any_pair(uint64_t seed) {
  SeededRandom random(seed);
  PairOptions o{.seed = seed};
  o.link.segmentation = seed % 3 == 0   ? sim::Segmentation::mss
                        : seed % 3 == 1 ? sim::Segmentation::random
                                        : sim::Segmentation::whole;
  o.link.jitter = Duration{static_cast<int64_t>(sim::draw_below(random, 100'000))};
  o.link.window =
      sim::draw_below(random, 2) == 0 ? 10'000 + sim::draw_size(random, 500'000) : 1 << 20;
  o.link.short_write = sim::draw_below(random, 2) == 0 ? 0.2 : 0;
  o.mpa.extension = seed % 4 != 3;
  o.mpa.crc = sim::draw_below(random, 4) != 0;
  o.mpa.ird = static_cast<uint16_t>(1 + sim::draw_below(random, 16));
  o.mpa.ord = static_cast<uint16_t>(1 + sim::draw_below(random, o.mpa.ird));
  o.big_fpdu = sim::draw_below(random, 4) == 0;
  o.llp_completion = sim::draw_below(random, 6) == 0;
  o.gather = sim::draw_below(random, 2) == 0 ? 0.5 : 0;
  o.unasked = sim::draw_below(random, 2) == 0 ? 0.5 : 0;
  return o;
}

TEST(Traffic, EveryByteAndEveryCompletion) {
  for (const uint64_t seed : sim::seeds(80)) {
    WEFT_SIM_TRACE(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed}};
    p.drive();
    t.expect_complete();
    EXPECT_FALSE(p.a.host.end || p.b.host.end);
  }
}

TEST(Traffic, WithReadsOneAtATimeOrNotAtAll) {
  for (const uint64_t seed : sim::seeds(12)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = any_pair(seed);
    o.mpa.ird = o.mpa.ord = static_cast<uint16_t>(seed % 2);
    Pair p{o};
    Traffic t{p, {.seed = seed, .requests = 30}};
    p.drive();
    t.expect_complete();
  }
}

TEST(Traffic, WithSidesThatAllowDifferentNumbersOfReads) {
  for (const uint64_t seed : sim::seeds(12)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = any_pair(seed);
    o.tune = [](rdmap::StreamConfig& c, bool initiator) {
      c.mpa.ird = initiator ? 2 : 16;
      c.mpa.ord = initiator ? 16 : 2;
    };
    Pair p{o};
    Traffic t{p, {.seed = seed, .requests = 30}};
    p.drive();
    t.expect_complete();
  }
}

TEST(Traffic, WithEveryReceiveLate) {
  for (const uint64_t seed : sim::seeds(16)) {
    WEFT_SIM_TRACE(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed, .spread = 50ms, .late_receives = 1}};
    p.drive();
    t.expect_complete();
  }
}

// Opened by each of the frames of RFC 6581, and then closed in good order from either side.
TEST(Traffic, PeerToPeerOpenedAndClosed) {
  for (const uint64_t seed : sim::seeds(16)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = any_pair(seed);
    o.mpa.peer_to_peer = true;
    o.mpa.rtr = static_cast<mpa::Rtr>(1 + seed % 3);
    Pair p{o};
    Traffic t{p, {.seed = seed, .requests = 25}};
    p.drive();
    t.expect_complete();
    Side& first = seed % 2 == 0 ? p.a : p.b;
    first.close();
    p.drive();
    ASSERT_TRUE(p.a.host.end && p.b.host.end);
    EXPECT_EQ(first.host.end->kind, work::StreamEnd::Kind::closed);
    EXPECT_TRUE(p.a.closed() && p.b.closed());
    EXPECT_FALSE(p.a.was_reset() || p.b.was_reset());
  }
}

TEST(Traffic, ByteByByte) {
  for (const uint64_t seed : sim::seeds(6)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = any_pair(seed);
    o.link.segmentation = sim::Segmentation::bytewise;
    Pair p{o};
    Traffic t{p, {.seed = seed, .requests = 16, .most = 2000, .huge = 30'000, .huge_share = 0.05}};
    p.drive();
    t.expect_complete();
  }
}

// A queue of a few slots, and none of the requests signaled.
TEST(Traffic, SmallQueuesThatAskForNothing) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = any_pair(seed);
    o.mpa.extension = true;
    o.send_capacity = static_cast<uint32_t>(1 + seed % 5);
    Pair p{o};
    Buffer from = pattern_bytes(3000, seed);
    Buffer to(3000);
    const auto local = segment(p.a.host, from);
    const Stag remote = p.b.host.add_region(to);
    size_t posted = 0;
    const size_t total = 50;
    for (int round = 0; round < 1000 && p.a.host.sent.size() < total; ++round) {
      while (posted < total &&
             p.a.host.send_queue().tail() - p.a.host.send_queue().head() < o.send_capacity) {
        const bool read = posted % 7 == 3;
        p.a.host.post({.wr_id = posted++,
                       .operation = read ? work::Operation::read : work::Operation::write,
                       .remote_stag = remote,
                       .remote_to = address_of(to)},
                      {local});
      }
      // The last few may rest uncovered: nobody asked for them.
      if (posted == total) p.a.stream.close(p.scheduler.now());
      p.drive(10ms);
    }
    EXPECT_EQ(p.a.host.sent.size(), total);
    for (size_t i = 0; i < p.a.host.sent.size(); ++i)
      EXPECT_EQ(p.a.host.sent[i].status, work::Status::success);
  }
}

}  // namespace
}  // namespace weft::test
