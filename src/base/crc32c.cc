#include "base/crc32c.h"

#include <dlfcn.h>

#include <array>
#include <vector>

#include "base/crc32c_fold.h"
#include "base/guarded.h"

#if defined(__x86_64__)
#include "base/crc32c_factors.h"
#endif

// Where the processor cannot fold, ISA-L is taken at run time: Debian has no static library of it,
// and a program that weft is loaded into must start where libisal2 is not installed. Without it the
// CPU's own CRC instruction does the work, at a fifth of the speed or less.

namespace weft {
namespace {

using LongCrc = uint32_t (*)(uint32_t state, const std::byte* p, size_t n);
using IsalCrc = unsigned int (*)(unsigned char* buffer, int length, unsigned int state);

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0x82F63B78U ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr auto kTable = make_table();

uint32_t table_crc(uint32_t state, const std::byte* p, size_t n) {
  for (; n > 0; ++p, --n) {
    state = kTable[(state ^ std::to_integer<uint32_t>(*p)) & 0xff] ^ (state >> 8);
  }
  return state;
}

#if defined(__x86_64__)
constexpr LongCrc instruction_crc = crc::rest;
bool have_instruction() {
  return __builtin_cpu_supports("sse4.2") != 0;
}
#else
constexpr LongCrc instruction_crc = table_crc;
bool have_instruction() {
  return false;
}
#endif

IsalCrc g_isal = nullptr;

uint32_t isal_crc(uint32_t state, const std::byte* p, size_t n) {
  // ISA-L takes a non-const pointer that it does not write to, and an int length.
  constexpr size_t kMost = size_t{1} << 30;
  while (n > 0) {
    const size_t now = n < kMost ? n : kMost;
    state = g_isal(reinterpret_cast<unsigned char*>(const_cast<std::byte*>(p)),
                   static_cast<int>(now), state);
    p += now;
    n -= now;
  }
  return state;
}

bool load_isal() {
  if (void* lib = dlopen("libisal.so.2", RTLD_NOW | RTLD_LOCAL)) {
    g_isal = reinterpret_cast<IsalCrc>(dlsym(lib, "crc32_iscsi"));
  }
  return g_isal != nullptr;
}

// Of any length, so that tests may ask for it.
template <const fold::Implementation* (*kImplementation)()>
uint32_t folded(uint32_t state, const std::byte* p, size_t n) {
  return n < fold::kLeast ? instruction_crc(state, p, n) : kImplementation()->crc(state, p, n);
}

using CopyingCrc = bool (*)(uint32_t& state, std::byte* to, const std::byte* from, size_t n);

struct Engines {
  LongCrc short_crc;
  LongCrc long_crc;
  const char* name;
  CopyingCrc copy = nullptr;  // null where it cannot be done in one pass
};

Engines choose() {
  const bool instruction = have_instruction();
  const LongCrc own = instruction ? instruction_crc : table_crc;
  for (const fold::Implementation* folding : {fold::by_512_bits(), fold::by_256_bits()}) {
    if (folding != nullptr) return {own, folding->crc, folding->name, folding->copy};
  }
  if (load_isal()) return {instruction ? own : isal_crc, isal_crc, "isa-l"};
  return {own, own, instruction ? "sse4.2" : "table"};
}

const Engines& engines() {
  static const Engines chosen = choose();
  return chosen;
}

std::vector<Crc32cEngine> list_engines() {
  std::vector<Crc32cEngine> all{{"table", table_crc}};
  if (have_instruction()) all.push_back({"sse4.2", instruction_crc});
  // Before ISA-L is loaded: this may do it itself.
  (void)engines();
  if (g_isal != nullptr || load_isal()) all.push_back({"isa-l", isal_crc});
  if (const auto* w = fold::by_256_bits()) all.push_back({w->name, folded<fold::by_256_bits>});
  if (const auto* w = fold::by_512_bits()) all.push_back({w->name, folded<fold::by_512_bits>});
  return all;
}

// Under so many bytes the CRC instruction in a loop beats folding (design/01).
constexpr size_t kShort = 256;
static_assert(kShort >= fold::kLeast);

}  // namespace

std::span<const Crc32cEngine> crc32c_engines() {
  static const std::vector<Crc32cEngine> all = list_engines();
  return all;
}

void Crc32c::update(Bytes bytes) {
  const Engines& e = engines();
  state_ = (bytes.size() < kShort ? e.short_crc : e.long_crc)(state_, bytes.data(), bytes.size());
}

const char* crc32c_engine() {
  return engines().name;
}

bool copy_with_crc(std::byte* to, Bytes from, Crc32c& crc) {
  const CopyingCrc copy = engines().copy;
  if (from.size() < kShort || copy == nullptr) return copy_then_crc(to, from, crc);
  return copy(crc.state_, to, from.data(), from.size());
}

bool copy_then_crc(std::byte* to, Bytes from, Crc32c& crc) {
  constexpr size_t kBlock = 16 * 1024;
  while (!from.empty()) {
    const Bytes block = from.first(from.size() < kBlock ? from.size() : kBlock);
    if (!copy_guarded(to, block.data(), block.size())) return false;
    crc.update(Bytes{to, block.size()});
    to += block.size();
    from = from.subspan(block.size());
  }
  return true;
}

}  // namespace weft
