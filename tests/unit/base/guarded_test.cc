#include "base/guarded.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "base/crc32c_fold.h"
#include "tests/support/fault_catcher.h"

namespace weft {
namespace {

// Memory with a page in the middle that cannot be reached.
class Hole {
 public:
  explicit Hole(int protection)
      : begin_(static_cast<std::byte*>(
            ::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(begin_, 0x5a, size());
    ::mprotect(before(), page(), protection);
  }
  ~Hole() { ::munmap(begin_, size()); }
  Hole(const Hole&) = delete;
  Hole& operator=(const Hole&) = delete;

  std::byte* before() const { return begin_ + kSide * page(); }        // its end
  std::byte* behind() const { return begin_ + (kSide + 1) * page(); }  // its beginning

 private:
  static constexpr size_t kSide = 20;  // pages
  static size_t page() { return static_cast<size_t>(::getpagesize()); }
  static size_t size() { return (2 * kSide + 1) * page(); }
  std::byte* begin_;
};

class Guarded : public testing::TestWithParam<GuardedCopy> {
  const test::FaultCatcher faults_;
};
bool copy_and_sum(void* to, const void* from, size_t n) {
  Crc32c crc;
  return copy_with_crc(static_cast<std::byte*>(to), {static_cast<const std::byte*>(from), n}, crc);
}
bool copy_and_sum_by_256_bits(void* to, const void* from, size_t n) {
  Crc32c crc;
  auto* const t = static_cast<std::byte*>(to);
  const Bytes bytes{static_cast<const std::byte*>(from), n};
  if (n < fold::kLeast) return copy_then_crc(t, bytes, crc);
  uint32_t state = 0;
  return fold::by_256_bits()->copy(state, t, bytes.data(), n);
}

// A processor that prefers another way to sum has copy_and_sum_by_256_bits() nevertheless.
std::vector<GuardedCopy> ways() {
  std::vector<GuardedCopy> all{copy_guarded, copy_guarded_anywhere, hand_over_guarded,
                               copy_and_sum};
  if (fold::by_256_bits() != nullptr) all.push_back(copy_and_sum_by_256_bits);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ways, Guarded, testing::ValuesIn(ways()), [](const auto& p) {
  return p.param == copy_guarded            ? "Best"
         : p.param == copy_guarded_anywhere ? "Anywhere"
         : p.param == hand_over_guarded     ? "HandOver"
         : p.param == copy_and_sum          ? "AndSum"
                                            : "AndSumBy256Bits";
});

std::vector<std::byte> pattern(size_t n) {
  std::vector<std::byte> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>(i * 7 + (i >> 8) + 1);
  return v;
}

// Up to the largest payload of an FPDU; each way of copying is for other ones.
std::vector<size_t> lengths() {
  std::vector<size_t> all{4095, 4096, 4097, 5000, 16'384, 61'440};
  for (size_t n = 1; n < 1500; n += 1 + n / 40) all.push_back(n);
  return all;
}

TEST_P(Guarded, CopiesEveryLengthAndNothingElse) {
  const auto from = pattern(70'000);
  auto all = lengths();
  for (size_t n = 0; n <= 600; ++n) all.push_back(n);
  for (const size_t n : all) {
    for (const size_t at : {size_t{0}, size_t{1}, size_t{9}, size_t{63}}) {
      std::vector<std::byte> to(n + 200, std::byte{0xcc});
      ASSERT_TRUE(GetParam()(&to[at + 1], &from[at], n));
      ASSERT_EQ(std::memcmp(&to[at + 1], &from[at], n), 0) << n;
      for (size_t i = 0; i < to.size(); ++i) {
        if (i <= at || i > at + n) {
          ASSERT_EQ(to[i], std::byte{0xcc}) << n << ' ' << i;
        }
      }
    }
  }
  const auto large = pattern(100'000);
  std::vector<std::byte> to(large.size());
  ASSERT_TRUE(GetParam()(to.data(), large.data(), large.size()));
  EXPECT_TRUE(to == large);
}

TEST_P(Guarded, SaysThatOneByteCannotBeRead) {
  const Hole hole(PROT_NONE);
  std::vector<std::byte> to(70'000);
  for (const size_t n : lengths()) {
    EXPECT_TRUE(GetParam()(to.data(), hole.before() - n, n)) << n;
    EXPECT_TRUE(GetParam()(to.data(), hole.behind(), n)) << n;
    EXPECT_FALSE(GetParam()(to.data(), hole.before() - n + 1, n)) << n;
    EXPECT_FALSE(GetParam()(to.data(), hole.behind() - 1, n)) << n;
  }
}

TEST_P(Guarded, SaysThatOneByteCannotBeWritten) {
  const auto from = pattern(70'000);
  for (const int protection : {PROT_NONE, PROT_READ}) {
    const Hole hole(protection);
    for (const size_t n : lengths()) {
      EXPECT_TRUE(GetParam()(hole.before() - n, from.data(), n)) << n;
      EXPECT_EQ(std::memcmp(hole.before() - n, from.data(), n), 0) << n;
      EXPECT_FALSE(GetParam()(hole.before() - n + 1, from.data(), n)) << n;
      EXPECT_FALSE(GetParam()(hole.behind() - 1, from.data(), n)) << n;
    }
  }
}

TEST_P(Guarded, SignalsAreAsBeforeAfterAFault) {
  sigset_t before;
  sigset_t after;
  const Hole hole(PROT_NONE);
  std::byte b{};
  ::pthread_sigmask(SIG_BLOCK, nullptr, &before);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(GetParam()(&b, hole.before(), 1));
  ::pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int n = 1; n < 32; ++n) EXPECT_EQ(sigismember(&before, n), sigismember(&after, n)) << n;
}

TEST_P(Guarded, ExchangesAsTheProcessorDoes) {
  uint64_t word = 5;
  uint64_t expected = 4;
  EXPECT_EQ(compare_exchange_guarded(&word, expected, 9), Exchange::other_value);
  EXPECT_EQ(expected, 5U);
  EXPECT_EQ(word, 5U);
  EXPECT_EQ(compare_exchange_guarded(&word, expected, 9), Exchange::done);
  EXPECT_EQ(word, 9U);
  const Hole hole(PROT_READ);
  EXPECT_EQ(compare_exchange_guarded(reinterpret_cast<uint64_t*>(hole.before()), expected, 9),
            Exchange::unreachable);
}

TEST(ReadableGuarded, IsWhatCanBeReadWhole) {
  const test::FaultCatcher faults;
  const Hole hole{PROT_NONE};
  EXPECT_TRUE(readable_guarded(hole.before() - 10'000, 10'000));
  EXPECT_FALSE(readable_guarded(hole.before() - 10'000, 10'001));
  EXPECT_FALSE(readable_guarded(hole.behind() - 1, 10'000));
  EXPECT_TRUE(readable_guarded(hole.behind(), 10'000));
  EXPECT_FALSE(readable_guarded(hole.before() - 10'000, 30'000));
  EXPECT_TRUE(readable_guarded(nullptr, 0));
}

}  // namespace
}  // namespace weft
