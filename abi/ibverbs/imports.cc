#include "abi/ibverbs/imports.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace weft::abi {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr uint32_t kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr uint32_t kGlobalData = R_AARCH64_GLOB_DAT;
#else
// No slot is found then.
constexpr uint32_t kJumpSlot = UINT32_MAX;
constexpr uint32_t kGlobalData = UINT32_MAX;
#endif

// The memory that the loader has given to an object.
class Segments {
 public:
  explicit Segments(const dl_phdr_info& object) : object_(object) {}

  // Whether all of it lies in one segment that has `flags`.
  bool hold(uintptr_t address, size_t length, uint32_t flags) const {
    for (const ElfW(Phdr) & p : headers()) {
      if (p.p_type != PT_LOAD || (p.p_flags & flags) != flags) continue;
      const uintptr_t begin = object_.dlpi_addr + p.p_vaddr;
      if (address >= begin && length <= p.p_memsz && address - begin <= p.p_memsz - length) {
        return true;
      }
    }
    return false;
  }

  // What is made read-only once the object is relocated; whole pages of it, as the loader does.
  bool read_only_after_relocation(uintptr_t address) const {
    const uintptr_t page = static_cast<uintptr_t>(::getpagesize());
    for (const ElfW(Phdr) & p : headers()) {
      if (p.p_type != PT_GNU_RELRO) continue;
      const uintptr_t begin = object_.dlpi_addr + p.p_vaddr;
      if (address >= begin / page * page && address < (begin + p.p_memsz) / page * page) {
        return true;
      }
    }
    return false;
  }

  const ElfW(Dyn) * dynamic() const {
    for (const ElfW(Phdr) & p : headers()) {
      const uintptr_t at = object_.dlpi_addr + p.p_vaddr;
      if (p.p_type == PT_DYNAMIC && p.p_memsz % sizeof(ElfW(Dyn)) == 0 && aligned(at) &&
          hold(at, p.p_memsz, PF_R)) {
        dynamic_end_ = at + p.p_memsz;
        return reinterpret_cast<const ElfW(Dyn)*>(at);
      }
    }
    return nullptr;
  }
  bool in_dynamic(const ElfW(Dyn) * entry) const {
    return reinterpret_cast<uintptr_t>(entry) < dynamic_end_;
  }

  static bool aligned(uintptr_t address) { return address % alignof(ElfW(Dyn)) == 0; }

 private:
  struct Headers {
    const ElfW(Phdr) * first;
    size_t count;
    const ElfW(Phdr) * begin() const { return first; }
    const ElfW(Phdr) * end() const { return first + count; }
  };
  Headers headers() const { return {object_.dlpi_phdr, object_.dlpi_phnum}; }

  const dl_phdr_info& object_;
  mutable uintptr_t dynamic_end_ = 0;
};

// One of the tables that the dynamic section names.
struct Table {
  uintptr_t address = 0;
  size_t size = 0;
};

class Imports {
 public:
  explicit Imports(const dl_phdr_info& object) : base_(object.dlpi_addr), segments_(object) {}

