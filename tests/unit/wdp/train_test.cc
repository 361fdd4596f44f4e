#include "wdp/train.h"

#include <gtest/gtest.h>

#include "tests/support/append.h"
#include "tests/support/fault_catcher.h"
#include "tests/support/host.h"
#include "tests/support/unmapped.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;

const Path kPath{.to = {Gid::from_ipv4(0x0a000001), 5000}};

void add(Train& t, const Buffer& d, size_t staged) {
  t.begin(d.size(), kPath);
  std::copy_n(d.begin(), staged, t.stage(staged));
  t.refer(d.data() + staged, d.size() - staged);
}
std::vector<Buffer> datagrams(const Train& t) {
  std::vector<Buffer> all;
  t.each_datagram([&](std::span<const IoVec> pieces) {
    Buffer& d = all.emplace_back();
    test::append(d, pieces);
  });
  return all;
}

TEST(Train, OneDatagramMayBeAsLargeAsUdpAllows) {
  Train t;
  EXPECT_TRUE(t.empty());
  EXPECT_TRUE(t.takes(65507, kPath));
  EXPECT_FALSE(t.takes(65508, kPath));
  const Buffer d = pattern_bytes(65507, 1);
  add(t, d, 48);
  EXPECT_EQ(t.datagrams(), 1U);
  EXPECT_EQ(t.segment_size(), 65507U);
  EXPECT_EQ(datagrams(t), std::vector<Buffer>{d});
  t.clear();
  EXPECT_TRUE(t.empty());
  EXPECT_TRUE(t.takes(1, kPath));
}

// spec/wdp 2.7: the short last segment of one message must end a train.
TEST(Train, TakesDatagramsOfOneSizeAndAShorterOneLast) {
  Train t;
  std::vector<Buffer> all;
  for (size_t i = 0; i < 5; ++i) all.push_back(pattern_bytes(1472, i));
  all.push_back(pattern_bytes(300, 9));
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(t.takes(all[i].size(), kPath));
    add(t, all[i], i % 2 == 0 ? all[i].size() : 48);
  }
  EXPECT_EQ(t.segment_size(), 1472U);
  EXPECT_EQ(t.bytes(), 5 * 1472 + 300U);
  EXPECT_EQ(t.datagrams(), 6U);
  EXPECT_EQ(datagrams(t), all);
  EXPECT_FALSE(t.takes(300, kPath));
  EXPECT_FALSE(t.takes(1, kPath));
}

TEST(Train, TakesNothingLargerNorAnotherWay) {
  Train t;
  add(t, pattern_bytes(100, 1), 100);
  EXPECT_TRUE(t.takes(100, kPath));
  EXPECT_FALSE(t.takes(101, kPath));
  Path other = kPath;
  other.to.port = 5001;
  EXPECT_FALSE(t.takes(100, other));
  other = kPath;
  other.traffic_class = 8;
  EXPECT_FALSE(t.takes(100, other));
  t.close();
  EXPECT_FALSE(t.takes(100, kPath));
}

TEST(Train, HoldsAtMost64DatagramsAnd65493Bytes) {
  Train small;
  size_t n = 0;
  while (small.takes(48, kPath)) {
    add(small, pattern_bytes(48, ++n), 48);
  }
  EXPECT_EQ(n, 64U);

  Train large;
  n = 0;
  while (large.takes(1472, kPath)) {
    add(large, pattern_bytes(1472, ++n), 1472);
  }
  EXPECT_EQ(n, 65493U / 1472);

  Train over_ipv6;
  Path path = kPath;
  path.to.address.raw[0] = 0x20;
  const size_t half = 65480 / 2;
  over_ipv6.begin(half, path);
  over_ipv6.stage(half);
  EXPECT_FALSE(over_ipv6.takes(half, path));
  EXPECT_TRUE(over_ipv6.takes(65473 - half, path));
}

TEST(Train, PiecesOfOneStagingGoTogether) {
  Train t;
  for (size_t i = 0; i < 10; ++i) add(t, pattern_bytes(200, i), 200);
  EXPECT_EQ(t.pieces().size(), 1U);
}

TEST(Train, DetachedItNeedsNobodysMemory) {
  Train t;
  std::vector<Buffer> all = {pattern_bytes(9000, 1), pattern_bytes(9000, 2), pattern_bytes(80, 3)};
  const std::vector<Buffer> before = all;
  for (const Buffer& d : all) add(t, d, 48);
  t.detach();
  for (Buffer& d : all) std::fill(d.begin(), d.end(), std::byte{0xee});
  EXPECT_EQ(datagrams(t), before);
  EXPECT_FALSE(t.takes(80, kPath));
  t.detach();
  EXPECT_EQ(datagrams(t), before);
  t.clear();
  t.detach();
  EXPECT_TRUE(t.empty());
}

// The place for the copy might be where the memory was, and then it would seem to be there.
TEST(Train, UnmappedMemoryIsLostWhateverIsAllocated) {
  const test::FaultCatcher faults;
  Train t;
  test::Unmapped unmapped;
  t.begin(test::Unmapped::kSize, kPath);
  t.refer(unmapped.begin(), test::Unmapped::kSize);
  unmapped.go();
  EXPECT_FALSE(t.detach());
  EXPECT_EQ(t.bytes(), 0U);
  EXPECT_FALSE(t.empty()) << "the loss is to be told of";
  t.clear();
  EXPECT_TRUE(t.empty());
}

TEST(Train, EndsBeforeTheDatagramWhoseMemoryIsGone) {
  const test::FaultCatcher faults;
  Train t;
  test::Unmapped unmapped;
  constexpr size_t kSize = 5000;
  const std::vector<Buffer> good{pattern_bytes(kSize, 1), pattern_bytes(kSize, 2)};
  for (const Buffer& d : good) add(t, d, 40);
  t.begin(kSize, kPath);
  std::copy_n(good[0].begin(), 40, t.stage(40));
  t.refer(unmapped.begin(), kSize - 40);
  add(t, good[0], 40);
  unmapped.go();
  EXPECT_FALSE(t.detach());
  EXPECT_TRUE(t.lost());
  EXPECT_EQ(t.datagrams(), 2U);
  EXPECT_EQ(datagrams(t), good);
  EXPECT_FALSE(t.detach()) << "nor the next time";
  EXPECT_EQ(datagrams(t), good);
}

}  // namespace
}  // namespace weft::wdp
