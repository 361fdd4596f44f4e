// Numbers, ports and engines of the adapter. Its memory has a test of its own.

#include "verbs/adapter.h"

#include <atomic>
#include <set>
#include <thread>

#include "tests/abi/in_child.h"
#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

TEST(AdapterTest, IsOneForTheProcess) {
  Adapter& first = adapter();
  EXPECT_EQ(&adapter(), &first);
  EXPECT_EQ(Adapter::existing(), &first);
}

TEST(AdapterTest, EnginesComeByTurnsUnlessAThreadPrefersOne) {
  // Round after round in one order.
  std::vector<engine::Engine*> seen{&adapter().next_engine()};
  for (engine::Engine* next; (next = &adapter().next_engine()) != seen.front();) {
    ASSERT_EQ(std::count(seen.begin(), seen.end(), next), 0);
    seen.push_back(next);
  }
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(&adapter().next_engine(), seen[i]);
  engine::Engine& last = *seen.back();
  Adapter::prefer(&last);
  EXPECT_EQ(&adapter().next_engine(), &last);
  EXPECT_EQ(&adapter().next_engine(), &last);
  Adapter::prefer(nullptr);
}

// spec/addressing 2.2: up to 254 numbers of a port, which is bound.
TEST(AdapterTest, NumbersOfAnEngineAreDistinctAndItsOwn) {
  engine::Engine& engine = adapter().engine(0);
  std::set<Qpn> numbers;
  std::set<uint16_t> ports;
  for (unsigned i = 0; i < NumberPool::kOfAPort + 1; ++i) {
    const auto number = adapter().reserve_number(engine);
    ASSERT_TRUE(number.ok());
    EXPECT_TRUE(numbers.insert(*number).second);
    ports.insert(port_of(*number));
    EXPECT_EQ(adapter().engine_of(*number), &engine);
  }
  EXPECT_EQ(ports.size(), 2U);
  auto h = engine.hold();
  for (const Qpn number : numbers) adapter().release_number(h.token(), number, false);
}

TEST(AdapterTest, AForeignNumberHasNoEngine) {
  EXPECT_EQ(adapter().engine_of(make_qpn(1, 1)), nullptr);
}

TEST(AdapterTest, NumbersOfAPortShareItsDatagrams) {
  engine::Engine& engine = adapter().engine(0);
  const auto one = adapter().reserve_number(engine);
  const auto other = adapter().reserve_number(engine);
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_EQ(port_of(*one), port_of(*other));
  auto h = engine.hold();
  EXPECT_EQ(&adapter().datagrams(h.token(), *one), &adapter().datagrams(h.token(), *other));
  for (const Qpn number : {*one, *other}) adapter().release_number(h.token(), number, false);
}

// What an engine serves when it is let go may ask for queue pairs.
class Asks final : public engine::EventHandler {
 public:
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token&) override {}
  void on_doorbell(engine::Token& token) override { (void)adapter().find(token, make_qpn(1, 1)); }
  void abandon_in_child() override {}
};

int flush_while_somebody_rings() {
  engine::Engine& engine = adapter().engine(0);
  const auto number = adapter().reserve_number(engine);
  if (!number.ok()) return 1;
  auto owned = std::make_unique<Asks>();
  Asks& asks = *owned;
  {
    auto h = engine.hold();
    (void)adapter().datagrams(h.token(), *number);
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

TEST(AdapterTest, FlushAtExitKeepsNobodyFromFindingQueuePairs) {
  EXPECT_EQ(test::in_child(flush_while_somebody_rings), 0);
}

}  // namespace
}  // namespace weft::verbs
