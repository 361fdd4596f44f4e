#include "rdmap/receive_path.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/receive_path_fixture.h"

namespace weft::rdmap {
namespace {

TEST_F(ReceivePathTest, ASendScattersOverItsReceive) {
  Buffer one(30, std::byte{0xcc});
  Buffer two(100, std::byte{0xcc});
  host.post_receive(7, {segment(host, one), segment(host, two)});
  const Buffer data = pattern_bytes(80, 1);
  const Buffer first{data.begin(), data.begin() + 50};
  const Buffer rest{data.begin() + 50, data.end()};
  EXPECT_FALSE(send(1, first, 0, false));
  EXPECT_TRUE(host.received.empty());
  EXPECT_FALSE(send(1, rest, 50));
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].wr_id, 7U);
  EXPECT_EQ(host.received[0].arrival.length, 80U);
  Buffer got = one;
  got.insert(got.end(), two.begin(), two.begin() + 50);
  EXPECT_EQ(got, data);
  EXPECT_EQ(two[50], std::byte{0xcc}) << "bytes beyond byte_len stay as they were";
  EXPECT_EQ(run(), 1U);
}

TEST_F(ReceivePathTest, EveryMessageOfTheRunCounts) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  const uint64_t to = test::address_of(memory).value();
  for (int i = 0; i < 3; ++i) host.post_receive(1, {});
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to, .last = false}, pattern_bytes(8, 1))));
  EXPECT_EQ(run(), 0U) << "half a Write";
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to + 8}, pattern_bytes(8, 1))));
  EXPECT_EQ(run(), 1U);
  EXPECT_FALSE(send(1, {}));
  EXPECT_FALSE(hears(test::immediate(2, 5)));
  EXPECT_FALSE(hears(
      test::read_request(1, {.size = 8, .source_stag = stag, .source_to = TaggedOffset{to}})));
  EXPECT_FALSE(hears(test::atomic_request(2, {.stag = stag, .to = TaggedOffset{to}})));
  EXPECT_EQ(run(), 5U);
  EXPECT_EQ(parts->inbound.size(), 2U);
}

// spec/rdmap 1.6: the length of the Write right before it on the stream, else 0.
TEST_F(ReceivePathTest, AnImmediateTellsTheLengthOfTheWriteBeforeIt) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  const uint64_t to = test::address_of(memory).value();
  for (uint64_t i = 0; i < 5; ++i) host.post_receive(i, {});
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to, .last = false}, pattern_bytes(20, 1))));
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to + 20}, pattern_bytes(4, 1))));
  EXPECT_FALSE(hears(test::immediate(1, 7)));
  EXPECT_FALSE(hears(test::immediate(2, 8)));
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to}, pattern_bytes(9, 1))));
  EXPECT_FALSE(send(3, {}));
  EXPECT_FALSE(hears(test::immediate(4, 9)));
  ASSERT_EQ(host.received.size(), 4U);
  EXPECT_EQ(host.received[0].arrival.length, 24U);
  EXPECT_EQ(host.received[0].arrival.immediate, 7U);
  EXPECT_TRUE(host.received[0].arrival.write_with_immediate);
  EXPECT_EQ(host.received[1].arrival.length, 0U);
  EXPECT_FALSE(host.received[2].arrival.write_with_immediate);
  EXPECT_EQ(host.received[3].arrival.length, 0U) << "a Send stands between";
}

TEST_F(ReceivePathTest, InvalidationComesBeforeTheCompletion) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  host.post_receive(1, {});
  EXPECT_FALSE(hears(untagged({.op = Opcode::send_se_inv, .word = stag.value()})));
  EXPECT_EQ(host.invalidated, std::vector<Stag>{stag});
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_TRUE(host.received[0].arrival.invalidated && host.received[0].arrival.solicited);
  EXPECT_EQ(host.received[0].arrival.invalidated_stag, stag);
}

TEST_F(ReceivePathTest, AnUnfinishedMessageGivesItsReceiveBack) {
  Buffer inbox(40);
  host.post_receive(9, {segment(host, inbox)});
  EXPECT_FALSE(parts->path.abandon_receive());
  EXPECT_FALSE(send(1, pattern_bytes(5, 1), 0, false));
  const auto r = parts->path.abandon_receive();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->wr_id, 9U);
  EXPECT_FALSE(parts->path.abandon_receive()) << "once";
}

