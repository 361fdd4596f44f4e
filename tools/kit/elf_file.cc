#include "kit/elf_file.h"

#include <elf.h>

#include <cstring>
#include <span>

namespace weft::kit {
namespace {

static_assert(std::endian::native == std::endian::little, "fields are copied as they are");

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr Elf64_Half kOwnMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr Elf64_Half kOwnMachine = EM_PPC64;
#else
#error "name this processor's ELF machine number here"
#endif

// The T at `offset`, or nothing when it does not lie inside `file`.
template <class T>
std::optional<T> read_at(Bytes file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

struct Segments {
  std::vector<Elf64_Phdr> loads;
  std::optional<Elf64_Phdr> dynamic;
  bool has_interpreter = false;
};

std::optional<Segments> read_segments(Bytes file, const Elf64_Ehdr& header) {
  Segments segments;
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  if (header.e_phoff > file.size()) return std::nullopt;
  for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return std::nullopt;
    if (segment->p_type == PT_LOAD) segments.loads.push_back(*segment);
    if (segment->p_type == PT_DYNAMIC) segments.dynamic = *segment;
    if (segment->p_type == PT_INTERP) segments.has_interpreter = true;
  }
  return segments;
}

// Where in the file the byte lies that will be at `address`.
std::optional<uint64_t> offset_of(const Segments& segments, uint64_t address) {
  for (const Elf64_Phdr& load : segments.loads) {
    if (address >= load.p_vaddr && address - load.p_vaddr < load.p_filesz &&
        load.p_offset <= UINT64_MAX - (address - load.p_vaddr)) {
      return load.p_offset + (address - load.p_vaddr);
    }
  }
  return std::nullopt;
}

// The entries before DT_NULL, or up to the end of the section.
std::optional<std::vector<Elf64_Dyn>> read_dynamic(Bytes file, const Elf64_Phdr& section) {
  std::vector<Elf64_Dyn> entries;
  if (section.p_offset > file.size()) return std::nullopt;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= section.p_filesz; at += sizeof(Elf64_Dyn)) {
    const auto entry = read_at<Elf64_Dyn>(file, section.p_offset + at);
    if (!entry) return std::nullopt;
    if (entry->d_tag == DT_NULL) break;
    entries.push_back(*entry);
  }
  return entries;
}

std::optional<uint64_t> value_of(const std::vector<Elf64_Dyn>& entries, Elf64_Sxword tag) {
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == tag) return entry.d_un.d_val;
  }
  return std::nullopt;
}

std::optional<std::string> string_at(Bytes table, uint64_t index) {
  if (index >= table.size()) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(table.data() + index);
  const size_t room = table.size() - index;
  const size_t length = strnlen(text, room);
  if (length == room) return std::nullopt;
  return std::string(text, length);
}

std::optional<Bytes> string_table(Bytes file, const Segments& segments,
                                  const std::vector<Elf64_Dyn>& entries) {
  const auto address = value_of(entries, DT_STRTAB);
  const auto size = value_of(entries, DT_STRSZ);
  if (!address || !size) return std::nullopt;
  const auto offset = offset_of(segments, *address);
  if (!offset || *offset > file.size() || file.size() - *offset < *size) return std::nullopt;
  return file.subspan(*offset, *size);
}

bool read_strings(Bytes table, const std::vector<Elf64_Dyn>& entries, ElfFacts& facts) {
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH) continue;
    auto text = string_at(table, entry.d_un.d_val);
    if (!text) return false;
    if (entry.d_tag == DT_NEEDED) facts.needed.push_back(std::move(*text));
    if (entry.d_tag == DT_RPATH) facts.rpath = std::move(*text);
    if (entry.d_tag == DT_RUNPATH) facts.runpath = std::move(*text);
  }
  return true;
}

}  // namespace

Result<ElfFacts, ElfError> read_elf(Bytes file) {
  if (file.size() < EI_NIDENT || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    return fail(ElfError::not_elf);
  }
  if (file[EI_CLASS] != std::byte{ELFCLASS64}) return fail(ElfError::not_64_bit);
  if (file[EI_DATA] != std::byte{ELFDATA2LSB}) return fail(ElfError::not_little_endian);
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return fail(ElfError::malformed);
  if (header->e_machine != kOwnMachine) return fail(ElfError::other_machine);

  const auto segments = read_segments(file, *header);
  if (!segments) return fail(ElfError::malformed);
  ElfFacts facts;
  facts.has_interpreter = segments->has_interpreter;
  if (!segments->dynamic) return facts;
  const auto entries = read_dynamic(file, *segments->dynamic);
  if (!entries) return fail(ElfError::malformed);
  if (!value_of(*entries, DT_STRTAB)) return facts;
  const auto table = string_table(file, *segments, *entries);
  if (!table || !read_strings(*table, *entries, facts)) return fail(ElfError::malformed);
  return facts;
}

const char* describe(ElfError error) {
  switch (error) {
    case ElfError::not_elf:
      return "is no ELF file";
    case ElfError::not_64_bit:
      return "is a 32-bit program, and weft's libraries are 64-bit; use a 64-bit build of it";
    case ElfError::not_little_endian:
      return "is a big-endian program, and weft's libraries are little-endian";
    case ElfError::other_machine:
      return "is made for another processor than this machine's and weft's libraries";
    case ElfError::malformed:
      return "is a damaged ELF file: a table in it leads out of the file; install it again";
  }
  return "";
}

}  // namespace weft::kit
