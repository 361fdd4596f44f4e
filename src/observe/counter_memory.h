// Where the counters of this process live: in a memory file (memfd_create(2)) that other processes
// of the same user can read by /proc/PID/fd, or, when there is none, in memory of our own. Nothing
// of it is in a file system, so that nothing is left behind however the process ends.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/types.h"
#include "observe/counter_layout.h"
#include "port/fd.h"

namespace weft::observe {

class CounterMemory {
 public:
  // `shown`: others may read. Where the system refuses that, the log says so, and this process
  // counts for itself.
  CounterMemory(unsigned engines, bool shown);
  ~CounterMemory();
  CounterMemory(const CounterMemory&) = delete;
  CounterMemory& operator=(const CounterMemory&) = delete;

  bool shown() const { return file_.valid(); }
  stats::DeviceCounters& device() { return header().device; }
  stats::EngineBlock& engine(unsigned number) {
    return *reinterpret_cast<stats::EngineBlock*>(base_ + engine_offset(number));
  }

  // A place for the counters of a queue pair. Any thread. Where there is no room it is that of the
  // queue pairs that are gone: they still count for their engine.
  stats::QpBlock& acquire(unsigned engine, Qpn qpn);
  // The queue pair goes. The caller holds the engine.
  void release(unsigned engine, stats::QpBlock& block);

  // After fork(2), in the child: the parent's numbers are not touched any more. What still counts
  // here does so for nobody.
  void abandon_in_child();

 private:
  struct Page {
    QpPage* memory;
    uint32_t taken;  // a bit for each block
  };
  struct Mapping {
    std::byte* start;
    size_t size;
    bool shared;
  };
  static constexpr uint32_t kAllTaken = (1U << QpPage::kBlocks) - 1;

  CounterHeader& header() { return *reinterpret_cast<CounterHeader*>(base_); }
  bool make_file(size_t& size);
  bool still_ours() const;
  std::byte* map(size_t offset, size_t size);
  std::byte* own_memory(size_t size);
  QpPage* add_page(unsigned engine);

  const unsigned engines_;
  port::Fd file_;
  uint64_t inode_ = 0;
  size_t most_pages_ = 0;
  std::byte* base_ = nullptr;
  std::vector<Mapping> mappings_;
  std::mutex lock_;  // of the pages
  std::vector<Page> pages_;
  std::byte* piece_ = nullptr;  // that the next pages come from
  size_t piece_left_ = 0;       // pages
};

}  // namespace weft::observe
