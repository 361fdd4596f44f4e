#include "sim/stream_link.h"

#include <gtest/gtest.h>

#include <tuple>

#include "sim/draw.h"
#include "sim/seeds.h"
#include "tests/unit/sim/stream_test_support.h"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern;

// Writes a buffer into an end as fast as it takes it, in random pieces, and then shuts it down.
class Source {
 public:
  Source(StreamEnd& end, Buffer bytes, uint64_t seed)
      : end_(end), bytes_(std::move(bytes)), random_(seed) {}
  void pump() {
    while (done_ < bytes_.size()) {
      const Bytes rest = Bytes{bytes_}.subspan(done_);
      const Bytes offer = rest.first(std::min<size_t>(rest.size(), draw_size(random_, 100000)));
      const size_t head = draw_below(random_, offer.size() + 1);
      const Bytes pieces[] = {offer.first(head), Bytes{}, offer.subspan(head)};
      const size_t n = end_.write(pieces);
      ASSERT_LE(n, offer.size());
      done_ += n;
      if (n < offer.size()) return;
    }
    if (!shut_) end_.shutdown_write();
    shut_ = true;
  }

 private:
  StreamEnd& end_;
  Buffer bytes_;
  SeededRandom random_;
  size_t done_ = 0;
  bool shut_ = false;
};

// Reads what has come, in random pieces; sometimes only a part of it, and the rest a while later.
class Sink {
 public:
  Sink(Scheduler& scheduler, StreamEnd& end, uint64_t seed)
      : scheduler_(scheduler), end_(end), random_(seed), later_(scheduler, [this] { pump(); }) {}
  void pump() {
    while (end_.readable() > 0 && !draw_chance(random_, 0.1)) {
      Buffer first(draw_below(random_, 5000));
      Buffer second(draw_below(random_, 5000));
      const MutableBytes pieces[] = {first, second};
      const size_t readable = end_.readable();
      const size_t n = end_.read(pieces);
      ASSERT_EQ(n, std::min(readable, first.size() + second.size()));
      Buffer all = test::join({first, second});
      bytes.insert(bytes.end(), all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
    }
    if (end_.readable() > 0) later_.set(scheduler_.now() + 70us);
  }
  bool at_end() const { return end_.fin_received() && end_.readable() == 0; }

  Buffer bytes;

 private:
  Scheduler& scheduler_;
  StreamEnd& end_;
  SeededRandom random_;
  Alarm later_;
};

// --- the promise: in order, exactly once, both ways, however it is cut

class StreamLinkSegmentation : public testing::TestWithParam<Segmentation> {};

TEST_P(StreamLinkSegmentation, BytesArriveInOrderAndOnce) {
  for (const uint64_t seed : seeds(20)) {
    WEFT_SIM_TRACE(seed);
    Scheduler s;
    SeededRandom random(seed);
    StreamOptions options;
    options.segmentation = GetParam();
    options.jitter = draw_below(random, 2) == 0 ? 0us : 300us;
    options.window = draw_size(random, 60000);
    options.short_write = draw_below(random, 2) == 0 ? 0 : 0.3;
    options.mss = 1 + draw_below(random, 2000);
    StreamLink link(s, seed, options);
    const Buffer a_bytes = pattern(draw_size(random, 60000), 2 * seed);
    const Buffer b_bytes = pattern(draw_size(random, 60000), 2 * seed + 1);
    Source from_a(link.a(), a_bytes, seed + 100);
    Source from_b(link.b(), b_bytes, seed + 200);
    Sink at_a(s, link.a(), seed + 300);
    Sink at_b(s, link.b(), seed + 400);
    const auto pump = [&] {
      from_a.pump();
      from_b.pump();
      at_a.pump();
      at_b.pump();
    };
    link.a().on_event(pump);
    link.b().on_event(pump);
    pump();
    ASSERT_TRUE(s.run_until([&] { return at_a.at_end() && at_b.at_end(); }, 1000s));
    EXPECT_TRUE(at_b.bytes == a_bytes);
    EXPECT_TRUE(at_a.bytes == b_bytes);
    EXPECT_FALSE(link.a().was_reset() || link.b().was_reset());
  }
}
std::string segmentation_name(const testing::TestParamInfo<Segmentation>& param) {
  static constexpr const char* kNames[] = {"whole", "bytewise", "random", "mss"};
  return kNames[static_cast<size_t>(param.param)];
}
INSTANTIATE_TEST_SUITE_P(All, StreamLinkSegmentation, testing::ValuesIn(kAll), segmentation_name);

// --- time and pieces

// When bytes arrive and how many: what the link does to one write of `n` bytes.
std::vector<std::pair<int64_t, size_t>> arrivals(const StreamOptions& options, uint64_t seed,
                                                 size_t n, int writes = 1) {
  Scheduler s;
  StreamLink link(s, seed, options);
  std::vector<std::pair<int64_t, size_t>> all;
  link.b().on_event([&] {
    all.emplace_back(s.now().ns(), link.b().readable());
    read_all(link.b());
  });
  for (int i = 0; i < writes; ++i) {
    EXPECT_EQ(write(link.a(), pattern(n, seed + static_cast<uint64_t>(i))), n);
  }
  EXPECT_TRUE(s.run_until_idle(10s));
  return all;
}
using Arrivals = std::vector<std::pair<int64_t, size_t>>;

TEST(StreamLink, WholeArrivesInOnePieceAfterTheDelay) {
  EXPECT_EQ(arrivals({.delay = 40us}, 1, 5000), (Arrivals{{41000, 5000}}));
}

TEST(StreamLink, BytewiseArrivesByteByByte) {
  const auto a = arrivals({.delay = 40us, .segmentation = Segmentation::bytewise}, 1, 300);
  ASSERT_EQ(a.size(), 300U);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].second, 1U);
    if (i > 0) {
      EXPECT_GT(a[i].first, a[i - 1].first);
    }
  }
}

