#include "work/atomic.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/host.h"

namespace weft::work {
namespace {

using Code = wire::AtomicRequest::Code;
using Kind = AtomicFault::Kind;

struct AtomicTest : ::testing::Test {
  wire::AtomicRequest request(Code code, size_t at = 0) {
    return {.code = code, .stag = stag, .to = test::address_of(memory, at)};
  }
  void set(uint64_t value) { std::memcpy(memory.data(), &value, sizeof value); }
  uint64_t value() const {
    uint64_t v = 0;
    std::memcpy(&v, memory.data(), sizeof v);
    return v;
  }
  uint64_t execute(const wire::AtomicRequest& r) {
    const auto before = execute_atomic(host, r);
    EXPECT_TRUE(before.ok());
    return before.ok() ? *before : 0;
  }
  AtomicFault fault(const wire::AtomicRequest& r) {
    const auto before = execute_atomic(host, r);
    EXPECT_FALSE(before.ok());
    return before.ok() ? AtomicFault{} : before.error();
  }

  test::Host host;
  test::Buffer memory = test::Buffer(64);
  Stag stag = host.add_region(memory);
};

TEST_F(AtomicTest, FetchAdd) {
  set(40);
  auto r = request(Code::fetch_add);
  r.add_swap = 2;
  EXPECT_EQ(execute(r), 40U);
  EXPECT_EQ(value(), 42U);
  // RFC 7306 section 5.1: the top bit of a field is set in the mask, and no carry leaves it.
  set(0x0000'00ff'0000'00ffU);
  r.add_swap = 0x0000'0001'0000'0001U;
  r.add_swap_mask = 0x8000'0080'8000'0080U;
  EXPECT_EQ(execute(r), 0x0000'00ff'0000'00ffU);
  EXPECT_EQ(value(), 0U);
}

TEST_F(AtomicTest, CompareSwap) {
  set(5);
  auto r = request(Code::compare_swap);
  r.compare = 6;
  r.add_swap = 7;
  r.compare_mask = r.add_swap_mask = ~uint64_t{0};
  EXPECT_EQ(execute(r), 5U);
  EXPECT_EQ(value(), 5U);
  r.compare = 5;
  EXPECT_EQ(execute(r), 5U);
  EXPECT_EQ(value(), 7U);
  r.compare_mask = 0;
  r.add_swap = 0xff00;
  r.add_swap_mask = 0xff00;
  EXPECT_EQ(execute(r), 7U);
  EXPECT_EQ(value(), 0xff07U);
}

TEST_F(AtomicTest, Faults) {
  EXPECT_EQ(fault(request(Code{1})).kind, Kind::code);
  EXPECT_EQ(fault(request(Code::fetch_add, 4)).kind, Kind::misaligned);
  const AtomicFault outside = fault(request(Code::fetch_add, 64));
  EXPECT_EQ(outside.kind, Kind::memory);
  EXPECT_EQ(outside.memory, MemoryFault::bounds);
  stag = Stag{1};
  EXPECT_EQ(fault(request(Code::fetch_add)).memory, MemoryFault::invalid_stag);
}

}  // namespace
}  // namespace weft::work