  // False when the object has no tables that can be followed.
  bool read() {
    const ElfW(Dyn)* d = segments_.dynamic();
    if (d == nullptr) return false;
    bool with_addends = true;
    for (; segments_.in_dynamic(d) && d->d_tag != DT_NULL; ++d) {
      switch (d->d_tag) {
        case DT_SYMTAB:
          symbols_ = place(d->d_un.d_ptr);
          break;
        case DT_STRTAB:
          strings_.address = place(d->d_un.d_ptr);
          break;
        case DT_STRSZ:
          strings_.size = d->d_un.d_val;
          break;
        case DT_JMPREL:
          calls_.address = place(d->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          calls_.size = d->d_un.d_val;
          break;
        case DT_RELA:
          data_.address = place(d->d_un.d_ptr);
          break;
        case DT_RELASZ:
          data_.size = d->d_un.d_val;
          break;
        case DT_PLTREL:
          with_addends &= d->d_un.d_val == DT_RELA;
          break;
        case DT_RELAENT:
          with_addends &= d->d_un.d_val == sizeof(ElfW(Rela));
          break;
        default:
          break;
      }
    }
    return with_addends && symbols_ != 0 && strings_.size != 0 &&
           segments_.hold(strings_.address, strings_.size, PF_R);
  }

  bool needs(std::string_view beginning) const {
    const ElfW(Dyn)* d = segments_.dynamic();
    for (; segments_.in_dynamic(d) && d->d_tag != DT_NULL; ++d) {
      if (d->d_tag != DT_NEEDED) continue;
      const auto name = text(d->d_un.d_val);
      if (name && name->starts_with(beginning)) return true;
    }
    return false;
  }

  void replace(Replacement replacement) {
    for (const Table& table : {calls_, data_}) {
      if (table.size == 0 || !Segments::aligned(table.address) ||
          !segments_.hold(table.address, table.size, PF_R)) {
        continue;
      }
      const auto* r = reinterpret_cast<const ElfW(Rela)*>(table.address);
      for (size_t i = 0; i < table.size / sizeof *r; ++i) replace(r[i], replacement);
    }
  }

 private:
  // glibc adds the base to these entries of the dynamic section, except where that is read-only.
  uintptr_t place(uintptr_t given) const { return given < base_ ? base_ + given : given; }

  std::optional<std::string_view> imported_name(size_t index) const {
    const uintptr_t at = symbols_ + index * sizeof(ElfW(Sym));
    if (!Segments::aligned(at) || !segments_.hold(at, sizeof(ElfW(Sym)), PF_R)) return {};
    const auto& symbol = *reinterpret_cast<const ElfW(Sym)*>(at);
    if (symbol.st_shndx != SHN_UNDEF) return {};
    return text(symbol.st_name);
  }

  std::optional<std::string_view> text(uint64_t offset) const {
    if (offset >= strings_.size) return {};
    const auto* begin = reinterpret_cast<const char*>(strings_.address + offset);
    return std::string_view{begin, ::strnlen(begin, strings_.size - offset)};
  }

  void replace(const ElfW(Rela) & relocation, Replacement replacement) {
    const uint32_t type = ELF64_R_TYPE(relocation.r_info);
    if (type != kJumpSlot && type != kGlobalData) return;
    const auto name = imported_name(ELF64_R_SYM(relocation.r_info));
    if (!name) return;
    void* const target = replacement(*name);
    const uintptr_t slot = base_ + relocation.r_offset;
    if (target == nullptr || !Segments::aligned(slot) ||
        !segments_.hold(slot, sizeof(void*), PF_R | PF_W)) {
      return;
    }
    store(slot, target);
  }

  void store(uintptr_t slot, void* target) {
    void** const to = reinterpret_cast<void**>(slot);
    // Other threads call through the slot at any time.
    if (__atomic_load_n(to, __ATOMIC_RELAXED) == target) return;
    const bool read_only = segments_.read_only_after_relocation(slot);
    const uintptr_t page = static_cast<uintptr_t>(::getpagesize());
    void* const begin = reinterpret_cast<void*>(slot / page * page);
    if (read_only && ::mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(to, target, __ATOMIC_RELEASE);
    if (read_only) ::mprotect(begin, page, PROT_READ);
  }

  uintptr_t base_;
  Segments segments_;
  uintptr_t symbols_ = 0;
  Table strings_;
  Table calls_;  // slots of the procedure linkage table
  Table data_;   // all others
};

}  // namespace

void replace_imports(const dl_phdr_info& object, Replacement replacement) {
  static_assert(sizeof(void*) == 8, "ELF64 only");
  Imports imports{object};
  if (imports.read()) imports.replace(replacement);
}

bool needs_library(const dl_phdr_info& object, std::string_view beginning) {
  Imports imports{object};
  return imports.read() && imports.needs(beginning);
}

}  // namespace weft::abi
