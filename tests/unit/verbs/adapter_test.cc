// Numbers, ports and engines of the adapter. Its memory has a test of its own.

#include "verbs/adapter.h"

#include <set>

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

TEST(AdapterTest, IsOneForTheProcess) {
  Adapter& first = adapter();
  EXPECT_EQ(&adapter(), &first);
  EXPECT_EQ(Adapter::existing(), &first);
}

TEST(AdapterTest, EnginesComeByTurnsUnlessAThreadPrefersOne) {
  std::set<engine::Engine*> seen;
  for (size_t i = 0; i < adapter().engine_count(); ++i) seen.insert(&adapter().next_engine());
  EXPECT_EQ(seen.size(), adapter().engine_count());
  engine::Engine& last = adapter().engine(adapter().engine_count() - 1);
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

}  // namespace
}  // namespace weft::verbs
