// The counters of queue pairs where there is no memory.
#include <gtest/gtest.h>

#include <vector>

#include "observe/counter_memory.h"
#include "tests/support/new_that_may_fail.h"

namespace weft::observe {
namespace {

using test::WantOfMemory;

// Wherever one allocation fails: each queue pair has counters of its own.
TEST(CounterMemoryScarce, NoTwoQueuePairsHaveTheSameCounters) {
  constexpr uint32_t kQueuePairs = 400;
  bool failed = true;
  for (uint64_t n = 0; failed; ++n) {
    CounterMemory memory(1, true);
    ASSERT_TRUE(memory.shown());
    std::vector<stats::QpBlock*> blocks;
    WantOfMemory::after(n);
    for (uint32_t i = 0; i < kQueuePairs; ++i) {
      const auto acquire = [&] {
        stats::QpBlock& block = memory.acquire(0, Qpn{0x8c0100 + i});
        const WantOfMemory::Spared spared;
        blocks.push_back(&block);
      };
      if (!WantOfMemory::during(acquire)) acquire();
    }
    failed = WantOfMemory::came();
    WantOfMemory::end();
    for (uint32_t i = 0; i < kQueuePairs; ++i) {
      ASSERT_EQ(blocks[i]->qpn.load(), 0x8c0100 + i) << "without allocation " << n;
    }
  }
}

}  // namespace
}  // namespace weft::observe
