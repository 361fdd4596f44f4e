// Memory that is freed later. A program may have a `free` of its own that waits for a lock, and
// holds that lock where it deregisters memory and so waits for the engines (MVAPICH2). A thread
// that holds an engine must not wait for the program, so what it frees is kept until it has let go.
#pragma once

namespace weft {

class PutOffFree {
 public:
  // Between the two what this thread hands to keep() is kept. They may be nested.
  static void begin() noexcept { ++of_thread.depth; }
  static void end() noexcept {
    if (--of_thread.depth == 0) free_kept();
  }

  // Frees a block for good.
  using Free = void (*)(void* block);
  // True: `block`, of 8 bytes and more, is kept, and freed at the end, by `one` or, if it is an
  // array, by `array`. They are the same in all calls. False: nothing is put off.
  static bool keep_one(void* block, Free one) noexcept { return keep(block, of_thread.ones, one); }
  static bool keep_array(void* block, Free array) noexcept {
    return keep(block, of_thread.arrays, array);
  }

 private:
  // In the block itself, for there may be no memory.
  struct Link {
    Link* next;
  };
  struct Kept {
    Link* first = nullptr;
    Free really = nullptr;
  };
  struct OfThread {
    unsigned depth = 0;
    Kept ones;
    Kept arrays;
  };
  static bool keep(void* block, Kept& kept, Free really) noexcept;
  static void free_all(Kept& kept) noexcept;
  static void free_kept() noexcept {
    if (of_thread.ones.first != nullptr) free_all(of_thread.ones);
    if (of_thread.arrays.first != nullptr) free_all(of_thread.arrays);
  }

  static constinit thread_local OfThread of_thread __attribute__((tls_model("initial-exec")));
};

}  // namespace weft
