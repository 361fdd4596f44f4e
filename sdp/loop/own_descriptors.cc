#include "sdp/loop/own_descriptors.h"

#include <bit>

namespace weft::sdp {

void OwnDescriptors::add(int fd) {
  const auto n = static_cast<unsigned>(fd);
  if (n < kMost) words[n / kBits].fetch_or(uint64_t{1} << n % kBits, std::memory_order_relaxed);
}

void OwnDescriptors::drop(int fd) {
  if (has(fd)) {
    const auto n = static_cast<unsigned>(fd);
    words[n / kBits].fetch_and(~(uint64_t{1} << n % kBits), std::memory_order_relaxed);
  }
}

unsigned OwnDescriptors::next(unsigned first) {
  while (first < kMost) {
    const uint64_t rest = words[first / kBits].load(std::memory_order_relaxed) >> first % kBits;
    if (rest != 0) return first + static_cast<unsigned>(std::countr_zero(rest));
    first = (first / kBits + 1) * kBits;
  }
  return kMost;
}

void OwnDescriptors::forget_all() {
  for (auto& word : words) word.store(0, std::memory_order_relaxed);
}

}  // namespace weft::sdp