TEST(StreamLink, MssCutsFixedPieces) {
  const auto a = arrivals({.segmentation = Segmentation::mss, .mss = 1000}, 1, 2500);
  ASSERT_EQ(a.size(), 3U);
  EXPECT_EQ(std::make_tuple(a[0].second, a[1].second, a[2].second),
            std::make_tuple(1000U, 1000U, 500U));
}

TEST(StreamLink, RandomCutsAndGlues) {
  size_t cut = 0;
  size_t glued = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    if (arrivals({.segmentation = Segmentation::random}, seed, 1000).size() > 1) ++cut;
    for (const auto& [at, n] : arrivals({.segmentation = Segmentation::random}, seed, 10, 2)) {
      if (n > 10) ++glued;
    }
  }
  EXPECT_GT(cut, 30U);
  EXPECT_LT(cut, 100U) << "now and then all comes at once";
  EXPECT_GT(glued, 5U) << "two writes in one piece";
}

TEST(StreamLink, JitterStaysInItsBounds) {
  std::set<int64_t> times;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto a = arrivals({.delay = 10us, .jitter = 5us}, seed, 1);
    ASSERT_EQ(a.size(), 1U);
    EXPECT_GE(a[0].first, 11000);
    EXPECT_LE(a[0].first, 16000);
    times.insert(a[0].first);
  }
  EXPECT_GT(times.size(), 100U);
}

TEST(StreamLink, TheSameSeedMakesTheSameRun) {
  const StreamOptions options{.jitter = 100us, .segmentation = Segmentation::random};
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(arrivals(options, seed, 20000), arrivals(options, seed, 20000));
  }
  EXPECT_NE(arrivals(options, 1, 20000), arrivals(options, 2, 20000));
}

TEST(StreamLink, NothingIsCalledFromWithinACall) {
  Scheduler s;
  StreamLink link(s, 1, {.delay = 0us, .window = 10, .short_write = 1});
  bool inside = false;
  int events = 0;
  const auto event = [&] {
    EXPECT_FALSE(inside);
    ++events;
  };
  link.a().on_event(event);
  link.b().on_event(event);
  inside = true;
  write(link.a(), pattern(20, 1));
  inside = false;
  s.run_for(1us);
  inside = true;
  read_all(link.b());
  link.b().shutdown_write();
  link.cut_after(link.a(), 0, Cut::reset);
  link.b().reset();
  inside = false;
  s.run_for(1ms);
  EXPECT_GT(events, 0);
}

