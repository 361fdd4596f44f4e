// Memory that a program has given back to the kernel, which puts the next large allocation there.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace weft::test {

class Unmapped {
 public:
  static constexpr size_t kSize = 1'000'000;

  Unmapped() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // whatever was freed before
#endif
    mapping_ = map(kMapped);
    std::memset(mapping_, 0x5a, kMapped);
  }
  ~Unmapped() {
    for (std::byte* p : others_) ::munmap(p, kSize);
  }
  Unmapped(const Unmapped&) = delete;
  Unmapped& operator=(const Unmapped&) = delete;

  // At the end of what go() unmaps.
  std::byte* begin() const {
    return mapping_ + kMapped - kSize;
  }
  void go() {
    EXPECT_EQ(::munmap(mapping_, kMapped), 0);
    // The kernel would take gaps at higher addresses first.
    while (true) {
      std::byte* const p = map(kSize);
      if (p >= mapping_ && p < mapping_ + kMapped) {
        EXPECT_EQ(::munmap(p, kSize), 0);
        return;
      }
      others_.push_back(p);
    }
  }

 private:
  // Whole pages, and less than a huge one, which the kernel would put at a multiple of its size.
  static constexpr size_t kMapped = 300 * 4096;
  static std::byte* map(size_t size) {
    void* const p =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(p, MAP_FAILED);
    return static_cast<std::byte*>(p);
  }
  std::byte* mapping_ = nullptr;
  std::vector<std::byte*> others_;
};

}  // namespace weft::test
