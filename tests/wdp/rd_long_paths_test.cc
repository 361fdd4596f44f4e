// Windows on long paths (spec/wdp-rd 4.5, 7.3): they grow with what the path needs and the reader
// takes, and not where it is short; and what was set aside for them goes back. All randomness comes
// from the seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/support/rd_hosts.h"
#include "wdp/rd_stream.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

constexpr uint8_t kFrom = 1;
constexpr uint8_t kTo = 2;
constexpr size_t kMost = 1412;     // bytes of a datagram
constexpr size_t kPeriod = 65521;  // after which the bytes of a stream come again
constexpr size_t kMiB = 1 << 20;
constexpr Duration kFar = 20ms;  // each way

// An RC connection whose sender always has more to say, and whose reader takes all at once.
class Connection {
 public:
  explicit Connection(Hosts& hosts, uint8_t index)
      : hosts_(hosts), a_(hosts, kFrom, index, 1), b_(hosts, kTo, index, 2) {
    a_.begin(b_);
    b_.begin(a_);
  }
  // `sends`: else it only reads.
  void run_for(Duration d, Duration turn, bool sends = true) {
    for (const Time end = hosts_.scheduler.now() + d; hosts_.scheduler.now() < end;) {
      if (a_.stream.needs_channel())
        hosts_.host(kFrom).open(a_.stream.path(), hosts_.scheduler.now());
      if (sends && a_.stream.has_channel()) send();
      read();
      if (testing::Test::HasFatalFailure()) return;
      hosts_.wake(kFrom);
      hosts_.wake(kTo);
      hosts_.scheduler.run_for(turn);
    }
  }
  size_t read_bytes() const { return read_; }
  int error() const { return std::max(a_.stream.error(), b_.stream.error()); }

 private:
  struct End final : wdp::RdStreamOwner {
    End(Hosts& hosts, uint8_t on, uint8_t index, uint32_t session)
        : host(on),
          offer{.qpn = make_qpn(RdNode::kPort, index), .session = session},
          stream(hosts.host(on).socket.channels(), *this, offer) {}
    void stream_changed() override {}
    void begin(const End& peer) {
      stream.begin(peer.offer,
                   {.to = RdNode::address_of(peer.host), .from = RdNode::address_of(host).address},
                   kMost);
    }
    const uint8_t host;
    const wire::RdOffer offer;
    wdp::RdStream stream;
  };

  void send() {
    for (;;) {
      const size_t at = sent_ % kPeriod;
      const IoVec piece{pattern_.data() + at, kPeriod};
      const size_t n = a_.stream.send({&piece, 1}).bytes;
      sent_ += n;
      if (n < kPeriod) return;
    }
  }
  void read() {
    for (;;) {
      const IoVec room{room_.data(), room_.size()};
      const size_t n = b_.stream.read({&room, 1}).bytes;
      if (n == 0) return;
      ASSERT_TRUE(std::equal(room_.begin(), room_.begin() + static_cast<ptrdiff_t>(n),
                             pattern_.begin() + static_cast<ptrdiff_t>(read_ % kPeriod)));
      read_ += n;
    }
  }

  Hosts& hosts_;
  End a_;
  End b_;
  Buffer pattern_ = [] {
    Buffer once = pattern_bytes(kPeriod, 3);
    once.insert(once.end(), once.begin(), once.end());
    return once;
  }();
  Buffer room_ = Buffer(kPeriod);
  size_t sent_ = 0;
  size_t read_ = 0;
};

size_t free_of(Hosts& hosts, uint8_t host) {
  return hosts.host(host).socket.channels().budget()->free();
}
size_t window_of(Hosts& hosts, uint8_t host) {
  return hosts.host(host).links.front().channel.receiver()->most();
}

TEST(LongPaths, AWindowGrowsUntilItHoldsUpNobody) {
  Hosts hosts(1, 2, {.delay = kFar});
  Connection c{hosts, 1};
  c.run_for(800ms, 1ms);
  const size_t before = c.read_bytes();
  constexpr int kTrips = 5;
  c.run_for(kTrips * 2 * kFar, 1ms);
  EXPECT_EQ(c.error(), 0);
  // 4096 datagrams under way are the limit then (spec/wdp-rd 4.2).
  EXPECT_GT((c.read_bytes() - before) / kTrips, 4 * kMiB) << "a round trip";
  EXPECT_EQ(window_of(hosts, kTo), wdp::kLongestWindow);
}

TEST(LongPaths, OnAShortPathItKeepsItsSize) {
  Hosts hosts(2, 2, {.delay = 25us});
  Connection c{hosts, 1};
  c.run_for(10ms, 100us);
  EXPECT_GT(c.read_bytes(), 20 * kMiB) << "it was held up by the window";
  EXPECT_EQ(window_of(hosts, kTo), kMiB);
  EXPECT_EQ(free_of(hosts, kFrom), wdp::kSocketExtra);
  EXPECT_EQ(free_of(hosts, kTo), wdp::kSocketExtra);
}

TEST(LongPaths, WhoSaysLittleKeepsItsSize) {
  Hosts hosts(3, 2, {.delay = kFar});
  Connection c{hosts, 1};
  // 64 KB now and then.
  for (int i = 0; i < 200; ++i) {
    c.run_for(1us, 1us);
    c.run_for(100ms, 100ms, false);
  }
  EXPECT_EQ(window_of(hosts, kTo), kMiB);
}

TEST(LongPaths, WhatRestsGivesBackWhatWasSetAside) {
  Hosts hosts(4, 2, {.delay = kFar});
  Connection c{hosts, 1};
  c.run_for(800ms, 1ms);
  EXPECT_LT(free_of(hosts, kFrom), wdp::kSocketExtra);
  EXPECT_LT(free_of(hosts, kTo), wdp::kSocketExtra - 6 * kMiB) << "channel and connection";
  c.run_for(11s, 1ms, false);
  EXPECT_EQ(window_of(hosts, kTo), kMiB);
  EXPECT_EQ(free_of(hosts, kFrom), wdp::kSocketExtra);
  EXPECT_EQ(free_of(hosts, kTo), wdp::kSocketExtra);
  // And it goes on, to the same size again.
  c.run_for(1s, 1ms);
  EXPECT_EQ(c.error(), 0);
  EXPECT_EQ(window_of(hosts, kTo), wdp::kLongestWindow);
}

// Where datagrams are lost all still comes, and in order; that is compared byte by byte.
TEST(LongPaths, WithLossesNothingIsMissing) {
  Hosts hosts(5, 2, {.faults = {.loss = 0.001, .seed = 5}, .delay = kFar});
  Connection c{hosts, 1};
  c.run_for(3s, 1ms);
  EXPECT_EQ(c.error(), 0);
  EXPECT_GT(c.read_bytes(), 3 * kMiB);
}

}  // namespace
}  // namespace weft::test