TEST(StreamLink, MayGoWhileBytesAreOnTheWay) {
  Scheduler s;
  {
    StreamLink link(s, 1, {.segmentation = Segmentation::bytewise});
    write(link.a(), pattern(100, 1));
    link.cut_at(s.now() + 1s, Cut::reset);
    link.b().reset();
  }
  EXPECT_EQ(s.pending(), 0U);
}

// --- the window

TEST(StreamLink, WriteTakesWhatTheWindowHolds) {
  Scheduler s;
  StreamLink link(s, 1, {.delay = 10us, .window = 1000});
  int woken = 0;
  link.a().on_event([&] { ++woken; });
  EXPECT_EQ(link.a().writable(), 1000U);
  EXPECT_EQ(write(link.a(), pattern(700, 1)), 700U);
  EXPECT_EQ(link.a().writable(), 300U);
  EXPECT_EQ(write(link.a(), pattern(700, 2)), 300U);
  EXPECT_EQ(write(link.a(), pattern(1, 3)), 0U);
  s.run_for(1ms);
  EXPECT_EQ(link.b().readable(), 1000U);
  EXPECT_EQ(woken, 0) << "nobody has read";

  Buffer some(400);
  MutableBytes piece{some};
  EXPECT_EQ(link.b().read(std::span{&piece, 1}), 400U);
  EXPECT_EQ(link.a().writable(), 0U) << "the news takes one delay";
  s.run_for(10us);
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(link.a().writable(), 400U);
}

TEST(StreamLink, NobodyIsWokenWhoGotAllIn) {
  Scheduler s;
  StreamLink link(s, 1, {.window = 1000});
  int woken = 0;
  link.a().on_event([&] { ++woken; });
  EXPECT_EQ(write(link.a(), pattern(1000, 1)), 1000U);
  s.run_for(1ms);
  read_all(link.b());
  s.run_for(1ms);
  EXPECT_EQ(woken, 0);
  EXPECT_EQ(link.a().writable(), 1000U);
}

TEST(StreamLink, ShortWritesComeWithAnEvent) {
  Scheduler s;
  StreamLink link(s, 1, {.short_write = 1});
  int woken = 0;
  link.a().on_event([&] { ++woken; });
  const size_t n = write(link.a(), pattern(1000, 1));
  EXPECT_GE(n, 1U);
  EXPECT_LT(n, 1000U);
  s.run_for(1us);
  EXPECT_EQ(woken, 1);
}

// --- half-close

TEST(StreamLink, FinComesBehindTheBytesAndLeavesTheOtherWayOpen) {
  for (const Segmentation segmentation : kAll) {
    Scheduler s;
    StreamLink link(s, 1, {.jitter = 50us, .segmentation = segmentation});
    const Buffer bytes = pattern(3000, 1);
    int fins = 0;
    link.b().on_event([&] {
      if (!link.b().fin_received()) return;
      EXPECT_EQ(link.b().readable(), 3000U);
      ++fins;
    });
    write(link.a(), bytes);
    link.a().shutdown_write();
    link.a().shutdown_write();
    EXPECT_EQ(write(link.a(), bytes), 0U);
    EXPECT_EQ(link.a().writable(), 0U);
    EXPECT_FALSE(link.b().fin_received());
    s.run_for(1s);
    EXPECT_TRUE(link.b().fin_received());
    EXPECT_EQ(fins, 1) << "a second shutdown says nothing new";
    EXPECT_TRUE(read_all(link.b()) == bytes);
    EXPECT_FALSE(link.a().fin_received());
    EXPECT_EQ(write(link.b(), bytes), bytes.size());
    s.run_for(1s);
    EXPECT_TRUE(read_all(link.a()) == bytes);
  }
}

}  // namespace
}  // namespace weft::sim
