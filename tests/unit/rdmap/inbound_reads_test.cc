#include "rdmap/inbound_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/support/host.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using wire::Refusal;
namespace term = wire::term;

InboundRead of_size(uint32_t size) {
  return {.request = {.size = size}};
}

TEST(InboundReads, AnsweredInTheOrderOfTheRequests) {
  InboundReads reads(3);
  for (uint32_t round = 0; round < 10; ++round) {
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(reads.full());
      reads.push_back(of_size(round * 10 + i));
    }
    EXPECT_TRUE(reads.full());
    EXPECT_EQ(reads.back().request.size, round * 10 + 2);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(reads.front().request.size, round * 10 + i);
      reads.pop_front();
    }
    EXPECT_TRUE(reads.empty());
  }
}

TEST(InboundReads, AnIrdOfZeroTakesNone) {
  const InboundReads reads(0);
  EXPECT_TRUE(reads.full());
  EXPECT_TRUE(reads.empty());
}

// A responder with some memory that its peer may read and change.
class InboundReadsAccept : public ::testing::Test {
 protected:
  std::optional<wire::TermError> read(uint32_t size, Stag source) {
    Buffer payload(wire::ReadRequest::kSize);
    wire::ReadRequest{.sink_stag = Stag{7},
                      .sink_to = TaggedOffset{8},
                      .size = size,
                      .source_stag = source,
                      .source_to = address()}
        .encode(payload.data());
    const Buffer header = test::pattern_bytes(wire::UntaggedHeader::kSize, 5);
    const auto v = reads.accept_read(host, header, payload);
    return v.ok() ? std::nullopt : std::optional{v.error()};
  }
  std::optional<wire::TermError> add(
      uint64_t more, uint64_t at = 0,
      wire::AtomicRequest::Code code = wire::AtomicRequest::Code::fetch_add) {
    Buffer payload(wire::AtomicRequest::kSize);
    wire::AtomicRequest{
        .code = code, .request_id = 77, .stag = stag, .to = address() + at, .add_swap = more}
        .encode(payload.data());
    const auto v = reads.accept_atomic(host, payload);
    return v.ok() ? std::nullopt : std::optional{v.error()};
  }
  TaggedOffset address() const { return TaggedOffset{reinterpret_cast<uintptr_t>(memory.data())}; }
  uint64_t number() const {
    uint64_t n = 0;
    std::memcpy(&n, memory.data(), sizeof n);
    return n;
  }

  test::Host host;
  Buffer memory = test::pattern_bytes(64, 3);
  Stag stag = host.add_region(memory);
  InboundReads reads{2};
};

TEST_F(InboundReadsAccept, AReadIsKeptWithItsHeaders) {
  EXPECT_FALSE(read(64, stag));
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_FALSE(reads.front().atomic);
  EXPECT_EQ(reads.front().request.size, 64U);
  const Buffer header = test::pattern_bytes(wire::UntaggedHeader::kSize, 5);
  EXPECT_TRUE(std::equal(header.begin(), header.end(), reads.front().headers.begin()));
  EXPECT_EQ(wire::ReadRequest::parse(reads.front().headers.data() + header.size()).size, 64U);
}

TEST_F(InboundReadsAccept, AReadOfNothingNamesNoMemory) {
  EXPECT_FALSE(read(0, Stag{12345}));
  EXPECT_EQ(reads.size(), 1U);
}

TEST_F(InboundReadsAccept, AReadOfMemoryThatIsNotThereIsRefused) {
  const auto error = read(65, stag);
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, term::kProtectionBounds);
  EXPECT_TRUE(reads.empty());
}

TEST_F(InboundReadsAccept, AnAtomicIsExecutedAtOnce) {
  const uint64_t before = number();
  EXPECT_FALSE(add(5));
  EXPECT_EQ(number(), before + 5);
  EXPECT_FALSE(add(7));
  EXPECT_EQ(number(), before + 12);
  EXPECT_TRUE(reads.front().atomic);
  EXPECT_EQ(reads.front().response.request_id, 77U);
  EXPECT_EQ(reads.front().response.original, before);
  EXPECT_EQ(reads.back().response.original, before + 5);
}

TEST_F(InboundReadsAccept, AnAtomicThatIsRefusedChangesNothing) {
  const Buffer before = memory;
  EXPECT_EQ(add(5, 3)->why, Refusal::atomic_misaligned);
  EXPECT_EQ(add(5, 0, wire::AtomicRequest::Code{9})->why, Refusal::atomic_code);
  host.regions[stag].rights = 0;
  EXPECT_EQ(*add(5), term::kProtectionAccess);
  EXPECT_EQ(memory, before);
  EXPECT_TRUE(reads.empty());
}

TEST_F(InboundReadsAccept, MoreThanTheIrdAreRefused) {
  EXPECT_FALSE(read(64, stag));
  EXPECT_FALSE(add(5));
  const Buffer before = memory;
  EXPECT_EQ(add(5)->why, Refusal::reads_beyond_ird);
  EXPECT_EQ(read(64, stag)->why, Refusal::reads_beyond_ird);
  EXPECT_EQ(memory, before);
  EXPECT_EQ(reads.size(), 2U);
}

}  // namespace
}  // namespace weft::rdmap
