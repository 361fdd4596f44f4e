#include "verbs/mapping.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

#include "port/fd.h"

namespace weft::verbs {
namespace {

// PROCMAP_QUERY of Linux 6.11 asks for one mapping by address instead of printing them all. The
// headers of Debian 12 do not have it.
struct ProcmapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
constexpr unsigned long kProcmapQuery = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t kVmaReadable = 1;
constexpr uint64_t kVmaWritable = 2;

struct Vma {
  uint64_t start = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};

enum class Answer : uint8_t { found, none, cannot_ask };

Answer query(int maps, uint64_t address, Vma& out) {
  ProcmapQuery q{};
  q.size = sizeof q;
  q.query_addr = address;
  if (::ioctl(maps, kProcmapQuery, &q) != 0) {
    return errno == ENOENT ? Answer::none : Answer::cannot_ask;
  }
  out = {q.vma_start, q.vma_end, (q.vma_flags & kVmaReadable) != 0,
         (q.vma_flags & kVmaWritable) != 0};
  return Answer::found;
}

// Older kernels: read the whole text, whose lines are in the order of addresses.
Mapping check_by_text(uint64_t from, uint64_t to, bool write) {
  struct Close {
    void operator()(FILE* f) const { std::fclose(f); }
  };
  const std::unique_ptr<FILE, Close> maps{std::fopen("/proc/self/maps", "re")};
  // Without /proc nothing can be told; the kernel's EFAULT comes later then.
  if (!maps) return Mapping::good;
  char line[1024];
  bool line_begins = true;
  while (from < to && std::fgets(line, sizeof line, maps.get()) != nullptr) {
    const bool whole_line = std::strchr(line, '\n') != nullptr;
    uint64_t start = 0;
    uint64_t end = 0;
    char rights[5] = "";
    // The kernel wrote the numbers, and the count of them is checked. NOLINTNEXTLINE(cert-err34-c)
    const int fields = std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, rights);
    const bool parsed = line_begins && fields == 3;
    line_begins = whole_line;
    if (!parsed || end <= from) continue;
    if (start > from || rights[0] != 'r') return Mapping::missing;
    if (write && rights[1] != 'w') return Mapping::read_only;
    from = end;
  }
  return from < to ? Mapping::missing : Mapping::good;
}

}  // namespace

Mapping check_mapping(const void* address, uint64_t length, bool write) {
  uint64_t from = reinterpret_cast<uintptr_t>(address);
  if (length == 0) return Mapping::good;
  if (from + length < from) return Mapping::missing;
  const uint64_t to = from + length;
  const port::Fd maps{::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
  if (!maps.valid()) return check_by_text(from, to, write);
  while (from < to) {
    Vma vma;
    switch (query(maps.get(), from, vma)) {
      case Answer::none:
        return Mapping::missing;
      case Answer::cannot_ask:
        return check_by_text(from, to, write);
      case Answer::found:
        break;
    }
    if (!vma.readable) return Mapping::missing;
    if (write && !vma.writable) return Mapping::read_only;
    from = vma.end;
  }
  return Mapping::good;
}

}  // namespace weft::verbs
