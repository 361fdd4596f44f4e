// Counters where the system's pages are larger than those of the layout.
#include "tests/support/large_pages.h"

#include <vector>

#include "observe/counter_memory.h"
#include "observe/counter_reader.h"

namespace weft::observe {
namespace {

// More queue pairs than one piece of the file has pages for.
constexpr uint32_t kPairs = 500;

// The number of the first wrong statement, or 0.
int first_wrong() {
  CounterMemory m(2, true);
  if (!m.shown()) return 1;
  std::vector<stats::QpBlock*> blocks;
  for (uint32_t i = 0; i < kPairs; ++i) {
    blocks.push_back(&m.acquire(i % 2, Qpn{0x8c0100 + i}));
    blocks.back()->counters.fpdus_sent.add(1000 + i);
  }
  const auto read = read_process(0);
  if (!read.ok()) return 2;
  if (read->queue_pairs.size() != kPairs) return 3;
  size_t row = 0;
  for (const stats::Row& r : stats::table()) {
    if (r.scope != stats::Scope::queue_pair) continue;
    if (r.name() == "fpdus_sent") break;
    ++row;
  }
  for (uint32_t i = 0; i < kPairs; ++i) {
    const Snapshot::QueuePair& pair = read->queue_pairs[i];
    if (pair.qpn != 0x8c0100 + i || pair.engine != i % 2) return 4;
    if (row >= pair.values.size() || pair.values[row] != 1000 + i) return 5;
  }
  for (uint32_t i = 0; i < kPairs; ++i) m.release(i % 2, *blocks[i]);
  const auto gone = read_process(0);
  if (!gone.ok() || !gone->queue_pairs.empty()) return 6;
  m.abandon_in_child();
  blocks[kPairs - 1]->counters.fpdus_sent.add(1);  // counts for nobody
  return 0;
}

TEST(CounterMemory, PagesOf64KiB) {
  test::expect_with_large_pages(first_wrong);
}

}  // namespace
}  // namespace weft::observe
