// StreamLink when things go wrong: resets, damaged bytes, cuts.

#include "sim/stream_link.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/stream_test_support.h"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern;

// --- reset

TEST(StreamLink, AResetTakesOneDelayAndKeepsWhatHadArrived) {
  Scheduler s;
  StreamLink link(s, 1, {.delay = 10us});
  int told = 0;
  link.b().on_event([&] { ++told; });
  link.a().on_event([&] { ADD_FAILURE() << "who resets is not told"; });
  const Buffer bytes = pattern(100, 1);
  write(link.a(), bytes);
  s.run_for(10us);
  EXPECT_EQ(told, 1);
  write(link.b(), bytes);
  link.a().reset();
  EXPECT_TRUE(link.a().was_reset());
  EXPECT_FALSE(link.b().was_reset());
  EXPECT_EQ(write(link.a(), bytes), 0U);
  s.run_for(10us);
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(link.b().was_reset());
  EXPECT_FALSE(link.b().fin_received());
  EXPECT_EQ(write(link.b(), bytes), 0U);
  EXPECT_EQ(link.b().writable(), 0U);
  EXPECT_TRUE(read_all(link.b()) == bytes);
  s.run_for(1s);
  EXPECT_EQ(link.a().readable(), 0U);
  EXPECT_EQ(told, 2);
}

TEST(StreamLink, AResetMayOvertakeBytes) {
  bool overtaken = false;
  bool all_arrived = false;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Scheduler s;
    StreamLink link(s, seed,
                    {.delay = 10us, .jitter = 100us, .segmentation = Segmentation::random});
    const Buffer bytes = pattern(5000, seed);
    write(link.a(), bytes);
    s.run_for(50us);
    link.a().reset();
    s.run_for(1s);
    ASSERT_TRUE(link.b().was_reset());
    const Buffer got = read_all(link.b());
    ASSERT_TRUE(std::equal(got.begin(), got.end(), bytes.begin())) << "a prefix, never a gap";
    (got.size() == bytes.size() ? all_arrived : overtaken) = true;
  }
  EXPECT_TRUE(overtaken);
  EXPECT_TRUE(all_arrived);
}

TEST(StreamLink, BothMayResetAtOnce) {
  Scheduler s;
  StreamLink link(s, 1);
  link.a().on_event([] { FAIL(); });
  link.b().on_event([] { FAIL(); });
  link.a().reset();
  link.b().reset();
  link.b().reset();
  s.run_for(1s);
  EXPECT_TRUE(link.a().was_reset() && link.b().was_reset());
}

TEST(StreamLink, AResetDropsWhatItsEndHadNotRead) {
  Scheduler s;
  StreamLink link(s, 1);
  write(link.a(), pattern(100, 1));
  link.a().shutdown_write();
  s.run_for(1s);
  link.b().reset();
  EXPECT_EQ(link.b().readable(), 0U);
  EXPECT_TRUE(read_all(link.b()).empty());
  EXPECT_FALSE(link.b().fin_received());
}

// --- corruption

TEST(StreamLink, CorruptsTheByteThatWasChosen) {
  for (const Segmentation segmentation : kAll) {
    Scheduler s;
    StreamLink link(s, 1, {.segmentation = segmentation});
    Buffer bytes = pattern(2000, 1);
    link.corrupt(link.a(), 0, std::byte{0x80});
    link.corrupt(link.a(), 1999);
    link.corrupt(link.a(), 777, std::byte{0xff});
    write(link.a(), bytes);
    write(link.b(), bytes);
    s.run_for(1s);
    EXPECT_TRUE(read_all(link.a()) == bytes) << "the other direction is sound";
    link.corrupt(link.a(), 5);
    bytes[0] ^= std::byte{0x80};
    bytes[1999] ^= std::byte{0x01};
    bytes[777] ^= std::byte{0xff};
    EXPECT_TRUE(read_all(link.b()) == bytes) << "a byte that has arrived stays as it is";
  }
}

// --- cuts

struct Heard {
  Buffer bytes;
  bool fin = false;
  bool reset = false;
};
// A writes 3000 bytes and FIN, and its stream is cut after `after` bytes: what B has heard then.
Heard heard_after_cut(StreamLink& link, Scheduler& s, uint64_t after, Cut kind) {
  link.cut_after(link.a(), after, kind);
  write(link.a(), pattern(3000, 1));
  link.a().shutdown_write();
  s.run_for(1s);
  return {read_all(link.b()), link.b().fin_received(), link.b().was_reset()};
}

