#include "sdp/preload/caller.h"

#include <link.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace weft::sdp {
namespace {

struct Range {
  uintptr_t first = 0;
  uintptr_t end = 0;
};

constexpr std::array<const char*, 3> kOurs = {"libibverbs.so", "librdmacm.so", "libweft-sdp.so"};

struct Ranges {
  std::array<Range, kOurs.size()> of;
  size_t count = 0;
};

int add_object(dl_phdr_info* info, size_t, void* data) {
  auto& ranges = *static_cast<Ranges*>(data);
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
  for (const char* name : kOurs) {
    if (std::strncmp(file, name, std::strlen(name)) != 0 || ranges.count == kOurs.size()) continue;
    Range& range = ranges.of[ranges.count++];
    range.first = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const uintptr_t first = info->dlpi_addr + segment.p_vaddr;
      if (first < range.first) range.first = first;
      if (first + segment.p_memsz > range.end) range.end = first + segment.p_memsz;
    }
  }
  return 0;
}

Ranges find_ranges() {
  Ranges ranges;
  (void)::dl_iterate_phdr(add_object, &ranges);
  return ranges;
}

}  // namespace

bool is_program(const void* address) {
  static const Ranges ranges = find_ranges();
  const auto a = reinterpret_cast<uintptr_t>(address);
  for (size_t i = 0; i < ranges.count; ++i) {
    if (a >= ranges.of[i].first && a < ranges.of[i].end) return false;
  }
  return true;
}

}  // namespace weft::sdp
