// Channels at a stated rate on a long path that loses (spec/wdp-rd 5.4), beside CUBIC on the same
// path, by virtual time. All randomness comes from the seed.

#include <gtest/gtest.h>

#include "tests/support/rd_hosts.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

constexpr uint8_t kFrom = 1;
constexpr uint8_t kTo = 2;
constexpr size_t kMessage = 1000;
constexpr size_t kDatagram = kMessage + wire::WdpData::kSize;
constexpr double kGbps = 0.05;
constexpr Duration kTime = 2s;
// What goes in that time.
constexpr double kWhole = kGbps * 1e9 / 8 * 2 / kDatagram;

// Messages of UD, each of which is compared when it comes.
struct Flow {
  explicit Flow(uint64_t seed, double gbps, double loss)
      : hosts(seed, 2, {.faults = {.loss = loss, .seed = seed}, .delay = 20ms}) {
    hosts.host(kFrom).fixed_rate = gbps;
    for (const Time end = hosts.scheduler.now() + kTime; hosts.scheduler.now() < end;) {
      turn();
      hosts.scheduler.run_for(1ms);
    }
  }
  void turn() {
    RdNode::Pair& from = hosts.pair(kFrom, 1);
    RdNode::Pair& to = hosts.pair(kTo, 1);
    while (posted - from.host.sent.size() < 1000) {
      from.send(kTo, 1, pattern_bytes(kMessage, ++posted));
      to.post_receives(1);
    }
    for (; came < to.received.size(); ++came) {
      EXPECT_EQ(to.received[came].bytes, pattern_bytes(kMessage, came + 1));
      to.received[came].bytes = {};
    }
    hosts.wake(kFrom);
    hosts.wake(kTo);
  }
  const wdp::RdSendCounters& counters() {
    return hosts.host(kFrom).links.front().channel.sender().counters();
  }

  Hosts hosts;
  size_t posted = 0;
  size_t came = 0;
};

TEST(RdFixedRate, FillsALossyPathThatCubicDoesNot) {
  Flow fixed{1, kGbps, 0.01};
  Flow cubic{1, 0, 0.01};
  EXPECT_GT(static_cast<double>(fixed.came), 0.9 * kWhole);
  EXPECT_GT(fixed.came, 4 * cubic.came);
  EXPECT_GT(fixed.counters().lost, 50U);
  EXPECT_GT(cubic.counters().lost, 5U);
}

// Nor does it send more than told, whatever is lost.
TEST(RdFixedRate, SendsNoFasterThanTold) {
  Flow fixed{2, kGbps, 0.05};
  const auto all = static_cast<double>(fixed.counters().sent + fixed.counters().repeated);
  EXPECT_LT(all, 1.01 * kWhole);
  // Handshake and first window take some 100 ms, and what is lost three times in a row holds up the
  // receiver's window.
  EXPECT_GT(all, 0.85 * kWhole);
  EXPECT_GT(static_cast<double>(fixed.came), 0.75 * kWhole);
}

}  // namespace
}  // namespace weft::test
