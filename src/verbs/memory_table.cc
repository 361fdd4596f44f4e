#include "verbs/memory_table.h"

#include <cinttypes>

#include "base/log.h"
#include "device/device.h"
#include "verbs/mapping.h"

namespace weft::verbs {

using work::MemoryFault;

static_assert(device::kMaxMr == MemoryTable::kMostEntries,
              "the device promises as many regions and windows as the table has room for");

Result<std::byte*, MemoryFault> Region::resolve(uint64_t address, uint64_t size,
                                                uint32_t need) const {
  // Order as in spec/rdmap 2.6: rights, then bounds with 64-bit unsigned arithmetic.
  if ((access & need) != need) return fail(MemoryFault::access);
  if (address + size < address) return fail(MemoryFault::wraps);
  if (address < iova || address - iova > length || size > length - (address - iova)) {
    return fail(MemoryFault::bounds);
  }
  return base + (address - iova);
}

MemoryTable::MemoryTable(std::function<bool()> quiesce, bool counted)
    : quiesce_(std::move(quiesce)), counted_(counted), next_index_(1), fresh_left_(kIndices - 1) {
  if (!counted) next_index_ = static_cast<uint32_t>(random_.next() % (kIndices - 1)) + 1;
}

MemoryTable::~MemoryTable() {
  while (retired_ != nullptr) delete std::exchange(retired_, retired_->next_retired);
  for (auto& c : chunks_) {
    Chunk* chunk = c.load(std::memory_order_relaxed);
    if (chunk == nullptr) continue;
    for (auto& r : *chunk) delete r.load(std::memory_order_relaxed);
    delete chunk;
  }
}

Outcome<Stag> MemoryTable::allocate(Indices& outgrown) {
  // Fresh indices until enough rest, then the one that was free longest: a stale STag finds nothing
  // for a long time.
  const size_t resting = free_.size() - free_first_;
  // Giving an index back must not need memory.
  if (free_.capacity() <= free_.size() + taken_) {
    Indices larger;
    larger.reserve(2 * (free_.size() + taken_) + 64);
    larger = free_;
    outgrown = std::exchange(free_, std::move(larger));
  }
  uint32_t index = 0;
  if (fresh_left_ > 0 && resting < kResting) {
    --fresh_left_;
    index = next_index_;
    next_index_ = next_index_ + 1 == kIndices ? 1 : next_index_ + 1;
  } else if (resting > 0) {
    index = free_[free_first_++];
  } else {
    return fail(Errc::no_memory);
  }
  auto& chunk = chunks_[index / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr) {
    chunk.store(new Chunk{}, std::memory_order_release);
  }
  ++taken_;
  const auto key = counted_ ? 0 : static_cast<uint32_t>(random_.next() & 0xff);
  return Stag{index << 8 | key};
}

void MemoryTable::free_index(Stag stag) {
  if (free_first_ > 1024 && free_first_ * 2 > free_.size()) {
    free_.erase(free_.begin(), free_.begin() + static_cast<ptrdiff_t>(free_first_));
    free_first_ = 0;
  }
  free_.push_back(index_of(stag));
  --taken_;
}

namespace {

Outcome<Ok> check_registration(const void* address, uint64_t length, uint32_t flags) {
  if ((flags & (access::kFlushGlobal | access::kFlushPersistent)) != 0) {
    WEFT_LOG(
        info,
        "cannot register memory with access flags 0x%x: this device has no flush, so leave out "
        "IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT",
        flags);
    return fail(Errc::invalid);
  }
  if (const uint32_t unknown = flags & ~access::kKnown; unknown != 0) {
    WEFT_LOG(info, "cannot register memory: access flags 0x%x are not supported", unknown);
    return fail(Errc::invalid);
  }
  // InfiniBand 10.6.6: remote write and atomic rights need the local one.
  if ((flags & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
      (flags & access::kLocalWrite) == 0) {
    WEFT_LOG(info,
             "cannot register memory with access flags 0x%x: remote writes and atomics need "
             "IBV_ACCESS_LOCAL_WRITE",
             flags);
    return fail(Errc::invalid);
  }
  switch (check_mapping(address, length, (flags & access::kLocalWrite) != 0)) {
    case Mapping::good:
      return Ok{};
    case Mapping::missing:
      WEFT_LOG(info, "cannot register %" PRIu64 " bytes at %p: they are not mapped in this process",
               length, address);
      break;
    case Mapping::read_only:
      WEFT_LOG(info,
               "cannot register %" PRIu64 " bytes at %p for writing: the mapping is read-only",
               length, address);
      break;
  }
  return fail(Errc::fault);
}

}  // namespace

Outcome<Region*> MemoryTable::add(ProtectionDomain& pd, void* address, uint64_t length,
                                  uint64_t iova, uint32_t flags) {
  if (auto good = check_registration(address, length, flags); !good.ok()) return fail(good.error());
  std::unique_ptr<Region> r{new Region{.base = static_cast<std::byte*>(address),
                                       .iova = iova,
                                       .length = length,
                                       .access = flags,
                                       .pd = &pd}};
  Indices outgrown;
  const std::lock_guard guard{lock_};
  const auto stag = allocate(outgrown);
  if (!stag.ok()) return fail(stag.error());
  r->stag = *stag;
  pd.add_ref();
  count_.fetch_add(1, std::memory_order_relaxed);
  slot(*stag).store(r.get(), std::memory_order_release);
  return r.release();
}

Outcome<Ok> MemoryTable::remove(Region* region) {
  Region* retired = nullptr;
  {
    const std::lock_guard guard{lock_};
    if (region->windows.load(std::memory_order_acquire) > 0) return fail(Errc::busy);
    slot(region->stag).store(nullptr, std::memory_order_release);
    region->frees_index = true;
    unpublish(region);
    retired = take_retired();
  }
  free_retired(retired);
  return Ok{};
}

Outcome<Region*> MemoryTable::replace(Region* region, ProtectionDomain& pd, void* address,
                                      uint64_t length, uint64_t iova, uint32_t flags) {
  if (auto good = check_registration(address, length, flags); !good.ok()) return fail(good.error());
  std::unique_ptr<Region> fresh{new Region{.stag = region->stag,
                                           .base = static_cast<std::byte*>(address),
                                           .iova = iova,
                                           .length = length,
                                           .access = flags,
                                           .pd = &pd}};
  Region* retired = nullptr;
  {
    const std::lock_guard guard{lock_};
    if (region->windows.load(std::memory_order_acquire) > 0) return fail(Errc::busy);
    pd.add_ref();
    count_.fetch_add(1, std::memory_order_relaxed);
    slot(region->stag).store(fresh.get(), std::memory_order_release);
    unpublish(region);
    retired = take_retired();
  }
  free_retired(retired);
  return fresh.release();
}

// Its owner has it no more. Nobody finds it from now on.
void MemoryTable::unpublish(Region* region) {
  region->pd->drop_ref();
  count_.fetch_sub(1, std::memory_order_relaxed);
  retire(region);
}

// --- windows

Outcome<Window> MemoryTable::reserve_window() {
  Indices outgrown;
  const std::lock_guard guard{lock_};
  const auto stag = allocate(outgrown);
  if (!stag.ok()) return fail(stag.error());
  const WindowId id{++last_window_};
  try {
    windows_[index_of(*stag)] = id;
  } catch (const std::bad_alloc&) {
    free_index(*stag);
    throw;
  }
  return Window{*stag, id};
}

void MemoryTable::release_window(Stag stag) {
  std::map<uint32_t, WindowId>::node_type released;
  Region* retired = nullptr;
  {
    const std::lock_guard guard{lock_};
    released = windows_.extract(index_of(stag));
    Region* window = slot(stag).exchange(nullptr, std::memory_order_acq_rel);
    if (window != nullptr) {
      window->parent->windows.fetch_sub(1, std::memory_order_acq_rel);
      retire(window);
    }
    retired = take_retired();
  }
  free_retired(retired);
  const std::lock_guard guard{lock_};
  free_index(stag);
}

Outcome<bool> MemoryTable::bind_window(WindowId id, Stag old, Stag fresh, const Region& bounds) {
  const std::lock_guard guard{lock_};
  // Binds wait in send queues. Meanwhile the program may have deallocated the window, and the index
  // may be somebody else's.
  const auto window = windows_.find(index_of(old));
  if (window == windows_.end() || window->second != id) return fail(Errc::invalid);
  // InfiniBand 10.6.7.2.2: one of type 2 is invalidated before it is bound anew.
  if (bounds.window_qp != Qpn{} && slot(old).load(std::memory_order_acquire) != nullptr) {
    return fail(Errc::busy);
  }
  Region* r = nullptr;
  if (bounds.length > 0) {
    // Another thread may be taking the region back: it is unpublished then, and only not freed yet.
    if (slot(bounds.parent->stag).load(std::memory_order_acquire) != bounds.parent) {
      return fail(Errc::invalid);
    }
    r = new Region{.stag = fresh,
                   .base = bounds.base,
                   .iova = bounds.iova,
                   .length = bounds.length,
                   .access = bounds.access,
                   .pd = bounds.pd,
                   .window = true,
                   .window_qp = bounds.window_qp,
                   .parent = bounds.parent};
    r->parent->windows.fetch_add(1, std::memory_order_acq_rel);
  }
  Region* before = slot(old).exchange(r, std::memory_order_acq_rel);
  if (before != nullptr) {
    before->parent->windows.fetch_sub(1, std::memory_order_acq_rel);
    retire(before);
  }
  return before != nullptr;
}

Result<Ok, MemoryFault> MemoryTable::invalidate(Stag stag) {
  const std::lock_guard guard{lock_};
  Region* r = find(stag);
  if (r == nullptr) return fail(MemoryFault::invalid_stag);
  if (!r->window) return fail(MemoryFault::cannot_invalidate);
  slot(stag).store(nullptr, std::memory_order_release);
  r->parent->windows.fetch_sub(1, std::memory_order_acq_rel);
  retire(r);
  return Ok{};
}

void MemoryTable::retire(Region* region) {
  region->next_retired = std::exchange(retired_, region);
  retired_count_.fetch_add(1, std::memory_order_relaxed);
}

Region* MemoryTable::take_retired() {
  retired_count_.store(0, std::memory_order_relaxed);
  return std::exchange(retired_, nullptr);
}

void MemoryTable::free_retired(Region* first) {
  const bool quiet = quiesce_();
  {
    const std::lock_guard guard{lock_};
    for (Region* r = first; r != nullptr;) {
      Region* const next = r->next_retired;
      if (!quiet) {
        retire(r);
      } else if (r->frees_index) {
        free_index(r->stag);
      }
      r = next;
    }
  }
  while (quiet && first != nullptr) delete std::exchange(first, first->next_retired);
}

void MemoryTable::free_all_retired() {
  Region* retired = nullptr;
  {
    const std::lock_guard guard{lock_};
    retired = take_retired();
  }
  if (retired != nullptr) free_retired(retired);
}

}  // namespace weft::verbs
