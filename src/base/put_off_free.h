// Memory that is freed later. A program may have a `free` of its own that waits for a lock, and
// holds that lock where it deregisters memory and so waits for the engines (MVAPICH2). A thread
// that holds an engine must not wait for the program, so what it frees is kept until it has let go.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace weft {

class PutOffFree {
 public:
  // Between the two what this thread hands to keep() is kept. They may be nested.
  static void begin() noexcept { ++of_thread.depth; }
  static void end() noexcept {
    if (--of_thread.depth == 0 && of_thread.count > 0) free_kept();
  }

  // Frees a block for good.
  using Free = void (*)(void* block);
  // True: `really` gets the block at the end. False: nothing is put off, or there is no memory to
  // remember it.
  static bool keep(void* block, Free really) noexcept {
    return of_thread.depth > 0 && remember({block, really});
  }

 private:
  struct Kept {
    void* block;
    Free really;
  };
  struct Page;  // of the system's, for those that are more than kFew
  static constexpr size_t kFew = 8;
  struct OfThread {
    unsigned depth = 0;
    size_t count = 0;  // of all
    std::array<Kept, kFew> few{};
    Page* pages = nullptr;  // the newest first
  };
  static Page* take_page() noexcept;
  static void give_back(Page* page) noexcept;
  static bool remember(const Kept& kept) noexcept;
  static void free_kept() noexcept;

  // One that nobody uses: where many blocks are freed, they often are.
  static constinit std::atomic<Page*> spare;
  static constinit thread_local OfThread of_thread __attribute__((tls_model("initial-exec")));
};

}  // namespace weft
