// FPDUs over a simulated TCP: the least that MPA relies on, with the framing of spec/mpa 3.3
// written out by hand. However the stream is cut, every ULPDU comes out as it went in; a damaged
// byte is seen before anything behind it is believed.

#include <gtest/gtest.h>

#include <optional>

#include "sim/draw.h"
#include "sim/seeds.h"
#include "sim/stream_link.h"
#include "tests/support/fpdu.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using test::Buffer;

// Takes FPDUs out of a stream, each as soon as it is complete, until one has a wrong CRC or a
// length that no FPDU has.
class Deframer {
 public:
  explicit Deframer(sim::StreamEnd& end) : end_(end) {}
  void pump() {
    Buffer news(end_.readable());
    MutableBytes piece{news};
    end_.read(std::span{&piece, 1});
    bytes_.insert(bytes_.end(), news.begin(), news.end());
    while (!damaged && bytes_.size() >= wire::kFpduLengthSize) {
      const size_t size = wire::fpdu_size(load_be<uint16_t>(bytes_.data()));
      if (bytes_.size() < size) return;
      const Buffer frame(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(size));
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(size));
      const test::SplitFpdu f = test::split_fpdu(frame);
      damaged = f.crc != f.crc_field;
      if (!damaged) ulpdus.emplace_back(f.ulpdu.begin(), f.ulpdu.end());
    }
  }
  bool between_fpdus() const { return bytes_.empty(); }

  std::vector<Buffer> ulpdus;
  bool damaged = false;

 private:
  sim::StreamEnd& end_;
  Buffer bytes_;
};

struct Traffic {
  std::vector<Buffer> ulpdus;
  Buffer stream;
};
Traffic traffic(Random& random, size_t count) {
  Traffic t;
  for (size_t i = 0; i < count; ++i) {
    const size_t n = i % 40 == 7 ? wire::kMaxUlpdu - i % 4 : 14 + sim::draw_below(random, 1500);
    t.ulpdus.push_back(test::pattern(n, i));
    const Buffer frame = test::make_fpdu(t.ulpdus.back());
    t.stream.insert(t.stream.end(), frame.begin(), frame.end());
  }
  return t;
}

sim::StreamOptions any_options(Random& random) {
  sim::StreamOptions o;
  o.segmentation = static_cast<sim::Segmentation>(sim::draw_below(random, 4));
  o.jitter = Duration{static_cast<int64_t>(sim::draw_below(random, 200'000))};
  o.window = 1000 + sim::draw_size(random, 200'000);
  o.short_write = sim::draw_below(random, 2) == 0 ? 0 : 0.2;
  return o;
}

// Writes all of `stream` from A, pumps `deframer` at B, until nothing happens any more.
void run(sim::Scheduler& s, sim::StreamLink& link, const Buffer& stream, Deframer& deframer) {
  size_t done = 0;
  const auto pump = [&] {
    const Bytes rest = Bytes{stream}.subspan(done);
    done += link.a().write(std::span{&rest, 1});
    if (done == stream.size()) link.a().shutdown_write();
  };
  link.a().on_event(pump);
  link.b().on_event([&] { deframer.pump(); });
  pump();
  ASSERT_TRUE(s.run_until_idle(1000s));
}

TEST(FpduStream, EveryUlpduComesOutAsItWentIn) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    const Traffic t = traffic(random, 60);
    sim::Scheduler s;
    sim::StreamLink link(s, seed, any_options(random));
    Deframer deframer(link.b());
    run(s, link, t.stream, deframer);
    EXPECT_TRUE(deframer.ulpdus == t.ulpdus);
    EXPECT_TRUE(deframer.between_fpdus() && link.b().fin_received());
    EXPECT_FALSE(deframer.damaged);
  }
}

TEST(FpduStream, ADamagedByteIsNeverDelivered) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    const Traffic t = traffic(random, 30);
    sim::Scheduler s;
    sim::StreamLink link(s, seed, any_options(random));
    Deframer deframer(link.b());
    link.corrupt(link.a(), sim::draw_below(random, t.stream.size()),
                 static_cast<std::byte>(1U << sim::draw_below(random, 8)));
    run(s, link, t.stream, deframer);
    ASSERT_LT(deframer.ulpdus.size(), t.ulpdus.size());
    EXPECT_TRUE(deframer.damaged || !deframer.between_fpdus());
    for (size_t i = 0; i < deframer.ulpdus.size(); ++i) {
      EXPECT_TRUE(deframer.ulpdus[i] == t.ulpdus[i]) << i;
    }
  }
}

TEST(FpduStream, ACutInsideAnFpduIsNoCleanEnd) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    const Traffic t = traffic(random, 30);
    sim::Scheduler s;
    sim::StreamLink link(s, seed, any_options(random));
    Deframer deframer(link.b());
    const uint64_t after = sim::draw_below(random, t.stream.size());
    link.cut_after(link.a(), after, sim::Cut::fin);
    run(s, link, t.stream, deframer);
    size_t whole = 0;
    uint64_t end = 0;
    while (end + wire::fpdu_size(t.ulpdus[whole].size()) <= after) {
      end += wire::fpdu_size(t.ulpdus[whole++].size());
    }
    EXPECT_EQ(deframer.ulpdus.size(), whole);
    EXPECT_EQ(deframer.between_fpdus(), end == after);
    EXPECT_TRUE(link.b().fin_received());
  }
}

}  // namespace
}  // namespace weft
