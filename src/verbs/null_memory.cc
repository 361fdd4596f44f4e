#include "verbs/null_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "base/fork_lock.h"
#include "port/memory_file.h"

namespace weft::verbs {
namespace {

// A thread that receives writes all of this before it begins anew: it stays in a cache.
constexpr size_t kPart = 2U << 20;
static_assert(NullMemory::kSize % kPart == 0);

// The zeros, and behind them the sink.
std::atomic<std::byte*> g_zeros{nullptr};
std::mutex g_making;
const HeldOverFork<g_making> g_making_over_fork;

bool map_sink(std::byte* at) {
  if (port::largest_file() < kPart) return false;
  const port::Fd file = port::memory_file("weft-null");
  if (!file.valid() || ::ftruncate(file.get(), kPart) != 0) return false;
  for (uint64_t offset = 0; offset < NullMemory::kSize; offset += kPart) {
    if (::mmap(at + offset, kPart, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) ==
        MAP_FAILED) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::byte* NullMemory::make() {
  const std::lock_guard guard{g_making};
  if (std::byte* made = g_zeros.load(std::memory_order_relaxed)) return made;
  void* const p =
      ::mmap(nullptr, 2 * kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* const zeros = static_cast<std::byte*>(p);
  if (!map_sink(zeros + kSize)) {
    ::munmap(p, 2 * kSize);
    return nullptr;
  }
  (void)::madvise(p, 2 * kSize, MADV_DONTDUMP);
  g_zeros.store(zeros, std::memory_order_release);
  return zeros;
}

bool NullMemory::is(const std::byte* base) {
  return base != nullptr && base == g_zeros.load(std::memory_order_relaxed);
}

std::byte* NullMemory::place(bool to_write) {
  return g_zeros.load(std::memory_order_relaxed) + (to_write ? kSize : 0);
}

}  // namespace weft::verbs
