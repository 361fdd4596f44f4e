#include "wdp/flow_table.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

TEST(FlowTable, EachFlowBeginsAtOneAndHasItsOwnCount) {
  FlowTable flows;
  constexpr uint32_t kPrime = 40503;  // visits all flows in an order of its own
  for (uint32_t round = 1; round <= 3; ++round) {
    for (uint32_t i = 0; i < 1000; ++i) {
      Msn& next = flows.next_of(static_cast<uint16_t>(i * kPrime));
      EXPECT_EQ(next, Msn{round});
      next = weft::next(next);
    }
  }
  EXPECT_EQ(flows.next_of(FlowTable::flow_of(0xff, 0xff)), Msn{1});
}

TEST(FlowTable, DirectionsDiffer) {
  EXPECT_NE(FlowTable::flow_of(1, 2), FlowTable::flow_of(2, 1));
}

}  // namespace
}  // namespace weft::wdp
