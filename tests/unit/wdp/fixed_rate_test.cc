// The rate that a user states (spec/wdp-rd 5.4): what it is, and how a channel keeps to it.

#include "wdp/fixed_rate.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/wdp/rd_channel_fixture.h"
#include "wdp/ecn.h"
#include "wire/wdp_data.h"

namespace weft::wdp {
namespace {

using test::Buffer;

TEST(FixedRate, PausesForAsLongAsTheBytesTake) {
  const FixedRate fixed{0.3};
  const Congestion::Departure d{.bytes = 1500, .weight = 1756};
  for (const Duration trip : {Duration{0ms}, Duration{10us}, Duration{2s}}) {
    EXPECT_EQ(fixed.pause(d, trip), 40us);
  }
  EXPECT_EQ(FixedRate{1000}.pause(d, 0ms), 12ns);
  EXPECT_EQ(FixedRate{1e-300}.pause(d, 0ms), Congestion::kMostPause);
}

TEST(FixedRate, NothingChangesIt) {
  FixedRate fixed{0.3};
  const Congestion::Departure d{.bytes = 1500, .weight = 1756};
  fixed.carried(9000);
  fixed.acknowledged(9000, {}, true, 1ms, 1ms, {});
  fixed.congested({}, {});
  fixed.collapsed({});
  EXPECT_EQ(fixed.window(), SIZE_MAX);
  EXPECT_EQ(fixed.pause(d, 1ms), 40us);
}

// One end of a channel whose datagrams go nowhere. Each takes 100 us.
struct FixedSender : ::testing::Test {
  static constexpr size_t kSize = 1250;
  static constexpr Duration kEach = 100us;

  explicit FixedSender(double gbps = 0.1)
      : sender(Csn{0}, std::make_unique<FixedRate>(gbps), false) {
    sender.open(SessionToken{9}, false, now);
    arrive(0);  // the peer has room
  }
  void append(size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const auto bytes = test::pattern_bytes(kSize, ++appended_);
      SentDatagram& d = sender.append(kSize, 0, 0);
      std::memcpy(d.bytes.get(), bytes.data(), kSize);
      wire::WdpData{.wdp_class = wire::WdpClass::rd, .opcode = wire::Opcode::send, .stride = 1}
          .encode(d.bytes.get());
    }
  }
  size_t send() {
    size_t n = 0;
    while (sender.ready(now)) {
      Train train;
      sender.fill(train, path, now);
      if (train.empty()) break;
      n += train.datagrams();
    }
    return n;
  }
  // As a driver does: turns at its deadlines alone.
  size_t run_for(Duration d) {
    const Time end = now + d;
    size_t n = send();
    while (sender.deadline() <= end) {
      now = std::max(now, sender.deadline());
      EXPECT_TRUE(sender.tick(now));
      n += send();
    }
    now = end;
    return n;
  }
  // All before `cum`, and one more.
  void arrive(uint32_t cum, std::optional<uint32_t> held = {}) {
    wire::WdpAck ack;
    ack.cum = Csn{cum};
    ack.window = 1024;
    ack.timestamp = ++clock_;
    if (held) ack.hold(Csn{*held});
    EXPECT_TRUE(sender.received(ack, now, [](const SentDatagram&) {}).ok());
  }

  Time now = Time::from_ns(1'000'000'000);
  Path path{.to = {Gid::from_ipv4(0x0a000002), 4000}, .from = Gid::from_ipv4(0x0a000001)};
  RdSendPath sender;

 private:
  size_t appended_ = 0;
  uint32_t clock_ = 0;
};

// No round trip is known, and CUBIC's first window would be 32 datagrams at once.
TEST_F(FixedSender, KeepsToItsRateFromTheFirstDatagramOn) {
  append(500);
  EXPECT_EQ(run_for(0ms), 11U) << "the millisecond that it may make good for, and one";
  EXPECT_EQ(run_for(20ms), 200U);
  EXPECT_EQ(sender.counters().probes, 0U);
}

// The window is what the receiver takes, 1 MiB.
TEST_F(FixedSender, GoesOnUntilTheReceiverIsFull) {
  constexpr size_t kFull = (size_t{1} << 20) / (kSize + kDatagramOverhead);
  append(kFull + 10);
  while (sender.counters().probes == 0) run_for(1ms);
  EXPECT_EQ(sender.counters().sent, kFull);
}

TEST_F(FixedSender, RepeatsWhatIsLostAtTheSameRate) {
  append(400);
  ASSERT_EQ(run_for(28ms), 291U);
  arrive(0, 200);
  EXPECT_EQ(run_for(30ms), 300U);
  EXPECT_EQ(sender.counters().lost, 200U) << "all before the one that has come";
  EXPECT_EQ(sender.counters().repeated, 200U);
  EXPECT_EQ(sender.counters().sent, 391U);
}

// RFC 9002 7.6 would go on with two datagrams in a round trip.
TEST_F(FixedSender, SilenceDoesNotMakeItSlower) {
  append(1000);
  run_for(10ms);
  run_for(5ms);
  arrive(120);
  while (sender.counters().probes < kProbesToCollapse + 1) run_for(1ms);
  const auto before = sender.counters();
  arrive(121, 700);  // what was asked with, and much is lost
  ASSERT_GT(sender.counters().lost, before.lost);
  run_for(0ms);
  EXPECT_EQ(run_for(10ms), 100U);
}

// 12 s for a datagram, as if nobody answered.
struct SlowSender : FixedSender {
  SlowSender() : FixedSender(kSize * 8 / 12e9) {}
};
TEST_F(SlowSender, WhoWaitsForItsPaceAsksNobody) {
  append(3);
  EXPECT_EQ(run_for(0ms), 1U);
  now = now + 1ms;
  arrive(1);
  EXPECT_EQ(run_for(11s), 0U);
  EXPECT_EQ(run_for(999ms), 1U);
  EXPECT_EQ(sender.counters().probes, 0U);
  // What is under way is asked for all the same.
  EXPECT_GT(run_for(2s), 0U);
  EXPECT_GT(sender.counters().probes, 0U);
}

using FixedChannel = RdChannelTest;

TEST_F(FixedChannel, MarksAreCountedAndChangeNothing) {
  a.fixed_rate = 1;
  stand();
  q.post_receives(40);
  router = [](bool from_a, uint8_t traffic_class) {
    return std::optional{from_a && traffic_class == kEct0 ? kCe : traffic_class};
  };
  for (int i = 0; i < 12; ++i) p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(p.host.sent.size(), 12U);
  EXPECT_EQ(of_a().sender().counters().marked, 12U);
  EXPECT_EQ(of_b().receiver()->counters().marked, 12U);
  EXPECT_EQ(of_a().sender().counters().repeated, 0U);
  EXPECT_EQ(of_a().sender().congestion().window(), SIZE_MAX);
  EXPECT_LT(of_b().sender().congestion().window(), SIZE_MAX) << "each end chooses for itself";
}

}  // namespace
}  // namespace weft::wdp
