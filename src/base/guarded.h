// Access to memory of the program's that may be gone. A program may unmap, truncate or protect
// memory that is registered (free() of a large buffer before ibv_dereg_mr() unmaps it); an adapter,
// which pins pages, would not notice. Here an access that faults ends in false, where the process
// has a handler that knows leave_guarded() (port/memory_faults.h); elsewhere it is an ordinary
// crash. docs/design/06 says why.
//
// All bytes that weft moves to and from memory of programs pass through these functions. They see
// no data race either (ThreadSanitizer is not told of them): a program that writes to memory that a
// peer reads or writes, or that is being sent, gets the bytes of either moment, as with an adapter.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

// memcpy(3) that says whether it came to its end; part of the bytes may be copied where it did not.
// Null pointers are good where `n` is 0. Any thread.
[[nodiscard]] bool copy_guarded(void* to, const void* from, size_t n);

// The same to memory that another processor reads next, and this one does not. Where the processor
// is good at it, the lines that are overwritten are not fetched first from where they were read
// last. What was copied is visible before what this thread stores afterwards.
[[nodiscard]] bool hand_over_guarded(void* to, const void* from, size_t n);

// Can all of it be read? Looks at a byte of each page. Who is about to copy what may be gone asks
// this before it allocates the place: the kernel may put that where the memory was.
[[nodiscard]] bool readable_guarded(const void* from, size_t n);

enum class Exchange : uint8_t { done, other_value, unreachable };
// As __atomic_compare_exchange_n() with sequential consistency: `expected` becomes what was there
// instead. `at` is a multiple of 8.
[[nodiscard]] Exchange compare_exchange_guarded(uint64_t* at, uint64_t& expected, uint64_t desired);

// For the handler of SIGSEGV and SIGBUS; async-signal-safe. `context` is the ucontext_t that it was
// given.
// Was it one of the functions above that was interrupted?
bool in_guarded(const void* context);
// Makes that function return its error once the handler has returned, or at once: it may not
// return. The caller has given the thread its signal mask back.
void leave_guarded(void* context);

// All ways to copy that this machine has, so that tests reach the one that copy_guarded() is not.
using GuardedCopy = bool (*)(void* to, const void* from, size_t n);
bool copy_guarded_anywhere(void* to, const void* from, size_t n);

}  // namespace weft
