// The memory that holds the counters of a process, as its owner and its readers see it. Pages of
// 4 KiB, whatever the system's are; numbers in the machine's own order, for both are on one
// machine.
//
//   page 0          CounterHeader, with the device's counters
//   page 1 + e      EngineBlock of engine e
//   from there on   QpPage: as many as are in use, each of one engine
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "stats/blocks.h"

namespace weft::observe {

inline constexpr size_t kPage = 4096;
inline constexpr uint64_t kMagic = 0x74617473'74666577U;  // "weftstat"
inline constexpr uint32_t kLayout = 2;
// What the memory is called where /proc/PID/fd shows it.
inline constexpr const char* kMemoryName = "weft-counters";

struct CounterHeader {
  uint64_t magic;
  uint32_t layout;
  uint32_t engines;
  uint64_t fingerprint;  // stats::fingerprint() of the owner
  uint32_t pid;          // the owner, in its own PID namespace
  uint32_t most_qp_pages;
  int64_t started_ns;  // CLOCK_REALTIME
  std::atomic<uint32_t> qp_pages;
  alignas(64) stats::DeviceCounters device;
};
static_assert(sizeof(CounterHeader) <= kPage);
static_assert(sizeof(stats::EngineBlock) <= kPage);

// The queue pairs of two engines never share a page, nor therefore a cache line.
struct alignas(64) QpPage {
  static constexpr size_t kBlocks = 17;
  uint32_t engine;
  uint32_t number;
  alignas(64) std::array<stats::QpBlock, kBlocks> blocks;
};
static_assert(sizeof(QpPage) <= kPage);

// As many queue pairs as the device has (spec/abi 2.6).
inline constexpr size_t kMostQueuePairs = 65536;
inline constexpr size_t kMostQpPages = (kMostQueuePairs + QpPage::kBlocks - 1) / QpPage::kBlocks;

constexpr size_t engine_offset(size_t engine) {
  return (1 + engine) * kPage;
}
constexpr size_t qp_page_offset(size_t engines, size_t page) {
  return (1 + engines + page) * kPage;
}

}  // namespace weft::observe
