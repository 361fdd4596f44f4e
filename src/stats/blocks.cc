#include "stats/blocks.h"

namespace weft::stats {

void retire(QpBlock& block, EngineBlock& engine) {
  const uint64_t before = engine.sequence.load(std::memory_order_relaxed);
  engine.sequence.store(before + 1, std::memory_order_release);
  auto* from = reinterpret_cast<Cell*>(&block.counters);
  auto* to = reinterpret_cast<Cell*>(&engine.gone.counters);
  static_assert(sizeof(QpCounters) % sizeof(Cell) == 0);
  for (size_t i = 0; i < sizeof(QpCounters) / sizeof(Cell); ++i) from[i].move_to(to[i]);
  block.last_terminate.store(0, std::memory_order_relaxed);
  block.peer.clear();
  block.qpn.store(0, std::memory_order_release);
  engine.sequence.store(before + 2, std::memory_order_release);
}

Where nowhere() {
  static QpBlock qp;
  static EngineBlock engine;
  return {&qp, &engine};
}

}  // namespace weft::stats
