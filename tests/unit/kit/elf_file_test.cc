#include "kit/elf_file.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "kit/program.h"

namespace weft::kit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#else
constexpr Elf64_Half kMachine = EM_AARCH64;
#endif

// A program file that is nothing but headers: ELF header, segments, dynamic section, its strings.
struct ElfFile {
  static constexpr uint64_t kAddress = 0x400000;
  static constexpr size_t kPhdrs = sizeof(Elf64_Ehdr);
  static constexpr size_t kDynamic = kPhdrs + 3 * sizeof(Elf64_Phdr);

  std::vector<std::byte> bytes;

  explicit ElfFile(const std::vector<std::pair<Elf64_Sxword, std::string>>& strings) {
    std::string table(1, '\0');
    std::vector<Elf64_Dyn> entries;
    for (const auto& [tag, text] : strings) {
      entries.push_back({tag, {table.size()}});
      table += text + '\0';
    }
    const size_t table_at = kDynamic + (entries.size() + 3) * sizeof(Elf64_Dyn);
    entries.push_back({DT_STRTAB, {kAddress + table_at}});
    entries.push_back({DT_STRSZ, {table.size()}});
    entries.push_back({DT_NULL, {0}});
    bytes.resize(table_at + table.size());

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = kMachine;
    header.e_phoff = kPhdrs;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    Elf64_Phdr load{.p_type = PT_LOAD, .p_vaddr = kAddress, .p_filesz = bytes.size()};
    Elf64_Phdr interpreter{.p_type = PT_INTERP};
    Elf64_Phdr dynamic{.p_type = PT_DYNAMIC,
                       .p_offset = kDynamic,
                       .p_vaddr = kAddress + kDynamic,
                       .p_filesz = entries.size() * sizeof(Elf64_Dyn)};
    put(0, header);
    put(kPhdrs, interpreter);
    put(kPhdrs + sizeof load, load);
    put(kPhdrs + 2 * sizeof load, dynamic);
    for (size_t i = 0; i < entries.size(); ++i) put(kDynamic + i * sizeof(Elf64_Dyn), entries[i]);
    std::memcpy(bytes.data() + table_at, table.data(), table.size());
  }

  template <class T>
  void put(size_t at, const T& value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  template <class T>
  T get(size_t at) const {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  Elf64_Dyn entry(size_t i) const { return get<Elf64_Dyn>(kDynamic + i * sizeof(Elf64_Dyn)); }
};

ElfFile program_with_rpath() {
  return ElfFile(
      {{DT_NEEDED, "libibverbs.so.1"}, {DT_RPATH, "/opt/lib"}, {DT_NEEDED, "libc.so.6"}});
}

ElfError error_of(const ElfFile& file) {
  const auto facts = read_elf(file.bytes);
  EXPECT_FALSE(facts.ok());
  return facts.ok() ? ElfError{0xff} : facts.error();
}

TEST(ReadElf, FindsNeededAndRpath) {
  const auto facts = read_elf(program_with_rpath().bytes);
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->has_interpreter);
  EXPECT_THAT(facts->needed, ElementsAre("libibverbs.so.1", "libc.so.6"));
  EXPECT_EQ(facts->rpath, "/opt/lib");
  EXPECT_EQ(facts->runpath, std::nullopt);
  EXPECT_TRUE(facts->rpath_counts());
}

TEST(ReadElf, RunpathSwitchesRpathOff) {
  const auto facts = read_elf(ElfFile({{DT_RPATH, "/a"}, {DT_RUNPATH, "/b"}}).bytes);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->runpath, "/b");
  EXPECT_FALSE(facts->rpath_counts());
}

TEST(ReadElf, RunpathAlone) {
  const auto facts = read_elf(ElfFile({{DT_RUNPATH, "/b"}}).bytes);
  ASSERT_TRUE(facts.ok());
  EXPECT_FALSE(facts->rpath_counts());
}

TEST(ReadElf, EntriesAfterNullDoNotCount) {
  ElfFile file = program_with_rpath();
  Elf64_Dyn entry = file.entry(2);
  entry.d_tag = DT_NULL;
  file.put(ElfFile::kDynamic + 2 * sizeof entry, entry);
  // The string table's entries lie behind it too, and without a table there are no strings to name.
  const auto facts = read_elf(file.bytes);
  ASSERT_TRUE(facts.ok());
  EXPECT_THAT(facts->needed, IsEmpty());
}

TEST(ReadElf, StaticProgramHasNoInterpreter) {
  ElfFile file = program_with_rpath();
  auto segment = file.get<Elf64_Phdr>(ElfFile::kPhdrs);
  segment.p_type = PT_NOTE;
  file.put(ElfFile::kPhdrs, segment);
  const auto facts = read_elf(file.bytes);
  ASSERT_TRUE(facts.ok());
  EXPECT_FALSE(facts->has_interpreter);
}

