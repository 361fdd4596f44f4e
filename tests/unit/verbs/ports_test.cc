#include "verbs/ports.h"

#include <atomic>
#include <set>
#include <thread>

#include "tests/abi/in_child.h"
#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

// spec/addressing 2.2: up to 254 numbers of a port, which is bound.
TEST(PortsTest, NumbersOfAnEngineAreDistinctAndItsOwn) {
  engine::Engine& engine = adapter().engine(0);
  std::set<Qpn> numbers;
  std::set<uint16_t> ports;
  for (unsigned i = 0; i < NumberPool::kOfAPort + 1; ++i) {
    const auto number = adapter().ports().reserve_number(engine);
    ASSERT_TRUE(number.ok());
    EXPECT_TRUE(numbers.insert(*number).second);
    ports.insert(port_of(*number));
    EXPECT_EQ(adapter().ports().engine_of(*number), &engine);
  }
  EXPECT_EQ(ports.size(), 2U);
  auto h = engine.hold();
  for (const Qpn number : numbers) adapter().ports().release_number(h.token(), number, false);
}

TEST(PortsTest, AForeignNumberHasNoEngine) {
  EXPECT_EQ(adapter().ports().engine_of(make_qpn(1, 1)), nullptr);
}

TEST(PortsTest, NumbersOfAPortShareItsDatagrams) {
  engine::Engine& engine = adapter().engine(0);
  const auto one = adapter().ports().reserve_number(engine);
  const auto other = adapter().ports().reserve_number(engine);
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_EQ(port_of(*one), port_of(*other));
  auto h = engine.hold();
  EXPECT_EQ(&adapter().ports().datagrams(h.token(), *one),
            &adapter().ports().datagrams(h.token(), *other));
  for (const Qpn number : {*one, *other})
    adapter().ports().release_number(h.token(), number, false);
}

// What an engine serves when it is let go may ask for queue pairs.
class Asks final : public engine::EventHandler {
 public:
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token&) override {}
  void on_doorbell(engine::Token& token) override {
    (void)adapter().ports().find(token, make_qpn(1, 1));
  }
  void abandon_in_child() override {}
};

int flush_while_somebody_rings() {
  engine::Engine& engine = adapter().engine(0);
  const auto number = adapter().ports().reserve_number(engine);
  if (!number.ok()) return 1;
  auto owned = std::make_unique<Asks>();
  Asks& asks = *owned;
  {
    auto h = engine.hold();
    (void)adapter().ports().datagrams(h.token(), *number);
    engine.add(h.token(), std::move(owned), -1, false, false);
  }
  std::atomic<bool> over{false};
  std::thread other{[&] {
    while (!over) engine.enqueue(asks);
  }};
  for (int i = 0; i < 2000; ++i) adapter().flush_at_exit();
  over = true;
  other.join();
  return 0;
}

TEST(PortsTest, FlushAtExitKeepsNobodyFromFindingQueuePairs) {
  EXPECT_EQ(test::in_child(flush_while_somebody_rings), 0);
}

}  // namespace
}  // namespace weft::verbs
