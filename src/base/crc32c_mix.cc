#include "base/crc32c_fold.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>

#include "base/crc32c_factors.h"
#include "base/guarded.h"
#include "base/guarded_asm.h"

// A block has a front, which is folded (crc32c_fold.cc says how), and three streams of equal length
// behind it, which the CRC instruction takes side by side: it has a result each cycle, three cycles
// late. CRCs of parts become that of the whole by a product with x^n each, n being the bits that
// follow the part.

namespace weft::fold {
namespace {

using crc::Factors;
using crc::factors;
using crc::rest;
using crc::times_x;

#define WEFT_MIXES __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))

constexpr size_t kRegister = 32;  // bytes
constexpr size_t kFront = 4 * kRegister;
constexpr size_t kStream = 16;
constexpr size_t kRound = kFront + 3 * kStream;
// Rounds of a block. Not 128: then the streams would begin at the same place of each second page.
constexpr size_t kMostRounds = 126;
static_assert(kLeast >= kRound);

constexpr Factors kByLane = factors(128);
constexpr Factors kByOne = factors(256);
constexpr Factors kByTwo = factors(512);
constexpr Factors kByThree = factors(768);
constexpr Factors kByRound = factors(1024);

// By how much is a CRC moved on when some stream parts of 16 bytes follow? The factor of `parts` is
// x^(128 * parts - 33) modulo P: the CRC instruction, which takes the product, multiplies by x^32,
// and the product is one place down.
constexpr size_t kMostParts = kMostRounds * kRound / kStream;
constexpr auto kMoves = [] {
  std::array<uint32_t, 256> by_byte{};
  for (uint32_t i = 0; i < by_byte.size(); ++i) {
    uint32_t v = i;
    for (int k = 0; k < 8; ++k) v = times_x(v);
    by_byte[i] = v;
  }
  std::array<uint32_t, kMostParts + 1> moves{};
  uint32_t v = 0x80000000U;
  for (int k = 0; k < 128 - 33; ++k) v = times_x(v);
  for (size_t parts = 1; parts < moves.size(); ++parts) {
    moves[parts] = v;
    for (int k = 0; k < 16; ++k) v = by_byte[v & 0xff] ^ (v >> 8);
  }
  return moves;
}();

// A block of `rounds`, and its sums: of the front, not yet down to 32 bits, and of the streams.
struct Block {
  const std::byte* front;
  const std::byte* streams;
  ptrdiff_t to;   // from where bytes lie to where they go
  size_t stride;  // from one stream to the next
  size_t rounds;
  alignas(kRegister) std::array<std::byte, kFront> folded;
  std::array<uint64_t, 3> sums;
};

Block block_of(const std::byte* p, size_t n) {
  Block b;
  b.rounds = std::min(n / kRound, kMostRounds);
  b.front = p;
  b.streams = p + b.rounds * kFront;
  b.stride = b.rounds * kStream;
  b.to = 0;
  return b;
}

WEFT_MIXES inline __m256i both(const Factors& f) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(&f)));
}
WEFT_MIXES inline __m256i load(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
WEFT_MIXES inline __m256i folded(__m256i a, __m256i by, __m256i onto) {
  return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(a, by, 0x00), onto),
                          _mm256_clmulepi64_epi128(a, by, 0x11));
}
WEFT_MIXES inline uint64_t word(const std::byte* p) {
  uint64_t v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Sums the block where it lies.
WEFT_MIXES void sum(Block& b) {
  __m256i a0 = _mm256_setzero_si256();
  __m256i a1 = a0;
  __m256i a2 = a0;
  __m256i a3 = a0;
  uint64_t c0 = 0;
  uint64_t c1 = 0;
  uint64_t c2 = 0;
  const __m256i by = both(kByRound);
  const std::byte* front = b.front;
  const std::byte* s = b.streams;
  for (size_t left = b.rounds; left > 0; --left, front += kFront, s += kStream) {
    a0 = folded(a0, by, load(front));
    a1 = folded(a1, by, load(front + kRegister));
    c0 = _mm_crc32_u64(c0, word(s));
    c1 = _mm_crc32_u64(c1, word(s + b.stride));
    c2 = _mm_crc32_u64(c2, word(s + 2 * b.stride));
    a2 = folded(a2, by, load(front + 2 * kRegister));
    a3 = folded(a3, by, load(front + 3 * kRegister));
    c0 = _mm_crc32_u64(c0, word(s + 8));
    c1 = _mm_crc32_u64(c1, word(s + b.stride + 8));
    c2 = _mm_crc32_u64(c2, word(s + 2 * b.stride + 8));
  }
  auto* out = reinterpret_cast<__m256i*>(b.folded.data());
  _mm256_store_si256(out, a0);
  _mm256_store_si256(out + 1, a1);
  _mm256_store_si256(out + 2, a2);
  _mm256_store_si256(out + 3, a3);
  b.sums = {c0, c1, c2};
}

// The same, and copies it to `b.to` further on. False where memory is gone.
WEFT_MIXES bool copy_and_sum(Block& b, const Factors& by) {
  static_assert(offsetof(Block, front) == 0 && offsetof(Block, streams) == 8 &&
                offsetof(Block, to) == 16 && offsetof(Block, stride) == 24 &&
                offsetof(Block, rounds) == 32 && offsetof(Block, folded) == 64 &&
                offsetof(Block, sums) == 192);
  asm goto("movq (%0), %%r8\n"
           "movq 8(%0), %%r9\n"
           "movq 16(%0), %%r10\n"
           "leaq (%%r9,%%r10), %%r11\n"
           "movq 24(%0), %%rcx\n"
           "movq 32(%0), %%r12\n"
           "vbroadcasti128 (%1), %%ymm4\n"
           "vpxor %%xmm0, %%xmm0, %%xmm0\n"
           "vpxor %%xmm1, %%xmm1, %%xmm1\n"
           "vpxor %%xmm2, %%xmm2, %%xmm2\n"
           "vpxor %%xmm3, %%xmm3, %%xmm3\n"
           "xorl %%eax, %%eax\n"
           "xorl %%edx, %%edx\n"
           "xorl %%esi, %%esi\n"
           ".balign 16\n" WEFT_GUARDED("3:\n"
                                       "vmovdqu (%%r8), %%ymm5\n"
                                       "vmovdqu 32(%%r8), %%ymm6\n"
                                       "vmovdqu 64(%%r8), %%ymm7\n"
                                       "vmovdqu 96(%%r8), %%ymm8\n"
                                       "vmovdqu (%%r9), %%xmm9\n"
                                       "vmovdqu (%%r9,%%rcx), %%xmm10\n"
                                       "vmovdqu (%%r9,%%rcx,2), %%xmm11\n"
                                       "vmovdqu %%ymm5, (%%r8,%%r10)\n"
                                       "vmovdqu %%ymm6, 32(%%r8,%%r10)\n"
                                       "vmovdqu %%ymm7, 64(%%r8,%%r10)\n"
                                       "vmovdqu %%ymm8, 96(%%r8,%%r10)\n"
                                       "vmovdqu %%xmm9, (%%r11)\n"
                                       "vmovdqu %%xmm10, (%%r11,%%rcx)\n"
                                       "vmovdqu %%xmm11, (%%r11,%%rcx,2)\n")
           "vmovq %%xmm9, %%rdi\n"
           "crc32q %%rdi, %%rax\n"
           "vmovq %%xmm10, %%rdi\n"
           "crc32q %%rdi, %%rdx\n"
           "vmovq %%xmm11, %%rdi\n"
           "crc32q %%rdi, %%rsi\n"
           "vpclmulqdq $0x00, %%ymm4, %%ymm0, %%ymm12\n"
           "vpclmulqdq $0x11, %%ymm4, %%ymm0, %%ymm0\n"
           "vpxor %%ymm5, %%ymm12, %%ymm12\n"
           "vpxor %%ymm12, %%ymm0, %%ymm0\n"
           "vpclmulqdq $0x00, %%ymm4, %%ymm1, %%ymm13\n"
           "vpclmulqdq $0x11, %%ymm4, %%ymm1, %%ymm1\n"
           "vpxor %%ymm6, %%ymm13, %%ymm13\n"
           "vpxor %%ymm13, %%ymm1, %%ymm1\n"
           "vpextrq $1, %%xmm9, %%rdi\n"
           "crc32q %%rdi, %%rax\n"
           "vpextrq $1, %%xmm10, %%rdi\n"
           "crc32q %%rdi, %%rdx\n"
           "vpextrq $1, %%xmm11, %%rdi\n"
           "crc32q %%rdi, %%rsi\n"
           "vpclmulqdq $0x00, %%ymm4, %%ymm2, %%ymm14\n"
           "vpclmulqdq $0x11, %%ymm4, %%ymm2, %%ymm2\n"
           "vpxor %%ymm7, %%ymm14, %%ymm14\n"
           "vpxor %%ymm14, %%ymm2, %%ymm2\n"
           "vpclmulqdq $0x00, %%ymm4, %%ymm3, %%ymm15\n"
           "vpclmulqdq $0x11, %%ymm4, %%ymm3, %%ymm3\n"
           "vpxor %%ymm8, %%ymm15, %%ymm15\n"
           "vpxor %%ymm15, %%ymm3, %%ymm3\n"
           "addq $128, %%r8\n"
           "addq $16, %%r9\n"
           "addq $16, %%r11\n"
           "decq %%r12\n"
           "jnz 3b\n"
           "vmovdqa %%ymm0, 64(%0)\n"
           "vmovdqa %%ymm1, 96(%0)\n"
           "vmovdqa %%ymm2, 128(%0)\n"
           "vmovdqa %%ymm3, 160(%0)\n"
           "movq %%rax, 192(%0)\n"
           "movq %%rdx, 200(%0)\n"
           "movq %%rsi, 208(%0)\n"
           "vzeroupper\n"
           :
           : "r"(&b), "r"(&by)
           : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "xmm0", "xmm1",
             "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
             "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory"
           : fault);
  return true;
fault:
  _mm256_zeroupper();
  return false;
}

// What a CRC is when `parts` of 16 bytes follow it, before the CRC instruction.
WEFT_MIXES inline __m128i moved(uint32_t crc, size_t parts) {
  return _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(crc)),
                              _mm_cvtsi32_si128(static_cast<int>(kMoves[parts])), 0x00);
}

