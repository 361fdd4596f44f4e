#include "verbs/memory_table.h"

#include <cinttypes>

#include "base/log.h"
#include "verbs/mapping.h"

namespace weft::verbs {

using rdmap::MemoryFault;

Result<std::byte*, MemoryFault> Region::resolve(uint64_t address, uint64_t size,
                                                uint32_t need) const {
  // Order as in wire.md part IV: rights, then bounds with 64-bit unsigned arithmetic.
  if ((access & need) != need) return fail(MemoryFault::access);
  if (address + size < address) return fail(MemoryFault::wraps);
  if (address < iova || address - iova > length || size > length - (address - iova)) {
    return fail(MemoryFault::bounds);
  }
  return base + (address - iova);
}

MemoryTable::MemoryTable(std::function<void()> quiesce)
    : quiesce_(std::move(quiesce)), fresh_left_(kIndices - 1) {
  next_index_ = static_cast<uint32_t>(random_.next() % (kIndices - 1)) + 1;
}

MemoryTable::~MemoryTable() {
  for (Region* r : retired_) delete r;
  for (auto& c : chunks_) {
    Chunk* chunk = c.load(std::memory_order_relaxed);
    if (chunk == nullptr) continue;
    for (auto& r : *chunk) delete r.load(std::memory_order_relaxed);
    delete chunk;
  }
}

Outcome<Stag> MemoryTable::allocate() {
  // Fresh indices first, then those that were free longest: a stale STag finds nothing for as long
  // as possible.
  uint32_t index = 0;
  if (fresh_left_ > 0) {
    --fresh_left_;
    index = next_index_;
    next_index_ = next_index_ + 1 == kIndices ? 1 : next_index_ + 1;
  } else if (free_first_ < free_.size()) {
    index = free_[free_first_++];
  } else {
    return fail(Errc::no_memory);
  }
  auto& chunk = chunks_[index / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr) {
    chunk.store(new Chunk{}, std::memory_order_release);
  }
  const auto key = static_cast<uint32_t>(random_.next() & 0xff);
  return Stag{index << 8 | key};
}

void MemoryTable::free_index(Stag stag) {
  if (free_first_ > 1024 && free_first_ * 2 > free_.size()) {
    free_.erase(free_.begin(), free_.begin() + static_cast<ptrdiff_t>(free_first_));
    free_first_ = 0;
  }
  // Below the point where fresh ones run out there is no need to remember it.
  free_.push_back(index_of(stag));
}

namespace {

Outcome<Ok> check_registration(const void* address, uint64_t length, uint32_t flags) {
  if ((flags & ~access::kKnown) != 0) return fail(Errc::invalid);
  // InfiniBand 10.6.6: remote write and atomic rights need the local one.
  if ((flags & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
      (flags & access::kLocalWrite) == 0) {
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
  const std::lock_guard guard{lock_};
  const auto stag = allocate();
  if (!stag.ok()) return fail(stag.error());
  auto* r = new Region{.stag = *stag,
                       .base = static_cast<std::byte*>(address),
                       .iova = iova,
                       .length = length,
                       .access = flags,
                       .pd = &pd};
  pd.add_ref();
  count_.fetch_add(1, std::memory_order_relaxed);
  slot(*stag).store(r, std::memory_order_release);
  return r;
}

Outcome<Ok> MemoryTable::remove(Region* region) {
  std::vector<Region*> retired;
  {
    const std::lock_guard guard{lock_};
    if (region->windows.load(std::memory_order_acquire) > 0) return fail(Errc::busy);
    retired.swap(retired_);
    // A Send with Invalidate may have unpublished it already.
    Region* published = region;
    slot(region->stag).compare_exchange_strong(published, nullptr, std::memory_order_acq_rel);
  }
  quiesce_();
  const std::lock_guard guard{lock_};
  free_index(region->stag);
  reclaim(region);
  for (Region* r : retired) delete r;
  return Ok{};
}

Outcome<Region*> MemoryTable::replace(Region* region, ProtectionDomain& pd, void* address,
                                      uint64_t length, uint64_t iova, uint32_t flags) {
  if (auto good = check_registration(address, length, flags); !good.ok()) return fail(good.error());
  auto* fresh = new Region{.stag = region->stag,
                           .base = static_cast<std::byte*>(address),
                           .iova = iova,
                           .length = length,
                           .access = flags,
                           .pd = &pd};
  {
    const std::lock_guard guard{lock_};
    if (region->windows.load(std::memory_order_acquire) > 0) {
      delete fresh;
      return fail(Errc::busy);
    }
    pd.add_ref();
    count_.fetch_add(1, std::memory_order_relaxed);
    slot(region->stag).store(fresh, std::memory_order_release);
  }
  quiesce_();
  const std::lock_guard guard{lock_};
  reclaim(region);
  return fresh;
}

void MemoryTable::reclaim(Region* region) {
  region->pd->drop_ref();
  count_.fetch_sub(1, std::memory_order_relaxed);
  delete region;
}

// --- windows

Outcome<Stag> MemoryTable::reserve_window() {
  const std::lock_guard guard{lock_};
  return allocate();
}

void MemoryTable::release_window(Stag stag) {
  std::vector<Region*> retired;
  {
    const std::lock_guard guard{lock_};
    Region* r = slot(stag).exchange(nullptr, std::memory_order_acq_rel);
    if (r != nullptr) {
      r->parent->windows.fetch_sub(1, std::memory_order_acq_rel);
      retired_.push_back(r);
    }
    retired.swap(retired_);
  }
  quiesce_();
  const std::lock_guard guard{lock_};
  free_index(stag);
  for (Region* r : retired) delete r;
}

Outcome<Ok> MemoryTable::bind_window(Stag old, Stag fresh, const Region& bounds) {
  const std::lock_guard guard{lock_};
  Region* r = nullptr;
  if (bounds.length > 0) {
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
    retired_.push_back(before);
  }
  return Ok{};
}

Result<Ok, MemoryFault> MemoryTable::invalidate(Stag stag) {
  const std::lock_guard guard{lock_};
  Region* r = find(stag);
  if (r == nullptr) return fail(MemoryFault::invalid_stag);
  if (!r->window) {
    if (r->windows.load(std::memory_order_acquire) > 0) return fail(MemoryFault::cannot_invalidate);
    // Its owner holds the object and frees it by remove().
    slot(stag).store(nullptr, std::memory_order_release);
    return Ok{};
  }
  slot(stag).store(nullptr, std::memory_order_release);
  r->parent->windows.fetch_sub(1, std::memory_order_acq_rel);
  retired_.push_back(r);
  return Ok{};
}

}  // namespace weft::verbs
