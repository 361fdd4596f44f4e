#include "base/guarded.h"

#include <ucontext.h>

#include <atomic>
#include <csetjmp>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>

#include "base/guarded_asm.h"
#endif

namespace weft {
namespace {

// --- any processor: the way out is noted before the access

// Of the access that this thread is in. A handler reads it, so it must not be allocated on first
// use.
thread_local sigjmp_buf* g_way_out __attribute__((tls_model("initial-exec"))) = nullptr;

template <class Access>
bool with_way_out(Access&& access) {
  sigjmp_buf out;
  if (sigsetjmp(out, 0) != 0) {
    g_way_out = nullptr;
    return false;
  }
  g_way_out = &out;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g_way_out = nullptr;
  return true;
}

}  // namespace

bool copy_guarded_anywhere(void* to, const void* from, size_t n) {
  if (n == 0) return true;
  return with_way_out([&] { std::memcpy(to, from, n); });
}

#if defined(__x86_64__)

// --- x86-64: a table of the few instructions that may fault, so that nothing is to be noted

namespace guarded {

// Where some of them stand, and where they go on after a fault; as distances from each field.
struct Entry {
  int32_t begin;
  int32_t end;
  int32_t landing;
};

// The linker's names for the two ends of the section.
extern const Entry kFirst[] __asm__("__start_weft_guarded") __attribute__((visibility("hidden")));
extern const Entry kEnd[] __asm__("__stop_weft_guarded") __attribute__((visibility("hidden")));

}  // namespace guarded

namespace {

using guarded::Entry;
using guarded::look_at;

uintptr_t target(const int32_t& field) {
  return reinterpret_cast<uintptr_t>(&field) + static_cast<uintptr_t>(intptr_t{field});
}

// Two pieces that may overlap, so that every length of a range takes the same instructions. The
// loads come before the stores.
inline bool copy_up_to_16(std::byte* to, const std::byte* from, size_t n) {
  if (n >= 8) {
    asm goto(WEFT_GUARDED("movq (%1), %%r8\n movq -8(%1,%2), %%r9\n"
                          "movq %%r8, (%0)\n movq %%r9, -8(%0,%2)\n")
             :
             : "r"(to), "r"(from), "r"(n)
             : "r8", "r9", "memory"
             : fault);
  } else if (n >= 4) {
    asm goto(WEFT_GUARDED("movl (%1), %%r8d\n movl -4(%1,%2), %%r9d\n"
                          "movl %%r8d, (%0)\n movl %%r9d, -4(%0,%2)\n")
             :
             : "r"(to), "r"(from), "r"(n)
             : "r8", "r9", "memory"
             : fault);
  } else if (n > 0) {
    asm goto(WEFT_GUARDED("movb (%1), %%r8b\n movb (%1,%3), %%r9b\n movb -1(%1,%2), %%r10b\n"
                          "movb %%r8b, (%0)\n movb %%r9b, (%0,%3)\n movb %%r10b, -1(%0,%2)\n")
             :
             : "r"(to), "r"(from), "r"(n), "r"(n / 2)
             : "r8", "r9", "r10", "memory"
             : fault);
  }
  return true;
fault:
  return false;
}

inline bool copy_up_to_64(std::byte* to, const std::byte* from, size_t n) {
  if (n <= 32) {
    asm goto(WEFT_GUARDED("movdqu (%1), %%xmm0\n movdqu -16(%1,%2), %%xmm1\n"
                          "movdqu %%xmm0, (%0)\n movdqu %%xmm1, -16(%0,%2)\n")
             :
             : "r"(to), "r"(from), "r"(n)
             : "xmm0", "xmm1", "memory"
             : fault);
  } else {
    asm goto(WEFT_GUARDED("movdqu (%1), %%xmm0\n movdqu 16(%1), %%xmm1\n"
                          "movdqu -32(%1,%2), %%xmm2\n movdqu -16(%1,%2), %%xmm3\n"
                          "movdqu %%xmm0, (%0)\n movdqu %%xmm1, 16(%0)\n"
                          "movdqu %%xmm2, -32(%0,%2)\n movdqu %%xmm3, -16(%0,%2)\n")
             :
             : "r"(to), "r"(from), "r"(n)
             : "xmm0", "xmm1", "xmm2", "xmm3", "memory"
             : fault);
  }
  return true;
fault:
  return false;
}

inline bool copy_short(std::byte* to, const std::byte* from, size_t n) {
  return n > 16 ? copy_up_to_64(to, from, n) : copy_up_to_16(to, from, n);
}

// More than 64: lines of 64 bytes, and the last 64 once more or for the first time.
inline bool copy_long(std::byte* to, const std::byte* from, size_t n) {
  asm goto(WEFT_GUARDED("leaq -64(%1,%2), %%r8\n leaq -64(%0,%2), %%r9\n"
                        "movq %0, %%r10\n movq %1, %%r11\n"
                        ".balign 16\n"
                        "3: movdqu (%%r11), %%xmm0\n movdqu 16(%%r11), %%xmm1\n"
                        "movdqu 32(%%r11), %%xmm2\n movdqu 48(%%r11), %%xmm3\n"
                        "movdqu %%xmm0, (%%r10)\n movdqu %%xmm1, 16(%%r10)\n"
                        "movdqu %%xmm2, 32(%%r10)\n movdqu %%xmm3, 48(%%r10)\n"
                        "addq $64, %%r11\n addq $64, %%r10\n"
                        "cmpq %%r8, %%r11\n jb 3b\n"
                        "movdqu (%%r8), %%xmm0\n movdqu 16(%%r8), %%xmm1\n"
                        "movdqu 32(%%r8), %%xmm2\n movdqu 48(%%r8), %%xmm3\n"
                        "movdqu %%xmm0, (%%r9)\n movdqu %%xmm1, 16(%%r9)\n"
                        "movdqu %%xmm2, 32(%%r9)\n movdqu %%xmm3, 48(%%r9)\n")
           :
           : "r"(to), "r"(from), "r"(n)
           : "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "cc", "memory"
           : fault);
  return true;
fault:
  return false;
}

// From so many bytes on the processor's own instruction is faster where it does not fetch the lines
// that it is about to overwrite: half of the time, for memory that is not in the cache. AMD's is
// slower for places that are not aligned.
constexpr size_t kByInstruction = 4096;
const bool g_has_fast_instruction = [] {
  constexpr unsigned kErms = 1U << 9;  // Enhanced REP MOVSB: CPUID 7, EBX
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (b & kErms) != 0;
}();

// Past the cache, whole lines: 64 bytes at a multiple of 64, `n` is one of 64 and not 0.
inline bool copy_lines_past(std::byte* to, const std::byte* from, size_t n) {
  asm goto(WEFT_GUARDED("leaq (%0,%2), %%r8\n movq %0, %%r10\n movq %1, %%r11\n"
                        ".balign 16\n"
                        "3: movdqu (%%r11), %%xmm0\n movdqu 16(%%r11), %%xmm1\n"
                        "movdqu 32(%%r11), %%xmm2\n movdqu 48(%%r11), %%xmm3\n"
                        "movntdq %%xmm0, (%%r10)\n movntdq %%xmm1, 16(%%r10)\n"
                        "movntdq %%xmm2, 32(%%r10)\n movntdq %%xmm3, 48(%%r10)\n"
                        "addq $64, %%r11\n addq $64, %%r10\n"
                        "cmpq %%r8, %%r10\n jb 3b\n")
           :
           : "r"(to), "r"(from), "r"(n)
           : "r8", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "cc", "memory"
           : fault);
  return true;
fault:
  return false;
}

// From so many bytes on that pays: to wait until the last lines are out takes 0.2 us.
constexpr size_t kPastFrom = 4096;
constexpr size_t kLine = 64;
const bool g_hands_over_fast = [] {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}();

inline bool copy_by_instruction(std::byte* to, const std::byte* from, size_t n) {
  asm goto("movq %0, %%rdi\n movq %1, %%rsi\n movq %2, %%rcx\n" WEFT_GUARDED("rep movsb\n")
           :
           : "r"(to), "r"(from), "r"(n)
           : "rdi", "rsi", "rcx", "memory"
           : fault);
  return true;
fault:
  return false;
}

}  // namespace

bool copy_guarded(void* to, const void* from, size_t n) {
  look_at(from, n);
  look_at(to, n);
  auto* t = static_cast<std::byte*>(to);
  const auto* f = static_cast<const std::byte*>(from);
  if (n >= kByInstruction && g_has_fast_instruction) return copy_by_instruction(t, f, n);
  if (n > 64) return copy_long(t, f, n);
  return copy_short(t, f, n);
}

bool hand_over_guarded(void* to, const void* from, size_t n) {
  if (n < kPastFrom || !g_hands_over_fast) return copy_guarded(to, from, n);
  look_at(from, n);
  look_at(to, n);
  auto* t = static_cast<std::byte*>(to);
  const auto* f = static_cast<const std::byte*>(from);
  const size_t head = -reinterpret_cast<uintptr_t>(to) % kLine;
  const size_t lines = (n - head) / kLine * kLine;
  const size_t tail = n - head - lines;
  if (!copy_short(t, f, head) || !copy_lines_past(t + head, f + head, lines) ||
      !copy_short(t + head + lines, f + head + lines, tail)) {
    return false;
  }
  // Such stores are in no order with later ones.
  asm volatile("sfence" ::: "memory");
  return true;
}

Exchange compare_exchange_guarded(uint64_t* at, uint64_t& expected, uint64_t desired) {
  look_at(at, sizeof *at);
  // Through memory: an asm goto that has results is for newer compilers.
  uint64_t found = expected;
  asm goto("movq (%1), %%rax\n" WEFT_GUARDED("lock cmpxchgq %2, (%0)\n") "movq %%rax, (%1)\n"
           :
           : "r"(at), "r"(&found), "r"(desired)
           : "rax", "cc", "memory"
           : fault);
  if (found == expected) return Exchange::done;
  expected = found;
  return Exchange::other_value;
fault:
  return Exchange::unreachable;
}

namespace {

const Entry* entry_of(const ucontext_t& context) {
  const auto at = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  for (const Entry* e = guarded::kFirst; e != guarded::kEnd; ++e) {
    if (at >= target(e->begin) && at < target(e->end)) return e;
  }
  return nullptr;
}

}  // namespace

bool in_guarded(const void* context) {
  return g_way_out != nullptr || entry_of(*static_cast<const ucontext_t*>(context)) != nullptr;
}

void leave_guarded(void* context) {
  auto& c = *static_cast<ucontext_t*>(context);
  if (const Entry* e = entry_of(c)) {
    c.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(target(e->landing));
  } else {
    siglongjmp(*g_way_out, 1);
  }
}

#else

bool copy_guarded(void* to, const void* from, size_t n) {
  return copy_guarded_anywhere(to, from, n);
}

bool hand_over_guarded(void* to, const void* from, size_t n) {
  return copy_guarded_anywhere(to, from, n);
}

Exchange compare_exchange_guarded(uint64_t* at, uint64_t& expected, uint64_t desired) {
  bool done = false;
  if (!with_way_out([&] {
        done = __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
      })) {
    return Exchange::unreachable;
  }
  return done ? Exchange::done : Exchange::other_value;
}

bool in_guarded(const void*) {
  return g_way_out != nullptr;
}

void leave_guarded(void*) {
  siglongjmp(*g_way_out, 1);
}

#endif

bool readable_guarded(const void* from, size_t n) {
  constexpr size_t kPage = 4096;  // the least of any machine
  const auto* const bytes = static_cast<const std::byte*>(from);
  for (size_t at = 0; at < n;) {
    std::byte any;
    if (!copy_guarded(&any, bytes + at, 1)) return false;
    at += kPage - (reinterpret_cast<uintptr_t>(bytes) + at) % kPage;
  }
  return true;
}

}  // namespace weft
