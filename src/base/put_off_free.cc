#include "base/put_off_free.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace weft {

constinit std::atomic<PutOffFree::Page*> PutOffFree::spare = nullptr;
constinit thread_local PutOffFree::OfThread PutOffFree::of_thread
    __attribute__((tls_model("initial-exec")));

struct PutOffFree::Page {
  static constexpr size_t kBytes = 4096;
  static constexpr size_t kMost = (kBytes - 2 * sizeof(void*)) / sizeof(Kept);

  Page* older = nullptr;
  size_t count = 0;
  std::array<Kept, kMost> kept;
};

// Null: there is no memory.
PutOffFree::Page* PutOffFree::take_page() noexcept {
  if (Page* const page = spare.exchange(nullptr, std::memory_order_acquire)) return page;
  void* const memory =
      ::mmap(nullptr, Page::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : ::new (memory) Page;
}

void PutOffFree::give_back(Page* page) noexcept {
  page->count = 0;
  page = spare.exchange(page, std::memory_order_acq_rel);
  if (page != nullptr) (void)::munmap(page, Page::kBytes);
}

bool PutOffFree::remember(const Kept& kept) noexcept {
  OfThread& t = of_thread;
  if (t.count < kFew) {
    t.few[t.count++] = kept;
    return true;
  }
  static_assert(sizeof(Page) <= Page::kBytes);
  if (t.pages == nullptr || t.pages->count == Page::kMost) {
    Page* const page = take_page();
    if (page == nullptr) return false;
    page->older = t.pages;
    t.pages = page;
  }
  t.pages->kept[t.pages->count++] = kept;
  ++t.count;
  return true;
}

// A program's `free` may come back here, hold an engine meanwhile, and leave more.
void PutOffFree::free_kept() noexcept {
  const auto few = of_thread.few;
  const size_t count = of_thread.count < kFew ? of_thread.count : kFew;
  Page* page = of_thread.pages;
  of_thread.pages = nullptr;
  of_thread.count = 0;
  for (size_t i = 0; i < count; ++i) few[i].really(few[i].block);
  while (page != nullptr) {
    for (size_t i = 0; i < page->count; ++i) page->kept[i].really(page->kept[i].block);
    give_back(std::exchange(page, page->older));
  }
}

}  // namespace weft
