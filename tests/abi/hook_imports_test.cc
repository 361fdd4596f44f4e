// An object's imports where the ELF file is as it should be, and where it is not
// (abi/ibverbs/imports.h). The object is made here, byte by byte.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "abi/ibverbs/imports.h"

namespace weft::test {
namespace {

void target() {}
void* replacement(std::string_view name) {
  return name == "stat" ? reinterpret_cast<void*>(&target) : nullptr;
}

// One segment of two pages between pages that nobody may touch.
class Image {
 public:
  struct Content {
    std::array<ElfW(Dyn), 10> dynamic;
    std::array<ElfW(Sym), 3> symbols;
    std::array<ElfW(Rela), 3> calls;
    std::array<char, 32> strings;
    std::array<void*, 3> slots;
  };

  Image() : page_(static_cast<size_t>(getpagesize())) {
    all_ = static_cast<std::byte*>(
        mmap(nullptr, 4 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    make();
  }
  ~Image() { munmap(all_, 4 * page_); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  void make() {
    ASSERT_EQ(mprotect(base(), 2 * page_, PROT_READ | PROT_WRITE), 0);
    std::memset(base(), 0, 2 * page_);
    Content& c = content();
    const auto at = [](const auto& part) { return reinterpret_cast<uintptr_t>(&part); };
    const auto entry = [](ElfW(Sxword) tag, uintptr_t value) {
      ElfW(Dyn) d{};
      d.d_tag = tag;
      d.d_un.d_val = value;
      return d;
    };
    c.dynamic = {entry(DT_SYMTAB, at(c.symbols)),
                 entry(DT_STRTAB, at(c.strings)),
                 entry(DT_STRSZ, sizeof c.strings),
                 entry(DT_JMPREL, at(c.calls)),
                 entry(DT_PLTRELSZ, sizeof c.calls),
                 entry(DT_PLTREL, DT_RELA),
                 entry(DT_RELAENT, sizeof(ElfW(Rela))),
                 entry(DT_NEEDED, 13),
                 entry(DT_NULL, 0)};
    std::memcpy(c.strings.data(), "\0stat\0access\0liba.so.1", 23);
    c.symbols[1].st_name = 1;
    c.symbols[2].st_name = 6;
    for (size_t i = 0; i < c.calls.size(); ++i) {
#if defined(__aarch64__)
      c.calls[i].r_info = ELF64_R_INFO(i, R_AARCH64_JUMP_SLOT);
#else
      c.calls[i].r_info = ELF64_R_INFO(i, R_X86_64_JUMP_SLOT);
#endif
      c.calls[i].r_offset = at(c.slots[i]) - address();
      c.slots[i] = this;
    }
    headers = {};
    headers[0].p_type = PT_LOAD;
    headers[0].p_flags = PF_R | PF_W;
    headers[0].p_memsz = 2 * page_;
    headers[1].p_type = PT_DYNAMIC;
    headers[1].p_vaddr = at(c.dynamic) - address();
    headers[1].p_memsz = sizeof c.dynamic;
    headers[2].p_type = PT_GNU_RELRO;
    headers[2].p_vaddr = 0;
    headers[2].p_memsz = page_;
  }

  void replace() const {
    abi::replace_imports(info(), replacement);
  }
  bool needs(std::string_view beginning) const {
    return abi::needs_library(info(), beginning);
  }
  void writable() const {
    ASSERT_EQ(mprotect(base(), 2 * page_, PROT_READ | PROT_WRITE), 0);
  }

  Content& content() const {
    return *reinterpret_cast<Content*>(base());
  }
  std::byte* base() const {
    return all_ + page_;
  }
  uintptr_t address() const {
    return reinterpret_cast<uintptr_t>(base());
  }
  size_t page() const {
    return page_;
  }
  bool replaced(size_t slot) const {
    return content().slots[slot] == reinterpret_cast<void*>(&target);
  }

  std::array<ElfW(Phdr), 3> headers{};

 private:
  dl_phdr_info info() const {
    dl_phdr_info info{};
    info.dlpi_addr = address();
    info.dlpi_name = "made";
    info.dlpi_phdr = headers.data();
    info.dlpi_phnum = headers.size();
    return info;
  }

  size_t page_;
  std::byte* all_ = nullptr;
};

TEST(Imports, OnlyWhatIsAskedForIsReplaced) {
  const Image image;
  image.replace();
  EXPECT_EQ(image.content().slots[0], &image);
  EXPECT_TRUE(image.replaced(1));
  EXPECT_EQ(image.content().slots[2], &image);
  image.replace();
  EXPECT_TRUE(image.replaced(1));
}

TEST(Imports, KnowsTheLibrariesThatAreNeeded) {
  const Image image;
  for (const char* beginning : {"liba.so", "liba.so.1", "lib", ""}) {
    EXPECT_TRUE(image.needs(beginning)) << beginning;
  }
  for (const char* other : {"liba.so.10", "libb", "iba.so", "stat", "made"}) {
    EXPECT_FALSE(image.needs(other)) << other;
  }
  EXPECT_FALSE(image.replaced(1)) << "nothing is changed";
  for (ElfW(Dyn) & d : image.content().dynamic) {
    if (d.d_tag == DT_NEEDED) d.d_un.d_val = sizeof(Image::Content::strings);
  }
  EXPECT_FALSE(image.needs("")) << "its name is nowhere";
}

TEST(Imports, EntriesThatTheLoaderLeftRelativeAreFollowed) {
  const Image image;
  for (ElfW(Dyn) & d : image.content().dynamic) {
    if (d.d_un.d_ptr > image.address()) d.d_un.d_ptr -= image.address();
  }
  image.replace();
  EXPECT_TRUE(image.replaced(1));
}

TEST(Imports, FunctionsThatTheObjectDefinesItselfAreItsOwn) {
  const Image image;
  image.content().symbols[1].st_shndx = 5;
  image.replace();
  EXPECT_FALSE(image.replaced(1));
}

TEST(Imports, WithoutTheTablesNothingHappens) {
  for (const ElfW(Sxword) tag : {DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_JMPREL, DT_PLTRELSZ}) {
    const Image image;
    for (ElfW(Dyn) & d : image.content().dynamic) {
      if (d.d_tag == tag) d.d_tag = DT_DEBUG;
    }
    image.replace();
    EXPECT_FALSE(image.replaced(1)) << tag;
  }
}

TEST(Imports, OtherFormsOfRelocationsAreLeft) {
  for (const ElfW(Sxword) tag : {DT_PLTREL, DT_RELAENT}) {
    const Image image;
    for (ElfW(Dyn) & d : image.content().dynamic) {
      if (d.d_tag == tag) ++d.d_un.d_val;
    }
    image.replace();
    EXPECT_FALSE(image.replaced(1)) << tag;
  }
}

// Whoever follows a damaged number leaves the segment, and dies on the pages around it.
TEST(Imports, DamageAnywhereIsSurvived) {
  Image image;
  std::mt19937_64 random{7};
  const std::array<uint64_t, 8> odd = {0,
                                       1,
                                       8,
                                       UINT64_MAX,
                                       UINT64_MAX - 7,
                                       uint64_t{1} << 63,
                                       image.address() + 2 * image.page() - 1,
                                       image.address() - 8};
  size_t still = 0;
  size_t needed = 0;
  for (int run = 0; run < 20000; ++run) {
    image.make();
    const auto words = [](auto& part) { return reinterpret_cast<uint64_t*>(&part); };
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      const uint64_t value = random() % 2 == 0 ? odd[random() % odd.size()] : random();
      if (random() % 4 == 0) {
        // The segments themselves are what the kernel has mapped; only the others may lie.
        auto& header = image.headers[1 + random() % 2];
        words(header)[random() % (sizeof header / 8)] = value;
      } else {
        words(image.content())[random() % (offsetof(Image::Content, slots) / 8)] = value;
      }
    }
    if (image.needs("liba.so")) ++needed;
    image.replace();
    if (image.replaced(1)) ++still;
    image.writable();
  }
  EXPECT_GT(still, 0U) << "the damage was never harmless";
  EXPECT_GT(needed, 0U);
  EXPECT_LT(needed, 20000U);
  EXPECT_LT(still, 20000U) << "the damage was never felt";
}

}  // namespace
}  // namespace weft::test
