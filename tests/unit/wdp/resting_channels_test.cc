#include "wdp/resting_channels.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;

const Time kRestBegins = Time::from_ns(1'000'000'000);

ChannelEnds resting_ends(uint16_t port) {
  return {.to = {Gid::from_ipv4(0x0a000002), port}, .from = Gid::from_ipv4(0x0a000001)};
}

struct RestingChannelsTest : ::testing::Test {
  void add(uint16_t port, Time active) {
    RestingChannel channel;
    channel.token = SessionToken{port};
    channel.active = active;
    channels.add(resting_ends(port), std::move(channel));
  }
  std::set<uint16_t> forget(Time now) {
    std::set<uint16_t> ports;
    while (const auto ends = channels.over(now)) {
      channels.take(*ends);
      ports.insert(ends->to.port);
    }
    return ports;
  }

  RestingChannels channels;
};

TEST_F(RestingChannelsTest, WhoseTimeIsOverIsForgottenInOneLook) {
  for (uint16_t port = 1; port <= 20; ++port) {
    add(port, port % 2 == 0 ? kRestBegins : kRestBegins + 1min);
  }
  EXPECT_EQ(channels.deadline(), kRestBegins + kRestingChannel);
  EXPECT_TRUE(forget(kRestBegins + kRestingChannel - 1ns).empty());
  EXPECT_EQ(forget(kRestBegins + kRestingChannel).size(), 10U);
  EXPECT_EQ(channels.deadline(), kRestBegins + 1min + kRestingChannel);
  EXPECT_EQ(forget(channels.deadline()).size(), 10U);
  EXPECT_TRUE(channels.deadline().is_never());
}

// One that comes while a look is not at its end, in front of where that is or behind it.
TEST_F(RestingChannelsTest, WhoComesDuringALookHasItsTime) {
  const Time now = kRestBegins + kRestingChannel;
  add(10, kRestBegins);
  add(20, kRestBegins);
  const auto first = channels.over(now);
  ASSERT_EQ(first, resting_ends(10));
  channels.take(*first);
  add(5, kRestBegins + 5s);
  add(15, kRestBegins + 9s);
  EXPECT_EQ(forget(now), std::set<uint16_t>{20});
  EXPECT_EQ(channels.deadline(), now + 5s);
  EXPECT_EQ(forget(now + 5s), std::set<uint16_t>{5});
  EXPECT_EQ(forget(now + 9s), std::set<uint16_t>{15});
}

// Behind as many that are not over: a look visits each once.
TEST_F(RestingChannelsTest, ManyAreForgottenAtOnce) {
  constexpr uint16_t kMost = 60'000;
  for (uint16_t port = 1; port <= kMost; ++port) {
    add(port, port <= kMost / 2 ? kRestBegins + 1min : kRestBegins);
  }
  EXPECT_EQ(forget(kRestBegins + kRestingChannel).size(), kMost / 2);
  EXPECT_EQ(channels.size(), kMost / 2);
}

}  // namespace
}  // namespace weft::wdp
