// How windows of channels grow, and what all of a socket's may have together (spec/wdp-rd 4.5).

#include <gtest/gtest.h>

#include <list>

#include "tests/support/pattern.h"
#include "wdp/rd_receive_path.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::Buffer;

constexpr size_t kMiB = 1 << 20;
constexpr size_t kBytes = 60'000;  // of a datagram
constexpr size_t kWeight = kBytes + wire::WdpData::kSize + kDatagramOverhead;
constexpr Duration kTrip = 40ms;
constexpr uint8_t kIndex = 5;

// Messages of one flow, and a queue pair that takes all of them.
struct Receiver final : RdSink {
  explicit Receiver(std::shared_ptr<RdBudget> budget, Duration trip = kTrip)
      : path(Csn{0}, kMiB, RdExtra{std::move(budget)}), trip_(trip) {}
  bool take(const RdArrival&, Bytes) override { return true; }

  bool hear(Time now) {
    if (!path.admit(Csn{next_}, kBytes).ok()) return false;
    const RdArrival arrival{.header = {.didx = kIndex,
                                       .sidx = 3,
                                       .psn = Csn{next_},
                                       .msn = Msn{next_ + 1},
                                       .mlen = kBytes,
                                       .last = true,
                                       .opcode = wire::Opcode::send,
                                       .stride = kBytes}};
    EXPECT_TRUE(path.accept(arrival, payload_, *this, now).ok());
    path.taken(Csn{next_++}, kWeight, 1, false, false, now);
    return true;
  }
  // A sender that the window holds up: a window in each round trip.
  void run(int trips, Time& now) {
    for (int i = 0; i < trips; ++i) {
      const size_t window = size_t{path.acknowledgement(trip_, now).window} * 1024;
      now = now + trip_;
      for (size_t n = 0; n <= window; n += kWeight) hear(now);
    }
  }
  void skip() { ++next_; }

  RdReceivePath path;

 private:
  const Duration trip_;
  uint32_t next_ = 0;
  Buffer payload_ = test::pattern_bytes(kBytes, 4);
};

TEST(RdWindow, DoublesUntilItIsTheLongest) {
  Time now = Time::from_ns(1'000'000'000);
  Receiver r{std::make_shared<RdBudget>()};
  size_t before = r.path.most();
  EXPECT_EQ(before, kMiB);
  for (int i = 0; i < 3; ++i) {
    r.run(1, now);
    EXPECT_EQ(r.path.most(), 2 * before);
    before = r.path.most();
  }
  r.run(5, now);
  EXPECT_EQ(r.path.most(), kLongestWindow);
}

// The path is short: what comes late has waited somewhere else.
TEST(RdWindow, KeepsItsSizeWhereTheRoundTripIsShort) {
  Time now = Time::from_ns(1'000'000'000);
  Receiver r{std::make_shared<RdBudget>(), kLongTrip - 1us};
  r.run(5, now);
  EXPECT_EQ(r.path.most(), kMiB);
}

TEST(RdWindow, AShorterRoundTripTakesItBack) {
  Time now = Time::from_ns(1'000'000'000);
  const auto budget = std::make_shared<RdBudget>();
  Receiver r{budget};
  r.run(2, now);
  ASSERT_EQ(r.path.most(), 4 * kMiB);
  EXPECT_EQ(r.path.acknowledgement(1ms, now).window, 1024U);
  EXPECT_EQ(budget->free(), kSocketExtra);
}

// What it was told of once holds until it hears of less: that comes soon, and is no shorter path.
TEST(RdWindow, ASmallerWindowIsNotHeardAtOnce) {
  Time now = Time::from_ns(1'000'000'000);
  Receiver r{std::make_shared<RdBudget>()};
  r.run(3, now);
  ASSERT_EQ(r.path.most(), kLongestWindow);
  (void)r.path.acknowledgement(kTrip, now);
  now = now + kWindowRests;
  r.path.tick(now);
  ASSERT_EQ(r.path.acknowledgement(kTrip, now).window, 1024U);
  for (size_t n = 0; n <= 2 * kMiB; n += kWeight) r.hear(now + 1us);
  EXPECT_EQ(r.path.sizing().trip(), kTrip);
  EXPECT_FALSE(r.path.sizing().is_short());
}

// Half a window in each round trip: there is nothing that a larger one would be good for.
TEST(RdWindow, KeepsItsSizeWhereItIsNotUsed) {
  Time now = Time::from_ns(1'000'000'000);
  Receiver r{std::make_shared<RdBudget>()};
  for (int i = 0; i < 20; ++i) {
    (void)r.path.acknowledgement(kTrip, now);
    now = now + kTrip;
    for (size_t n = 0; n + kWeight <= kMiB / 2; n += kWeight) r.hear(now);
  }
  EXPECT_EQ(r.path.most(), kMiB);
}

TEST(RdWindow, GoesBackAtRestAndSaysSo) {
  Time now = Time::from_ns(1'000'000'000);
  const auto budget = std::make_shared<RdBudget>();
  Receiver r{budget};
  r.run(3, now);
  (void)r.path.acknowledgement(kTrip, now);
  ASSERT_LT(budget->free(), kSocketExtra);
  EXPECT_EQ(r.path.deadline(), now + kWindowRests);
  now = now + kWindowRests;
  r.path.tick(now);
  EXPECT_EQ(budget->free(), kSocketExtra);
  EXPECT_TRUE(r.path.due(now));
  EXPECT_EQ(r.path.acknowledgement(kTrip, now).window, 1024U);
  EXPECT_TRUE(r.path.deadline().is_never());
}

// A thousand peers, each of which would have 8 MiB.
TEST(RdWindow, AThousandPeersShareWhatThereIs) {
  Time now = Time::from_ns(1'000'000'000);
  const auto budget = std::make_shared<RdBudget>();
  std::list<Receiver> peers;
  size_t all = 0;
  for (int i = 0; i < 1000; ++i) {
    Receiver& r = peers.emplace_back(budget);
    r.run(4, now);
    EXPECT_GE(r.path.most(), kMiB);
    all += r.path.most();
  }
  EXPECT_LE(all, 1000 * kMiB + kSocketExtra);
  EXPECT_EQ(peers.front().path.most(), kLongestWindow);
  // Those that came first have left something for the next ones.
  EXPECT_GT(std::next(peers.begin(), 5)->path.most(), 2 * kMiB);
  peers.clear();
  EXPECT_EQ(budget->free(), kSocketExtra);
}

// Behind a gap each keeps what it has to, and no peer makes it keep more.
TEST(RdWindow, WhatIsKeptHasTheSameBound) {
  Time now = Time::from_ns(1'000'000'000);
  const auto budget = std::make_shared<RdBudget>();
  constexpr size_t kPeers = 12;
  std::list<Receiver> peers;
  size_t kept = 0;
  for (size_t i = 0; i < kPeers; ++i) {
    Receiver& r = peers.emplace_back(budget);
    r.run(4, now);
    r.skip();
    size_t of_one = 0;
    while (r.hear(now)) of_one += kBytes;
    EXPECT_GT(of_one, 2 * kChannelHold - 2 * kBytes);
    EXPECT_GE(of_one, r.path.most());
    kept += of_one;
  }
  EXPECT_LE(kept, kPeers * 2 * kChannelHold + kSocketExtra);
}

}  // namespace
}  // namespace weft::wdp
