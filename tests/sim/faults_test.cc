// Connections that break and bytes that change: nothing wrong is ever delivered, nothing completes
// twice, and each side that learns of the end completes all its requests.

#include <gtest/gtest.h>

#include "sim/draw.h"
#include "tests/support/traffic.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using Kind = work::StreamEnd::Kind;

PairOptions any_pair(uint64_t seed) {
  SeededRandom random(seed * 31);
  PairOptions o{.seed = seed};
  o.link.segmentation = seed % 2 == 0 ? sim::Segmentation::random : sim::Segmentation::mss;
  o.link.window = sim::draw_below(random, 2) == 0 ? 30'000 : 1 << 20;
  o.link.short_write = sim::draw_below(random, 2) == 0 ? 0.2 : 0;
  o.mpa.extension = sim::draw_below(random, 3) != 0;
  o.gather = sim::draw_below(random, 2) == 0 ? 0.5 : 0;
  o.unasked = sim::draw_below(random, 2) == 0 ? 0.5 : 0;
  return o;
}

// A few small requests, so that every byte of the stream can be tried.
constexpr TrafficOptions kSmall{.requests = 10, .most = 400, .huge_share = 0, .spread = 300us};

TEST(Faults, ADamagedByteAnywhere) {
  for (const uint64_t seed : sim::seeds(8)) {
    WEFT_SIM_TRACE(seed);
    for (uint64_t offset = seed; offset < 4000; offset += 13) {
      Pair p{any_pair(seed)};
      TrafficOptions small = kSmall;
      small.seed = seed;
      Traffic t{p, small};
      p.link.corrupt(offset % 2 == 0 ? p.link.a() : p.link.b(), offset,
                     static_cast<std::byte>(1U << offset % 8));
      p.drive();
      ASSERT_NO_FATAL_FAILURE(t.expect_sound()) << "byte " << offset;
      ASSERT_FALSE(HasFailure()) << "byte " << offset;
    }
  }
}

TEST(Faults, ADamagedByteOfALongRun) {
  for (const uint64_t seed : sim::seeds(60)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed}};
    const sim::StreamEnd& from = seed % 2 == 0 ? p.link.a() : p.link.b();
    p.link.corrupt(from, sim::draw_below(random, 300'000),
                   static_cast<std::byte>(1 + sim::draw_below(random, 255)));
    p.drive();
    t.expect_sound();
    // Whoever saw it said so, unless it waits for the rest of an FPDU whose length was damaged.
    if (p.a.host.end && p.b.host.end) {
      const bool told =
          p.a.host.end->kind == Kind::protocol_error || p.b.host.end->kind == Kind::protocol_error;
      EXPECT_TRUE(told);
    }
  }
}

TEST(Faults, CutAtAnyByte) {
  for (const uint64_t seed : sim::seeds(4)) {
    for (const sim::Cut kind : {sim::Cut::fin, sim::Cut::reset}) {
      WEFT_SIM_TRACE(seed);
      for (uint64_t offset = 0; offset < 4000; offset += 1 + offset / 40) {
        Pair p{any_pair(seed)};
        TrafficOptions small = kSmall;
        small.seed = seed;
        Traffic t{p, small};
        const bool forth = offset % 2 == 0;
        p.link.cut_after(forth ? p.link.a() : p.link.b(), offset, kind);
        p.drive();
        t.expect_sound();
        ASSERT_FALSE(HasFailure()) << "cut after byte " << offset;
        // With everything said before the cut, a FIN may come in peace.
        const auto& end = (forth ? p.b : p.a).host.end;
        if (end) {
          EXPECT_TRUE(end->kind == Kind::lost || end->kind == Kind::peer_closed) << offset;
        }
      }
    }
  }
}

TEST(Faults, FinAndResetAtAnyTime) {
  for (const uint64_t seed : sim::seeds(80)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed}};
    const Time when = p.scheduler.now() + sim::draw_up_to(random, 6ms);
    p.link.cut_at(when, seed % 2 == 0 ? sim::Cut::reset : sim::Cut::fin);
    p.drive();
    t.expect_sound();
    ASSERT_TRUE(p.a.host.end && p.b.host.end);
    EXPECT_TRUE(p.a.closed() && p.b.closed());
  }
}

TEST(Faults, SilenceAtAnyTime) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed, .requests = 30}};
    p.link.cut_at(p.scheduler.now() + sim::draw_up_to(random, 6ms), sim::Cut::silence);
    p.drive();
    t.expect_sound();
    // Nobody says so; whoever wants to end gets there all the same.
    p.a.close();
    p.b.leave();
    p.drive();
    t.expect_sound();
    EXPECT_TRUE(p.a.host.end);
    EXPECT_TRUE(p.a.closed() && p.b.closed());
  }
}

// Both at once: what one side still says meets the end of the other.
TEST(Faults, CloseFromEitherSideWhileTrafficRuns) {
  for (const uint64_t seed : sim::seeds(60)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed}};
    Side& first = seed % 2 == 0 ? p.a : p.b;
    size_t posted = 0;
    p.scheduler.after(sim::draw_up_to(random, 5ms), [&] {
      posted = t.posted(first);
      first.close();
    });
    if (seed % 5 == 0) {
      p.scheduler.after(sim::draw_up_to(random, 5ms), [&] { (seed % 2 == 0 ? p.b : p.a).close(); });
    }
    p.drive();
    t.expect_sound();
    ASSERT_TRUE(p.a.host.end && p.b.host.end);
    EXPECT_TRUE(p.a.closed() && p.b.closed());
    if (seed % 5 != 0) {
      EXPECT_EQ(first.host.end->kind, Kind::closed);
      EXPECT_GE(t.succeeded(first), posted) << "what was posted before goes through";
    }
  }
}

TEST(Faults, AbortAndLeaveWhileTrafficRuns) {
  for (const uint64_t seed : sim::seeds(80)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    Pair p{any_pair(seed)};
    Traffic t{p, {.seed = seed}};
    Side& first = seed % 2 == 0 ? p.a : p.b;
    Side& other = seed % 2 == 0 ? p.b : p.a;
    p.scheduler.after(sim::draw_up_to(random, 5ms),
                      [&] { seed % 3 == 0 ? first.leave() : first.abort(); });
    p.drive();
    t.expect_sound();
    EXPECT_FALSE(first.host.end) << "its owner is gone and hears nothing";
    ASSERT_TRUE(other.host.end);
    EXPECT_TRUE(p.a.closed() && p.b.closed());
  }
}

}  // namespace
}  // namespace weft::test
