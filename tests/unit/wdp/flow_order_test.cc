#include "wdp/flow_order.h"

#include <gtest/gtest.h>

#include "tests/support/host.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using Fate = FlowOrder::Fate;

struct FlowOrderTest : ::testing::Test, RdSink {
  bool take(const RdArrival& a, Bytes) override {
    if (lacking.contains(a.header.didx)) return false;
    taken.push_back(a.header.sidx * 1'000'000 + a.header.didx * 1000 +
                    static_cast<int>(a.header.msn.value()));
    return true;
  }
  Fate give(uint8_t sidx, uint8_t didx, uint32_t msn) {
    RdArrival a;
    a.header.sidx = sidx;
    a.header.didx = didx;
    a.header.msn = Msn{msn};
    a.header.last = true;
    return order.accept(a, payload, *this);
  }
  FlowOrder order;
  Buffer payload = pattern_bytes(100, 1);
  std::set<uint8_t> lacking;
  std::vector<int> taken;
};

constexpr size_t kWeight = 100 + wire::WdpData::kSize + kDatagramOverhead;

// spec/wdp-rd 4.3: a message waits for what its own flow lacks, and for nothing else.
TEST_F(FlowOrderTest, OnlyItsOwnFlowHoldsItUp) {
  EXPECT_EQ(give(1, 9, 2), Fate::held);
  EXPECT_EQ(order.held_bytes(), kWeight);
  EXPECT_EQ(order.waiting_bytes(), 0U);
  EXPECT_EQ(give(2, 9, 1), Fate::delivered);
  EXPECT_EQ(give(1, 8, 1), Fate::delivered);
  EXPECT_EQ(give(1, 9, 1), Fate::delivered);
  EXPECT_EQ(taken, (std::vector<int>{2'009'001, 1'008'001, 1'009'001, 1'009'002}));
  EXPECT_EQ(order.held_bytes(), 0U);
}

TEST_F(FlowOrderTest, ANumberTwice) {
  give(1, 9, 1);
  EXPECT_EQ(give(1, 9, 1), Fate::repeated);
  give(1, 9, 3);
  EXPECT_EQ(give(1, 9, 3), Fate::repeated);
  EXPECT_EQ(give(1, 9, 3 + kCsnWindow), Fate::too_far);
  EXPECT_EQ(taken.size(), 1U);
}

// spec/wdp-rd 4.4: for a queue pair without a receive messages wait, of all flows in the order in
// which it was their turn; other queue pairs go on.
TEST_F(FlowOrderTest, WithoutAReceiveTheyWait) {
  lacking.insert(9);
  EXPECT_EQ(give(1, 9, 1), Fate::held);
  EXPECT_EQ(give(2, 9, 1), Fate::held);
  EXPECT_EQ(give(1, 9, 2), Fate::held);
  EXPECT_EQ(give(1, 8, 1), Fate::delivered);
  EXPECT_TRUE(order.waits_for(9));
  EXPECT_EQ(order.waiting_bytes(), 3 * kWeight);
  taken.clear();
  lacking.clear();
  EXPECT_EQ(give(1, 9, 3), Fate::held) << "behind the others";
  order.resume(9, *this);
  EXPECT_EQ(taken, (std::vector<int>{1'009'001, 2'009'001, 1'009'002, 1'009'003}));
  EXPECT_FALSE(order.waits_for(9));
  EXPECT_EQ(order.held_bytes(), 0U);
}

TEST_F(FlowOrderTest, GivenUp) {
  lacking.insert(9);
  give(1, 9, 1);
  give(1, 9, 2);
  EXPECT_EQ(order.give_up(9), 2U);
  EXPECT_EQ(order.held_bytes(), 0U);
  lacking.clear();
  EXPECT_EQ(give(1, 9, 3), Fate::delivered) << "the flow goes on";
}

}  // namespace
}  // namespace weft::wdp
