#include "base/crc32c_fold.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>

#include "base/crc32c_factors.h"
#include "base/guarded.h"
#include "base/guarded_asm.h"

// A CRC is the remainder of a polynomial. 128 bits of it that stand D bits before other 128 may be
// replaced by their product with x^D, modulo P, added to the latter: two carry-less
// multiplications with constants, one for each half (Gopal and others, "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009). What is left at last, 128 bits,
// goes through the CRC instruction.

namespace weft::fold {
namespace {

using crc::Factors;
using crc::factors;
using crc::rest;

#define WEFT_FOLDS __attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul,sse4.2")))

constexpr size_t kRegister = 64;  // bytes
constexpr size_t kStep = 4 * kRegister;
static_assert(kLeast >= kStep);

constexpr Factors kByOne = factors(512);
constexpr Factors kByTwo = factors(1024);
constexpr Factors kByThree = factors(1536);
constexpr Factors kByStep = factors(2048);
// The quarters of a register to its last one, which stays as it is.
alignas(64) constexpr std::array<Factors, 4> kToLast = {factors(384), factors(256), factors(128),
                                                        Factors{0, 0}};

// A mask that takes all: of the functions without one, GCC 12 warns in its own header.
constexpr __mmask8 kAll = 0xff;

WEFT_FOLDS inline __m512i all(const Factors& f) {
  return _mm512_maskz_broadcast_i64x2(kAll, _mm_load_si128(reinterpret_cast<const __m128i*>(&f)));
}
WEFT_FOLDS inline __m512i load(const std::byte* p) {
  return _mm512_loadu_si512(p);
}
WEFT_FOLDS inline __m512i folded(__m512i a, __m512i by, __m512i onto) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a, by, 0x00),
                                   _mm512_clmulepi64_epi128(a, by, 0x11), onto, kXorOfThree);
}

template <int kWhich>
WEFT_FOLDS inline __m128i quarter(__m512i a) {
  return _mm512_maskz_extracti64x2_epi64(kAll, a, kWhich);
}

// Of what four registers hold, and `n` bytes after it.
WEFT_FOLDS inline uint32_t finish(const __m512i (&a)[4], const std::byte* p, size_t n) {
  __m512i sum = folded(a[2], all(kByOne), a[3]);
  sum = folded(a[1], all(kByTwo), sum);
  sum = folded(a[0], all(kByThree), sum);
  for (; n >= kRegister; p += kRegister, n -= kRegister) sum = folded(sum, all(kByOne), load(p));
  const __m512i moved = folded(sum, _mm512_load_si512(kToLast.data()), _mm512_setzero_si512());
  const __m128i last = _mm_xor_si128(_mm_xor_si128(quarter<0>(moved), quarter<1>(moved)),
                                     _mm_xor_si128(quarter<2>(moved), quarter<3>(sum)));
  uint64_t s = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(last, 0)));
  s = _mm_crc32_u64(s, static_cast<uint64_t>(_mm_extract_epi64(last, 1)));
  return rest(static_cast<uint32_t>(s), p, n);
}

