#include "rdmap/outbound_reads.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::rdmap {
namespace {

TEST(OutboundReads, AtMostOrdAtOnce) {
  OutboundReads reads(3, 1);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(reads.full());
    reads.add_read(i, Msn{i + 1}, 100);
  }
  EXPECT_TRUE(reads.full());
  EXPECT_EQ(reads.outstanding(), 3U);
  reads.pop_oldest();
  EXPECT_FALSE(reads.full());
  EXPECT_EQ(reads.limit(), 3U);
}

TEST(OutboundReads, ALimitWithinTheOrd) {
  OutboundReads reads(3, 1);
  reads.set_limit(1);
  EXPECT_FALSE(reads.full());
  reads.add_read(0, Msn{1}, 100);
  EXPECT_TRUE(reads.full());
  reads.set_limit(2);
  EXPECT_FALSE(reads.full());
  reads.add_read(1, Msn{2}, 100);
  reads.set_limit(1);
  reads.pop_oldest();
  EXPECT_TRUE(reads.full()) << "one is under way yet";
  reads.set_limit(100);
  EXPECT_EQ(reads.limit(), 3U);
}

// RFC 5040 section 5.5: responses come in the order of the requests.
TEST(OutboundReads, OldestFirst) {
  OutboundReads reads(4, 1);
  EXPECT_EQ(reads.oldest(), nullptr);
  reads.add_read(10, Msn{1}, 100);
  reads.add_atomic(11, Msn{2});
  EXPECT_EQ(reads.oldest()->request, 10U);
  EXPECT_FALSE(reads.oldest()->atomic);
  EXPECT_EQ(reads.oldest()->length, 100U);
  reads.pop_oldest();
  EXPECT_EQ(reads.oldest()->request, 11U);
  EXPECT_TRUE(reads.oldest()->atomic);
}

TEST(OutboundReads, FoundByMsn) {
  OutboundReads reads(4, 1);
  reads.add_read(10, Msn{0xffffffff}, 1);
  reads.add_read(11, Msn{0}, 1);
  ASSERT_NE(reads.find(Msn{0}), nullptr);
  EXPECT_EQ(reads.find(Msn{0})->request, 11U);
  EXPECT_EQ(reads.find(Msn{5}), nullptr);
}

// spec/rdmap 1.5: one-shot sink STags, none of which a registration ever gets
// (verbs/memory_table.h).
TEST(OutboundReads, EachReadHasASinkOfItsOwn) {
  OutboundReads reads(2, 0xdeadbeef);
  std::set<Stag> seen;
  for (uint32_t i = 0; i < 10'000; ++i) {
    const Stag sink = reads.add_read(i, Msn{i}, 1).sink;
    EXPECT_NE(sink.value() & 0x80000000U, 0U);
    seen.insert(sink);
    reads.pop_oldest();
  }
  EXPECT_EQ(seen.size(), 10'000U);
  EXPECT_NE(OutboundReads(1, 1).add_read(0, Msn{1}, 1).sink,
            OutboundReads(1, 2).add_read(0, Msn{1}, 1).sink);
}

TEST(OutboundReads, AtomicsHaveIdsOfTheirOwn) {
  OutboundReads reads(2, 7);
  const uint32_t first = reads.add_atomic(0, Msn{1}).request_id;
  const uint32_t second = reads.add_atomic(1, Msn{2}).request_id;
  EXPECT_NE(first, second);
}

// A Responder may choose the RTR read and allow no other (spec/mpa 2.4).
TEST(OutboundReads, TheRtrReadHasRoomWhereNoReadIsAllowed) {
  OutboundReads reads(0, 1);
  EXPECT_TRUE(reads.full());
  EXPECT_EQ(reads.limit(), 0U);
  reads.add_read(OutboundRead::kNoRequest, Msn{1}, 0);
  EXPECT_EQ(reads.outstanding(), 1U);
  EXPECT_EQ(reads.oldest()->request, OutboundRead::kNoRequest);
  reads.pop_oldest();
  EXPECT_EQ(reads.oldest(), nullptr);
}

}  // namespace
}  // namespace weft::rdmap
