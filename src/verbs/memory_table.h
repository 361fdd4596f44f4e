// Registered memory: the table behind every lkey, rkey and STag (design/03; spec/rdmap 2.6).
// Engine holders look entries up without a lock. An entry that goes away is unpublished first; then
// every engine is held once, so that nobody is in the middle of using it; then it is freed.
//
// A program may have a `free` of its own that deregisters memory (MVAPICH2), and it is called where
// weft frees something. So nothing is freed under the table's lock. A holder frees later
// (base/put_off_free.h); where libc frees for it all the same, it cannot wait for itself, and what
// it takes back is freed with the next that is.
//
// Above 400 lines with its source: regions, windows and keys are entries of one table.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/random.h"
#include "base/strong.h"
#include "verbs/protection_domain.h"
#include "verbs/types.h"
#include "work/memory.h"

namespace weft::verbs {

// Tells a memory window from every other of this process, those before it at its index as well.
using WindowId = StrongNumber<struct WindowIdTag, uint64_t>;

// A window that a program has allocated; it opens on nothing until it is bound.
struct Window {
  Stag stag;
  WindowId id;
};

// A memory region or a bound memory window. Immutable once published, but for the count.
struct Region {
  Stag stag;
  std::byte* base = nullptr;  // of this process
  uint64_t iova = 0;          // the address by which requests name `base`
  uint64_t length = 0;
  uint32_t access = 0;
  ProtectionDomain* pd = nullptr;
  bool window = false;
  Qpn window_qp;                     // type 2 windows: the queue pair that it is bound to; else 0
  Region* parent = nullptr;          // windows: the region they open on
  std::atomic<uint32_t> windows{0};  // regions: how many windows are bound to it
  Region* next_retired = nullptr;
  bool frees_index = false;  // when it is freed

  // The process's address of [address, address + size), or why not. `need` 0: any registered
  // memory will do.
  Result<std::byte*, work::MemoryFault> resolve(uint64_t address, uint64_t size,
                                                uint32_t need) const;
};

class MemoryTable {
 public:
  // `quiesce` holds each engine once (Engine::retire_memory); false: the calling thread holds one.
  // `counted`: STags are no secret, and begin at 0x100 (option uc_port).
  explicit MemoryTable(std::function<bool()> quiesce, bool counted = false);
  ~MemoryTable();

  // Registers memory and checks that it is mapped, and writable where `flags` asks for it. Any
  // thread. Errors: invalid (flags that do not go together), fault, no_memory.
  Outcome<Region*> add(ProtectionDomain& pd, void* address, uint64_t length, uint64_t iova,
                       uint32_t flags);
  // Busy while windows are bound to it. After success nothing touches the memory, but for the turn
  // in which a holder calls this. Any thread.
  Outcome<Ok> remove(Region* region);
  // Replaces a region by one with other bounds, rights or domain; it keeps its STag. The old one is
  // freed. Any thread.
  Outcome<Region*> replace(Region* region, ProtectionDomain& pd, void* address, uint64_t length,
                           uint64_t iova, uint32_t flags);

  // Reserves an STag for a window, and gives it back. Any thread. Binds of the window that still
  // wait in a send queue fail from its release on.
  Outcome<Window> reserve_window();
  void release_window(Stag stag);
  // Engine holder: publishes the window `id` under `fresh`, whose index is the one of `old`, and
  // unpublishes what it was bound to, whatever key that had. A `length` of 0 unbinds. True: it was
  // bound before. Errors: invalid (the window was released, or the region is being deregistered),
  // busy (a window of type 2 that is bound).
  Outcome<bool> bind_window(WindowId id, Stag old, Stag fresh, const Region& bounds);
  // Engine holder: makes a window's STag invalid; its owner still has to release it. Regions are
  // their owner's alone to take back: those of user space are no fast-register ones.
  Result<Ok, work::MemoryFault> invalidate(Stag stag);
  // Frees windows that holders have unpublished, once there are many. Any thread, not a holder.
  void tidy() {
    if (retired_count_.load(std::memory_order_relaxed) > kMostRetired) free_all_retired();
  }
  // How many there are.
  size_t retired() const { return retired_count_.load(std::memory_order_relaxed); }

  // Engine holder: nullptr when there is no such registration. Good until the holder lets go.
  Region* find(Stag stag) const {
    const auto* chunk = chunks_[index_of(stag) / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    Region* r = (*chunk)[index_of(stag) % kChunk].load(std::memory_order_acquire);
    return r != nullptr && r->stag == stag ? r : nullptr;
  }
  // An STag with the same index and another key: what a bind of a type 1 window or ibv_inc_rkey
  // makes.
  static Stag next_key(Stag s) { return Stag{(s.value() & ~0xffU) | ((s.value() + 1) & 0xffU)}; }
  // The index of `window` with the key of `key`.
  static Stag with_key_of(Stag window, Stag key) {
    return Stag{(window.value() & ~0xffU) | (key.value() & 0xffU)};
  }
  size_t size() const { return count_.load(std::memory_order_relaxed); }

  // Indices stay in the lower half of 24 bits: the upper half names the sinks of reads
  // (rdmap/outbound_reads.h).
  static constexpr uint32_t kMostEntries = (1U << 23) - 1;

 private:
  static constexpr uint32_t kChunk = 4096;
  static constexpr uint32_t kIndices = kMostEntries + 1;  // 0 is never given out
  static constexpr size_t kMostRetired = 256;
  // Indices that rest before they are used again. More would make programs that register for each
  // transfer walk through all of the table, 64 MB of it.
  static constexpr size_t kResting = 65'536;
  using Chunk = std::array<std::atomic<Region*>, kChunk>;

  static uint32_t index_of(Stag s) { return (s.value() >> 8) & (kIndices - 1); }
  std::atomic<Region*>& slot(Stag s) {
    return (*chunks_[index_of(s) / kChunk].load(std::memory_order_acquire))[index_of(s) % kChunk];
  }
  using Indices = std::vector<uint32_t>;

  // Under lock_. `outgrown` is to be freed without it.
  Outcome<Stag> allocate(Indices& outgrown);
  void free_index(Stag stag);
  void unpublish(Region* region);
  void retire(Region* region);
  Region* take_retired();
  // Not under it. Those that take_retired() gave.
  void free_retired(Region* first);
  void free_all_retired();

  std::function<bool()> quiesce_;
  const bool counted_;
  mutable std::mutex lock_;
  std::array<std::atomic<Chunk*>, kIndices / kChunk> chunks_{};
  Indices free_;  // indices that were used before, oldest first
  size_t free_first_ = 0;
  size_t taken_ = 0;                      // indices, for each of which there is room in free_
  std::map<uint32_t, WindowId> windows_;  // by index
  uint64_t last_window_ = 0;
  uint32_t next_index_;
  uint32_t fresh_left_;
  std::atomic<size_t> count_{0};
  Region* retired_ = nullptr;  // a list: unpublished, and freed after the next quiesce
  std::atomic<size_t> retired_count_{0};
  SystemRandom random_;
};

}  // namespace weft::verbs