TEST(ReadElf, RefusesWhatIsNoElfOfThisMachine) {
  ElfFile file = program_with_rpath();
  file.bytes[0] = std::byte{'#'};
  EXPECT_EQ(error_of(file), ElfError::not_elf);

  file = program_with_rpath();
  file.bytes[EI_CLASS] = std::byte{ELFCLASS32};
  EXPECT_EQ(error_of(file), ElfError::not_64_bit);

  file = program_with_rpath();
  file.bytes[EI_DATA] = std::byte{ELFDATA2MSB};
  EXPECT_EQ(error_of(file), ElfError::not_little_endian);

  file = program_with_rpath();
  file.put(offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_S390});
  EXPECT_EQ(error_of(file), ElfError::other_machine);

  EXPECT_EQ(read_elf({}).error(), ElfError::not_elf);
}

TEST(ReadElf, EveryErrorHasItsSentence) {
  EXPECT_THAT(describe(ElfError::not_elf), HasSubstr("no ELF"));
  EXPECT_THAT(describe(ElfError::not_64_bit), HasSubstr("32-bit"));
  EXPECT_THAT(describe(ElfError::not_little_endian), HasSubstr("big-endian"));
  EXPECT_THAT(describe(ElfError::other_machine), HasSubstr("another processor"));
  EXPECT_THAT(describe(ElfError::malformed), HasSubstr("damaged"));
}

TEST(ReadElf, TableOutsideOfFile) {
  ElfFile file = program_with_rpath();
  file.put(offsetof(Elf64_Ehdr, e_phoff), Elf64_Off{UINT64_MAX - 8});
  EXPECT_EQ(error_of(file), ElfError::malformed);

  file = program_with_rpath();
  auto dynamic = file.get<Elf64_Phdr>(ElfFile::kPhdrs + 2 * sizeof(Elf64_Phdr));
  dynamic.p_offset = file.bytes.size() - 8;
  file.put(ElfFile::kPhdrs + 2 * sizeof dynamic, dynamic);
  EXPECT_EQ(error_of(file), ElfError::malformed);

  for (const uint64_t address : {uint64_t{0}, ElfFile::kAddress - 1, UINT64_MAX}) {
    file = program_with_rpath();
    file.put(ElfFile::kDynamic + 3 * sizeof(Elf64_Dyn), Elf64_Dyn{DT_STRTAB, {address}});
    EXPECT_EQ(error_of(file), ElfError::malformed) << std::hex << address;
  }
  file = program_with_rpath();
  file.put(ElfFile::kDynamic + 4 * sizeof(Elf64_Dyn), Elf64_Dyn{DT_STRSZ, {UINT64_MAX}});
  EXPECT_EQ(error_of(file), ElfError::malformed);
}

TEST(ReadElf, StringOutsideOfTable) {
  ElfFile file = program_with_rpath();
  file.put(ElfFile::kDynamic, Elf64_Dyn{DT_NEEDED, {file.bytes.size()}});
  EXPECT_EQ(error_of(file), ElfError::malformed);

  file = program_with_rpath();
  file.bytes.back() = std::byte{'x'};  // the last string loses its end
  EXPECT_EQ(error_of(file), ElfError::malformed);
}

// Whatever the bytes say, read_elf reads none outside of them; AddressSanitizer watches.
TEST(ReadElf, SurvivesAnyTruncationAndDamage) {
  const ElfFile whole = program_with_rpath();
  for (size_t size = 0; size < whole.bytes.size(); ++size) {
    const std::vector<std::byte> cut(whole.bytes.begin(),
                                     whole.bytes.begin() + static_cast<long>(size));
    EXPECT_FALSE(read_elf(cut).ok()) << size;
  }
  SeededRandom random(7);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> damaged = whole.bytes;
    for (int hits = 0; hits < 3; ++hits) {
      damaged[random.next() % damaged.size()] = static_cast<std::byte>(random.next());
    }
    accepted += read_elf(damaged).ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20'000);
}

TEST(InspectProgram, ReadsWhatTheLinkerWrote) {
  const auto rpath = inspect_program(FIXTURES "/program_rpath");
  ASSERT_TRUE(rpath && rpath->ok());
  EXPECT_TRUE((*rpath)->rpath_counts());
  EXPECT_EQ((*rpath)->rpath, FIXTURES "/system");
  EXPECT_THAT((*rpath)->needed, ElementsAre("libibverbs.so.1", "librdmacm.so.1", "libc.so.6"));

  const auto runpath = inspect_program(FIXTURES "/program_runpath");
  ASSERT_TRUE(runpath && runpath->ok());
  EXPECT_FALSE((*runpath)->rpath_counts());
  EXPECT_EQ((*runpath)->runpath, FIXTURES "/system");

  const auto linked_statically = inspect_program(FIXTURES "/program_static");
  ASSERT_TRUE(linked_statically && linked_statically->ok());
  EXPECT_FALSE((*linked_statically)->has_interpreter);
}

TEST(InspectProgram, NothingForWhatCannotBeRead) {
  EXPECT_FALSE(inspect_program("/no/such/file").has_value());
  EXPECT_FALSE(inspect_program("/").has_value());
}

}  // namespace
}  // namespace weft::kit