// Copies `n` bytes, a multiple of kStep, and folds them into `registers`, which hold what precedes
// them. Only registers that no other code has to be told of by vzeroupper.
WEFT_FOLDS bool copy_steps(std::byte* to, const std::byte* from, size_t n, std::byte* registers) {
  asm goto(WEFT_GUARDED("vbroadcasti64x2 (%4), %%zmm20\n"
                        "leaq (%1,%2), %%r8\n"
                        "movq %0, %%r9\n"
                        "movq %1, %%r10\n"
                        // The first step is added to what is there.
                        "vmovdqu64 (%%r10), %%zmm16\n"
                        "vmovdqu64 64(%%r10), %%zmm17\n"
                        "vmovdqu64 128(%%r10), %%zmm18\n"
                        "vmovdqu64 192(%%r10), %%zmm19\n"
                        "vmovdqu64 %%zmm16, (%%r9)\n"
                        "vmovdqu64 %%zmm17, 64(%%r9)\n"
                        "vmovdqu64 %%zmm18, 128(%%r9)\n"
                        "vmovdqu64 %%zmm19, 192(%%r9)\n"
                        "vpxorq (%3), %%zmm16, %%zmm16\n"
                        "jmp 4f\n"
                        ".balign 16\n"
                        "3:\n"
                        "vmovdqu64 (%%r10), %%zmm21\n"
                        "vmovdqu64 64(%%r10), %%zmm22\n"
                        "vmovdqu64 128(%%r10), %%zmm23\n"
                        "vmovdqu64 192(%%r10), %%zmm24\n"
                        "vmovdqu64 %%zmm21, (%%r9)\n"
                        "vmovdqu64 %%zmm22, 64(%%r9)\n"
                        "vmovdqu64 %%zmm23, 128(%%r9)\n"
                        "vmovdqu64 %%zmm24, 192(%%r9)\n"
                        "vpclmulqdq $0x00, %%zmm20, %%zmm16, %%zmm25\n"
                        "vpclmulqdq $0x00, %%zmm20, %%zmm17, %%zmm26\n"
                        "vpclmulqdq $0x00, %%zmm20, %%zmm18, %%zmm27\n"
                        "vpclmulqdq $0x00, %%zmm20, %%zmm19, %%zmm28\n"
                        "vpclmulqdq $0x11, %%zmm20, %%zmm16, %%zmm16\n"
                        "vpclmulqdq $0x11, %%zmm20, %%zmm17, %%zmm17\n"
                        "vpclmulqdq $0x11, %%zmm20, %%zmm18, %%zmm18\n"
                        "vpclmulqdq $0x11, %%zmm20, %%zmm19, %%zmm19\n"
                        "vpternlogq $0x96, %%zmm25, %%zmm21, %%zmm16\n"
                        "vpternlogq $0x96, %%zmm26, %%zmm22, %%zmm17\n"
                        "vpternlogq $0x96, %%zmm27, %%zmm23, %%zmm18\n"
                        "vpternlogq $0x96, %%zmm28, %%zmm24, %%zmm19\n"
                        "4:\n"
                        "addq $256, %%r10\n"
                        "addq $256, %%r9\n"
                        "cmpq %%r8, %%r10\n"
                        "jb 3b\n"
                        "vmovdqa64 %%zmm16, (%3)\n"
                        "vmovdqa64 %%zmm17, 64(%3)\n"
                        "vmovdqa64 %%zmm18, 128(%3)\n"
                        "vmovdqa64 %%zmm19, 192(%3)\n")
           :
           : "r"(to), "r"(from), "r"(n), "r"(registers), "r"(&kByStep)
           : "r8", "r9", "r10", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
             "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "cc", "memory"
           : fault);
  return true;
fault:
  return false;
}

WEFT_FOLDS uint32_t crc(uint32_t state, const std::byte* p, size_t n) {
  __m512i a[4] = {load(p), load(p + kRegister), load(p + 2 * kRegister), load(p + 3 * kRegister)};
  a[0] = _mm512_xor_si512(a[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  p += kStep;
  n -= kStep;
  const __m512i by = all(kByStep);
  for (; n >= kStep; p += kStep, n -= kStep) {
    a[0] = folded(a[0], by, load(p));
    a[1] = folded(a[1], by, load(p + kRegister));
    a[2] = folded(a[2], by, load(p + 2 * kRegister));
    a[3] = folded(a[3], by, load(p + 3 * kRegister));
  }
  return finish(a, p, n);
}

WEFT_FOLDS bool copy(uint32_t& state, std::byte* to, const std::byte* from, size_t n) {
  guarded::look_at(from, n);
  guarded::look_at(to, n);
  alignas(kRegister) std::byte registers[kStep];
  _mm512_store_si512(registers, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
  const size_t steps = n - n % kStep;
  // What is left is copied first, so that nothing waits for these stores when they are loaded.
  if (!copy_guarded(to + steps, from + steps, n - steps) ||
      !copy_steps(to, from, steps, registers)) {
    return false;
  }
  const __m512i a[4] = {load(registers), load(registers + kRegister),
                        load(registers + 2 * kRegister), load(registers + 3 * kRegister)};
  state = finish(a, to + steps, n - steps);
  return true;
}

}  // namespace

const Implementation* by_512_bits() {
  static constexpr Implementation kImplementation{"vpclmulqdq", crc, copy};
  const bool has_all =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0 &&
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.2") != 0;
  return has_all ? &kImplementation : nullptr;
}

}  // namespace weft::fold

#endif
