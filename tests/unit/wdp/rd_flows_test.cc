#include "wdp/rd_flows.h"

#include <vector>

#include "tests/unit/wdp/rd_two_nodes.h"

namespace weft::wdp {
namespace {

using Flow = RdFlows::Flow;

struct RdFlowsTest : RdTwoNodes {
  // To queue pair `index` of host b, or of a third one.
  UdDestination destination(uint8_t index, uint8_t host = kB) {
    return {.path = {.to = test::RdNode::address_of(host), .from = a.address.address},
            .qpn = make_qpn(test::RdNode::kPort, index)};
  }
  RdChannel& channel_to(uint8_t host) { return a.open(destination(1, host).path, now); }
  std::vector<uint8_t> busy() {
    std::vector<uint8_t> all;
    flows.for_each_busy([&](const Flow& f) { all.push_back(f.didx); });
    return all;
  }
  using Indices = std::vector<uint8_t>;

  RdFlows flows;
};

TEST_F(RdFlowsTest, ThereIsOneToEachQueuePair) {
  Flow& one = flows.to(destination(1));
  Flow& other = flows.to(destination(2));
  Flow& third = flows.to(destination(1, 3));
  EXPECT_NE(&one, &other);
  EXPECT_NE(&one, &third);
  EXPECT_EQ(&flows.to(destination(1)), &one);
  EXPECT_EQ(flows.size(), 3U);
  EXPECT_EQ(other.didx, 2);
  EXPECT_EQ(third.path.to, test::RdNode::address_of(3));
}

TEST_F(RdFlowsTest, IsFoundByItsChannel) {
  RdChannel& channel = channel_to(kB);
  RdChannel& other = channel_to(3);
  Flow& flow = flows.to(destination(1));
  EXPECT_EQ(flows.find(channel, 1), nullptr);
  flows.carry(flow, channel);
  EXPECT_EQ(flow.channel, &channel);
  EXPECT_EQ(flows.find(channel, 1), &flow);
  EXPECT_EQ(flows.find(channel, 2), nullptr);
  EXPECT_EQ(flows.find(other, 1), nullptr);
}

TEST_F(RdFlowsTest, GoesByNoneWhenItsChannelEnds) {
  RdChannel& channel = channel_to(kB);
  RdChannel& other = channel_to(3);
  for (uint8_t index = 1; index <= 3; ++index) flows.carry(flows.to(destination(index)), channel);
  flows.carry(flows.to(destination(1, 3)), other);
  Indices taken;
  while (Flow* const flow = flows.take_from(channel)) {
    EXPECT_EQ(flow->channel, nullptr);
    EXPECT_EQ(flows.find(channel, flow->didx), nullptr);
    taken.push_back(flow->didx);
  }
  EXPECT_EQ(taken, (Indices{1, 2, 3}));
  EXPECT_NE(flows.find(other, 1), nullptr);
}

TEST_F(RdFlowsTest, KeepsItsPathWhileItGoesByAChannel) {
  UdDestination to = destination(1);
  Flow& flow = flows.to(to);
  to.path.traffic_class = 4;
  (void)flows.to(to);
  EXPECT_EQ(flow.path.traffic_class, 4);
  flows.carry(flow, channel_to(kB));
  to.path.traffic_class = 8;
  EXPECT_EQ(&flows.to(to), &flow);
  EXPECT_EQ(flow.path.traffic_class, 4);
}

TEST_F(RdFlowsTest, BusyOnesTakeTurns) {
  for (uint8_t index = 1; index <= 3; ++index) flows.set_busy(flows.to(destination(index)));
  flows.set_busy(flows.to(destination(2)));
  EXPECT_EQ(busy(), (Indices{1, 2, 3}));
  flows.turn();
  EXPECT_EQ(busy(), (Indices{2, 3, 1}));
  flows.set_resting(flows.to(destination(3)));
  flows.set_resting(flows.to(destination(3)));
  EXPECT_EQ(busy(), (Indices{2, 1}));
}

TEST_F(RdFlowsTest, OneMayRestInItsTurn) {
  for (uint8_t index = 1; index <= 3; ++index) flows.set_busy(flows.to(destination(index)));
  flows.for_each_busy([&](Flow& f) { flows.set_resting(f); });
  EXPECT_EQ(busy(), Indices{});
  EXPECT_EQ(flows.size(), 3U);
}

TEST_F(RdFlowsTest, KeepsSomeOfThoseThatRest) {
  flows.set_busy(flows.to(destination(1)));
  for (uint8_t host = 3; host < 3 + RdFlows::kResting; ++host) (void)flows.to(destination(2, host));
  EXPECT_EQ(flows.size(), RdFlows::kResting + 1);
  RdChannel& channel = channel_to(3);
  flows.carry(flows.to(destination(2, 3)), channel);
  (void)flows.to(destination(2, 200));
  EXPECT_EQ(flows.size(), RdFlows::kResting + 1);
  EXPECT_EQ(flows.find(channel, 2), nullptr) << "the first that came to rest is gone";
  EXPECT_EQ(busy(), Indices{1});
}

TEST_F(RdFlowsTest, ForgetsOneWithItsChannel) {
  RdChannel& channel = channel_to(kB);
  Flow& flow = flows.to(destination(1));
  flows.carry(flow, channel);
  flows.forget(flow);
  EXPECT_EQ(flows.size(), 0U);
  EXPECT_EQ(flows.find(channel, 1), nullptr);
  EXPECT_EQ(flows.take_from(channel), nullptr);
}

// A channel asks whether its peer is there while it has flows that are busy.
TEST_F(RdFlowsTest, ItsChannelKnowsWhetherItIsBusy) {
  RdChannel& channel = channel_to(kB);
  talk();
  ASSERT_EQ(channel.state(), RdChannel::State::open);
  Flow& flow = flows.to(destination(1));
  flows.set_busy(flow);
  flows.carry(flow, channel);
  later(std::chrono::hours{1});
  RdChannels& channels = a.socket.channels();
  EXPECT_EQ(channels.find(destination(1).path), &channel);
  flows.set_resting(flow);
  later(std::chrono::hours{1});
  EXPECT_EQ(channels.find(destination(1).path), nullptr) << "nobody needs it, so it has ended";
}

TEST_F(RdFlowsTest, IsEmptyWhenItIsCleared) {
  flows.set_busy(flows.to(destination(1)));
  (void)flows.to(destination(2));
  flows.clear();
  EXPECT_EQ(flows.size(), 0U);
  EXPECT_EQ(busy(), Indices{});
  flows.set_busy(flows.to(destination(1)));
  EXPECT_EQ(busy(), Indices{1});
}

}  // namespace
}  // namespace weft::wdp
