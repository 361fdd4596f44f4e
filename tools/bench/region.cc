#include "bench/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

constexpr uint64_t kUsual = 4 << 20;

void write_pattern(std::byte* to, uint64_t size) {
  SeededRandom random{0x77656674};
  while (size > 0) {
    const uint64_t word = random.next();
    const uint64_t n = std::min<uint64_t>(size, sizeof word);
    std::memcpy(to, &word, n);
    to += n;
    size -= n;
  }
}

}  // namespace

Region::Region(uint64_t message, uint64_t slots)
    : slot_(message), slots_(slots > 0 ? slots : std::max<uint64_t>(kUsual / message, 1)) {
  void* p = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw kit::system_failure("memory for the messages");
  data_ = static_cast<std::byte*>(p);
}

Region::~Region() {
  ::munmap(data_, size());
}

void Region::fill() {
  write_pattern(data_, size());
}

void Region::clear() {
  std::memset(data_, 0, size());
}

bool Region::holds(uint64_t first, uint64_t count) const {
  std::vector<std::byte> expected(size());
  write_pattern(expected.data(), size());
  if (count < slots_) {
    const uint64_t begin = first % slots_;
    for (uint64_t slot = 0; slot < slots_; ++slot) {
      const bool written = (slot + slots_ - begin) % slots_ < count;
      if (!written) std::memset(expected.data() + slot * slot_, 0, slot_);
    }
  }
  return std::memcmp(data_, expected.data(), size()) == 0;
}

bool Region::holds_slot_of(const Region& other, uint64_t slot) const {
  return std::memcmp(data_ + slot * slot_, other.data_ + slot * slot_, slot_) == 0;
}

void Region::clear_slot(uint64_t slot) {
  std::memset(data_ + slot * slot_, 0, slot_);
}

void Region::fill_alike() {
  for (uint64_t slot = 0; slot < slots_; ++slot) write_pattern(data_ + slot * slot_, slot_);
}

bool Region::holds_nothing_else() const {
  std::vector<std::byte> expected(slot_);
  write_pattern(expected.data(), slot_);
  for (uint64_t i = 0; i < size(); ++i) {
    if (data_[i] != std::byte{0} && data_[i] != expected[i % slot_]) return false;
  }
  return true;
}

}  // namespace weft::bench