// The CRC of all before the block, and the block, from its sums.
WEFT_MIXES uint32_t joined(uint32_t state, const Block& b) {
  const std::byte* const f = b.folded.data();
  __m256i all = folded(load(f + 2 * kRegister), both(kByOne), load(f + 3 * kRegister));
  all = folded(load(f + kRegister), both(kByTwo), all);
  all = folded(load(f), both(kByThree), all);
  const __m128i by = _mm_load_si128(reinterpret_cast<const __m128i*>(&kByLane));
  const __m128i low = _mm256_castsi256_si128(all);
  const __m128i lane = _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(low, by, 0x00), _mm_clmulepi64_si128(low, by, 0x11)),
      _mm256_extracti128_si256(all, 1));
  uint64_t front = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_extract_epi64(lane, 0)));
  front = _mm_crc32_u64(front, static_cast<uint64_t>(_mm_extract_epi64(lane, 1)));
  const __m128i before =
      _mm_xor_si128(_mm_xor_si128(moved(state, b.rounds * kRound / kStream),
                                  moved(static_cast<uint32_t>(front), 3 * b.rounds)),
                    _mm_xor_si128(moved(static_cast<uint32_t>(b.sums[0]), 2 * b.rounds),
                                  moved(static_cast<uint32_t>(b.sums[1]), b.rounds)));
  const uint64_t sum = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(before)));
  return static_cast<uint32_t>(sum ^ b.sums[2]);
}

uint32_t crc(uint32_t state, const std::byte* p, size_t n) {
  while (n >= kLeast) {
    Block b = block_of(p, n);
    sum(b);
    state = joined(state, b);
    p += b.rounds * kRound;
    n -= b.rounds * kRound;
  }
  return rest(state, p, n);
}

bool copy(uint32_t& state, std::byte* to, const std::byte* from, size_t n) {
  guarded::look_at(from, n);
  guarded::look_at(to, n);
  while (n >= kLeast) {
    Block b = block_of(from, n);
    b.to = to - from;
    if (!copy_and_sum(b, kByRound)) return false;
    state = joined(state, b);
    const size_t done = b.rounds * kRound;
    from += done;
    to += done;
    n -= done;
  }
  if (!copy_guarded(to, from, n)) return false;
  state = rest(state, to, n);
  return true;
}

}  // namespace

const Implementation* by_256_bits() {
  static constexpr Implementation kImplementation{"vpclmulqdq-256", crc, copy};
  const bool has_all =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0 &&
      __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.2") != 0;
  return has_all ? &kImplementation : nullptr;
}

}  // namespace weft::fold

#endif
