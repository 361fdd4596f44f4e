#include "mpa/tx_batch.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/append.h"
#include "tests/support/fault_catcher.h"
#include "tests/support/hex.h"
#include "tests/support/unmapped.h"

namespace weft::mpa {
namespace {

using test::Buffer;
using test::pattern;

Buffer bytes_of(const TxBatch& batch) {
  return test::joined(batch.pieces());
}

void stage(TxBatch& batch, Bytes bytes) {
  std::memcpy(batch.stage(bytes.size()), bytes.data(), bytes.size());
}

TEST(TxBatch, StagedBytesOfOneRunAreOnePiece) {
  TxBatch batch;
  EXPECT_TRUE(batch.empty());
  stage(batch, pattern(10, 1));
  stage(batch, pattern(20, 2));
  EXPECT_EQ(batch.pieces().size(), 1U);
  EXPECT_EQ(batch.bytes(), 30U);
  EXPECT_EQ(bytes_of(batch), test::join({pattern(10, 1), pattern(20, 2)}));
}

TEST(TxBatch, ReferredBytesStayWhereTheyAre) {
  TxBatch batch;
  Buffer payload = pattern(5000, 3);
  stage(batch, pattern(16, 1));
  batch.refer(payload.data(), payload.size());
  stage(batch, pattern(4, 2));
  ASSERT_EQ(batch.pieces().size(), 3U);
  EXPECT_EQ(batch.pieces()[1].iov_base, payload.data());
  payload[77] ^= std::byte{0xff};
  EXPECT_EQ(bytes_of(batch), test::join({pattern(16, 1), payload, pattern(4, 2)}));
}

TEST(TxBatch, AnEmptyReferenceLeavesNoPiece) {
  TxBatch batch;
  batch.refer(nullptr, 0);
  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(batch.pieces().empty());
}

TEST(TxBatch, ConsumedBytesGoFromTheFrontAtAnyPosition) {
  const Buffer payload = pattern(300, 3);
  const Buffer all = test::join({pattern(16, 1), payload, pattern(40, 2)});
  for (size_t first = 1; first < all.size(); ++first) {
    TxBatch batch;
    stage(batch, pattern(16, 1));
    batch.refer(payload.data(), payload.size());
    stage(batch, pattern(40, 2));
    batch.consumed(first);
    EXPECT_EQ(batch.bytes(), all.size() - first);
    EXPECT_EQ(bytes_of(batch), Buffer(all.begin() + static_cast<ptrdiff_t>(first), all.end()));
    batch.consumed(all.size() - first);
    EXPECT_TRUE(batch.empty());
    EXPECT_TRUE(batch.pieces().empty());
  }
}

TEST(TxBatch, WhatIsConsumedWholeFreesTheStaging) {
  TxBatch batch;
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(batch.has_room(TxBatch::kStaging, 0, TxBatch::kStaging)) << round;
    stage(batch, pattern(TxBatch::kStaging, static_cast<uint64_t>(round)));
    EXPECT_FALSE(batch.has_room(1, 0, 1));
    batch.consumed(batch.bytes());
  }
}

TEST(TxBatch, RoomEndsWithStagingPiecesOrBytes) {
  TxBatch staging;
  stage(staging, pattern(TxBatch::kStaging - 100, 1));
  EXPECT_TRUE(staging.has_room(100, 0, 100));
  EXPECT_FALSE(staging.has_room(101, 0, 101));

  TxBatch pieces;
  const Buffer payload = pattern(8, 1);
  size_t count = 0;
  for (; pieces.has_room(1, 1, 9); ++count) {
    stage(pieces, pattern(1, 2));
    pieces.refer(payload.data(), payload.size());
  }
  EXPECT_GT(count, 400U);
  EXPECT_LE(pieces.pieces().size(), TxBatch::kMostPieces);

  TxBatch bytes;
  const Buffer large = pattern(TxBatch::kMostBytes, 1);
  EXPECT_TRUE(bytes.has_room(100, 1, 2 * TxBatch::kMostBytes)) << "the first FPDU always fits";
  bytes.refer(large.data(), large.size() - 10);
  EXPECT_TRUE(bytes.has_room(1, 1, 10));
  EXPECT_FALSE(bytes.has_room(1, 1, 11));
}

TEST(TxBatch, DetachedBytesAreItsOwn) {
  TxBatch batch;
  Buffer payload = pattern(3000, 3);
  stage(batch, pattern(16, 1));
  batch.refer(payload.data(), payload.size());
  stage(batch, pattern(8, 2));
  batch.consumed(100);
  const Buffer expected = bytes_of(batch);
  batch.detach();
  std::fill(payload.begin(), payload.end(), std::byte{0xee});
  EXPECT_EQ(bytes_of(batch), expected);
  batch.consumed(50);
  batch.detach();
  EXPECT_EQ(bytes_of(batch), Buffer(expected.begin() + 50, expected.end()));
  batch.consumed(batch.bytes());
  batch.detach();
  EXPECT_TRUE(batch.empty());
}

// The place for the copy might be where the memory was, and then it would seem to be there.
TEST(TxBatch, UnmappedMemoryIsLostWhateverIsAllocated) {
  const test::FaultCatcher faults;
  TxBatch batch;
  test::Unmapped unmapped;
  stage(batch, pattern(16, 1));
  batch.refer(unmapped.begin(), test::Unmapped::kSize);
  unmapped.go();
  batch.detach();
  EXPECT_EQ(batch.lost(), unmapped.begin());
  EXPECT_EQ(bytes_of(batch), pattern(16, 1));
}

TEST(TxBatch, DetachedOnceMoreWhenSomethingWasAdded) {
  TxBatch batch;
  Buffer first = pattern(300, 1);
  Buffer second = pattern(200, 2);
  batch.refer(first.data(), first.size());
  batch.detach();
  batch.refer(second.data(), second.size());
  batch.consumed(300);
  batch.detach();
  std::fill(second.begin(), second.end(), std::byte{0xee});
  EXPECT_EQ(bytes_of(batch), pattern(200, 2));
}

TEST(TxBatch, AClearedBatchIsAsNew) {
  TxBatch batch;
  const Buffer payload = pattern(100, 1);
  stage(batch, pattern(TxBatch::kStaging, 2));
  batch.refer(payload.data(), payload.size());
  batch.clear();
  EXPECT_TRUE(batch.empty());
  stage(batch, pattern(TxBatch::kStaging, 3));
  EXPECT_EQ(bytes_of(batch), pattern(TxBatch::kStaging, 3));
}

// Against the plain list of bytes that it stands for.
TEST(TxBatch, BehavesLikeAStringOfBytes) {
  const Buffer payload = pattern(70'000, 9);
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SeededRandom random(seed);
    TxBatch batch;
    Buffer model;
    for (int step = 0; step < 200; ++step) {
      const size_t n = 1 + random.next() % 2000;
      switch (random.next() % 4) {
        case 0: {
          if (!batch.has_room(n, 0, n)) break;
          stage(batch, Bytes{payload}.first(n));
          model.insert(model.end(), payload.begin(), payload.begin() + static_cast<ptrdiff_t>(n));
          break;
        }
        case 1: {
          const size_t at = random.next() % (payload.size() - n);
          if (!batch.has_room(0, 1, n)) break;
          batch.refer(payload.data() + at, n);
          model.insert(model.end(), payload.begin() + static_cast<ptrdiff_t>(at),
                       payload.begin() + static_cast<ptrdiff_t>(at + n));
          break;
        }
        case 2: {
          if (model.empty()) break;
          const size_t gone = 1 + random.next() % model.size();
          batch.consumed(gone);
          model.erase(model.begin(), model.begin() + static_cast<ptrdiff_t>(gone));
          break;
        }
        default:
          if (random.next() % 8 == 0) batch.detach();
      }
      ASSERT_EQ(batch.bytes(), model.size()) << "seed " << seed << " step " << step;
      ASSERT_TRUE(bytes_of(batch) == model) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace weft::mpa
