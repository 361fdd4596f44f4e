// What programs see of them is in tests/verbs.

#include "verbs/queue_pair.h"

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

using QueuePairTest = PairTest;

TEST_F(QueuePairTest, IsFoundByItsNumber) {
  auto qp = make();
  const Qpn number = qp->number();
  engine::Engine& engine = qp->engine();
  EXPECT_EQ(adapter().ports().engine_of(number), &engine);
  {
    auto h = engine.hold();
    EXPECT_EQ(adapter().ports().find(h.token(), number), qp.get());
    EXPECT_EQ(adapter().ports().find(h.token(), make_qpn(port_of(number), 255)), nullptr);
  }
  qp.reset();
  auto h = engine.hold();
  EXPECT_EQ(adapter().ports().find(h.token(), number), nullptr);
}

// A number that is set aside belongs to nobody yet: who asks for it meets no half-made queue pair.
TEST_F(QueuePairTest, AReservedNumberIsNobodys) {
  engine::Engine& engine = adapter().engine(0);
  const auto number = adapter().ports().reserve_number(engine);
  ASSERT_TRUE(number.ok());
  auto h = engine.hold();
  EXPECT_EQ(adapter().ports().find(h.token(), *number), nullptr);
  adapter().ports().release_number(h.token(), *number, false);
}

}  // namespace
}  // namespace weft::verbs