TEST(StreamLink, CutAfterExactlyThatManyBytes) {
  for (const Segmentation segmentation : kAll) {
    for (const Cut kind : {Cut::fin, Cut::reset, Cut::silence}) {
      for (const uint64_t after : {0U, 1U, 999U, 2999U, 3000U}) {
        Scheduler s;
        StreamLink link(s, after + 1, {.jitter = 10us, .segmentation = segmentation});
        const Heard h = heard_after_cut(link, s, after, kind);
        const Buffer whole = pattern(3000, 1);
        EXPECT_EQ(test::to_hex(h.bytes), test::to_hex(Bytes{whole}.first(after)));
        EXPECT_EQ(h.fin, kind == Cut::fin);
        EXPECT_EQ(h.reset, kind == Cut::reset);
        EXPECT_EQ(link.a().was_reset(), kind == Cut::reset);
      }
    }
  }
}

TEST(StreamLink, ACutBehindTheLastByteNeverComes) {
  Scheduler s;
  StreamLink link(s, 1);
  const Heard h = heard_after_cut(link, s, 3001, Cut::reset);
  EXPECT_EQ(h.bytes.size(), 3000U);
  EXPECT_TRUE(h.fin);
  EXPECT_FALSE(h.reset);
}

TEST(StreamLink, CutByFinLetsTheWriterWriteIntoTheVoid) {
  Scheduler s;
  StreamLink link(s, 1, {.window = 1000});
  link.cut_after(link.a(), 100, Cut::fin);
  write(link.a(), pattern(1000, 1));
  EXPECT_EQ(write(link.a(), pattern(1, 1)), 0U);
  bool woken = false;
  link.a().on_event([&] { woken = true; });
  s.run_for(1s);
  EXPECT_TRUE(woken);
  EXPECT_EQ(write(link.a(), pattern(5000, 2)), 5000U);
  EXPECT_FALSE(link.a().was_reset());
  EXPECT_EQ(write(link.b(), pattern(10, 3)), 10U) << "the other direction lives";
  s.run_for(1s);
  EXPECT_EQ(link.a().readable(), 10U);
  EXPECT_EQ(link.b().readable(), 100U);
}

TEST(StreamLink, CutByResetTellsTheWriterLater) {
  Scheduler s;
  StreamLink link(s, 1, {.delay = 10us});
  link.cut_after(link.a(), 1, Cut::reset);
  write(link.a(), pattern(2, 1));
  s.run_for(10us);
  EXPECT_TRUE(link.b().was_reset());
  EXPECT_FALSE(link.a().was_reset());
  s.run_for(10us);
  EXPECT_TRUE(link.a().was_reset());
}

TEST(StreamLink, SilenceTellsNobody) {
  Scheduler s;
  StreamLink link(s, 1, {.window = 1000});
  int events = 0;
  link.a().on_event([&] { ++events; });
  link.b().on_event([&] { ++events; });
  link.cut_after(link.a(), 0, Cut::silence);
  s.run_for(1ms);
  EXPECT_EQ(write(link.a(), pattern(5000, 1)), 1000U) << "the window fills";
  EXPECT_EQ(write(link.b(), pattern(10, 1)), 10U);
  link.b().shutdown_write();
  link.a().reset();
  s.run_for(100s);
  EXPECT_EQ(events, 0);
  EXPECT_EQ(link.b().readable(), 0U);
  EXPECT_FALSE(link.b().was_reset());
  EXPECT_EQ(s.pending(), 0U);
}

TEST(StreamLink, SilenceSwallowsAResetOnItsWay) {
  Scheduler s;
  StreamLink link(s, 1, {.delay = 10us});
  link.a().on_event([] { FAIL(); });
  link.cut_at(s.now() + 5us, Cut::silence);
  link.b().reset();
  s.run_for(1s);
  EXPECT_FALSE(link.a().was_reset());
}

TEST(StreamLink, CutAtATime) {
  for (const Cut kind : {Cut::fin, Cut::reset, Cut::silence}) {
    Scheduler s;
    StreamLink link(s, 1, {.delay = 10us});
    int events = 0;
    link.a().on_event([&] { ++events; });
    link.b().on_event([&] { ++events; });
    link.cut_at(s.now() + 25us, kind);
    write(link.a(), pattern(100, 1));
    s.run_for(20us);
    EXPECT_EQ(events, 1);
    write(link.a(), pattern(50, 2));
    write(link.b(), pattern(50, 3));
    s.run_for(1s);
    EXPECT_EQ(link.b().readable(), 100U) << "what was on the way is lost";
    EXPECT_EQ(link.a().readable(), 0U);
    EXPECT_EQ(events, kind == Cut::silence ? 1 : 3);
    EXPECT_EQ(link.a().fin_received() && link.b().fin_received(), kind == Cut::fin);
    EXPECT_EQ(link.a().was_reset() && link.b().was_reset(), kind == Cut::reset);
  }
}

}  // namespace
}  // namespace weft::sim