TEST_F(ReceivePathTest, NothingIsHeardBehindATerminate) {
  EXPECT_FALSE(hears(test::terminate({.error = term::kMpaCrc})));
  ASSERT_TRUE(parts->path.terminate());
  EXPECT_EQ(parts->path.terminate()->error, term::kMpaCrc);
  host.post_receive(1, {});
  EXPECT_TRUE(send(1, {}));
  EXPECT_TRUE(host.received.empty());
}

// --- atomics (RFC 7306 section 5, spec/rdmap 1.7)

struct AtomicRow {
  wire::AtomicRequest request;
  uint64_t before;
  uint64_t after;
};

TEST_F(ReceivePathTest, AtomicOperations) {
  using Code = wire::AtomicRequest::Code;
  const AtomicRow rows[] = {
      {{.code = Code::fetch_add, .add_swap = 5}, 37, 42},
      {{.code = Code::fetch_add, .add_swap = 1}, UINT64_MAX, 0},
      {{.code = Code::fetch_add, .add_swap = 0xffffffff00000001U}, 0x1'00000000U, 1},
      // Two fields of 32 bits: no carry from the lower into the upper one, none out of the upper
      // one.
      {{.code = Code::fetch_add,
        .add_swap = 0x00000001'00000001U,
        .add_swap_mask = 0x80000000'80000000U},
       0xffffffff'ffffffffU,
       0},
      {{.code = Code::fetch_add,
        .add_swap = 0x00000001'00000002U,
        .add_swap_mask = 0x80000000'80000000U},
       0x00000005'fffffffeU,
       0x00000006'00000000U},
      // Eight fields of a byte.
      {{.code = Code::fetch_add,
        .add_swap = 0x0101010101010101U,
        .add_swap_mask = 0x8080808080808080U},
       0xff00ff00ff00ff7fU,
       0x0001000100010080U},
      {{.code = Code::compare_swap,
        .add_swap = 9,
        .add_swap_mask = UINT64_MAX,
        .compare = 7,
        .compare_mask = UINT64_MAX},
       7,
       9},
      {{.code = Code::compare_swap,
        .add_swap = 9,
        .add_swap_mask = UINT64_MAX,
        .compare = 7,
        .compare_mask = UINT64_MAX},
       8,
       8},
      // Only the masked part is compared, and only the masked part is replaced.
      {{.code = Code::compare_swap,
        .add_swap = 0xabcd,
        .add_swap_mask = 0xff00,
        .compare = 0x12,
        .compare_mask = 0xff},
       0x77777712,
       0x7777ab12},
      {{.code = Code::compare_swap,
        .add_swap = 0xabcd,
        .add_swap_mask = 0xff00,
        .compare = 0x13,
        .compare_mask = 0xff},
       0x77777712,
       0x77777712},
  };
  alignas(8) uint64_t words[2] = {};
  Buffer memory(16);
  for (const AtomicRow& row : rows) {
    configure(true);
    host.regions.clear();
    const Stag stag{0x1234};
    host.regions[stag] = {reinterpret_cast<std::byte*>(words), 0, 16, 15};
    words[0] = words[1] = row.before;
    wire::AtomicRequest r = row.request;
    r.request_id = 77;
    r.stag = stag;
    r.to = TaggedOffset{8};
    ASSERT_FALSE(hears(test::atomic_request(1, r)));
    EXPECT_EQ(words[1], row.after) << r.to_string();
    EXPECT_EQ(words[0], row.before);
    ASSERT_EQ(parts->inbound.size(), 1U);
    EXPECT_TRUE(parts->inbound.front().atomic);
    EXPECT_EQ(parts->inbound.front().response.original, row.before);
    EXPECT_EQ(parts->inbound.front().response.request_id, 77U);
  }
}

// --- what an error is about

TEST_F(ReceivePathTest, TheQuoteOfARequestHasItsHeader) {
  const Buffer u = test::read_request(1, {.size = 5, .source_stag = Stag{0xbad00}});
  EXPECT_EQ(hears(u), term::kProtectionInvalidStag);
  const auto q = parts->path.quote(parts->segments.segment());
  EXPECT_EQ(test::to_hex(q.request), test::to_hex(Bytes{u}.subspan(18)));
  EXPECT_EQ(q.segment->msn, Msn{1});
}

TEST_F(ReceivePathTest, ARequestOfAnotherSizeIsQuotedWithoutIt) {
  Buffer u = test::read_request(1, {.size = 5});
  u.resize(u.size() + 1000);
  EXPECT_EQ(hears(u), term::kUntaggedTooLong);
  EXPECT_TRUE(parts->path.quote(parts->segments.segment()).request.empty());
}

}  // namespace
}  // namespace weft::rdmap
