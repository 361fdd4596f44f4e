#include "rdmap/receive_path.h"

#include <gtest/gtest.h>

#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using test::pattern_bytes;
using test::segment;
using test::tagged;
using test::untagged;
using wire::Opcode;
namespace term = wire::term;

// A receive path behind a DDP receiver, fed with ULPDUs. Frames and Terminates are the business of
// tests/conformance.
class ReceivePathTest : public ::testing::Test {
 protected:
  ReceivePathTest() { configure(true); }
  void configure(bool extension, uint16_t ird = 4) {
    config = {.mpa = {.extension = extension, .ird = ird, .ord = 4}};
    parts = std::make_unique<Parts>(host, config);
  }

  // Begin, place, deliver; what went wrong, if anything did.
  std::optional<wire::TermError> hears(const Buffer& ulpdu) {
    auto& r = parts->segments;
    const size_t header = std::min(r.header_size(ulpdu[0]), ulpdu.size());
    if (auto v = r.begin(Bytes{ulpdu}.first(header), ulpdu.size()); !v.ok()) return v.error();
    Bytes payload = Bytes{ulpdu}.subspan(header);
    // In two pieces, as a large one may come.
    for (size_t at = 0; at < payload.size();) {
      const size_t n = at == 0 ? (payload.size() + 1) / 2 : payload.size() - at;
      PieceList places;
      if (auto v = r.where(at, n, places); !v.ok()) return v.error();
      EXPECT_EQ(places.bytes(), n);
      size_t done = at;
      for (const IoVec& p : places.pieces()) {
        std::memcpy(p.iov_base, payload.data() + done, p.iov_len);
        done += p.iov_len;
      }
      at += n;
    }
    if (auto v = r.deliver(); !v.ok()) return v.error();
    return {};
  }
  std::optional<wire::TermError> send(uint32_t msn, const Buffer& data, uint32_t mo = 0,
                                      bool last = true, bool aw = false) {
    return hears(untagged({.msn = msn, .mo = mo, .last = last, .ack_wanted = aw}, data));
  }
  uint64_t run() const { return parts->delivery.run(); }

  struct Parts {
    Parts(test::Host& host, const StreamConfig& config)
        : inbound(config.mpa.ird),
          send_path(host, config, 1),
          path(host, config, send_path, inbound, delivery) {}
    InboundReads inbound;
    Delivery delivery;
    SendPath send_path;
    ReceivePath path;
    ddp::SegmentReceiver segments{path};
  };
  test::Host host;
  StreamConfig config;
  std::unique_ptr<Parts> parts;
};

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

// wire.md 4.10: nothing behind a message that waits is covered, and Writes are placed all the same.
TEST_F(ReceivePathTest, WhatStandsBehindAnEarlyArrivalIsNotCovered) {
  Buffer memory(64);
  Buffer inbox(64);
  const Stag stag = host.add_region(memory);
  const uint64_t to = test::address_of(memory).value();
  EXPECT_FALSE(send(1, pattern_bytes(10, 1), 0, true, true));
  EXPECT_TRUE(parts->delivery.is_waiting());
  EXPECT_EQ(parts->delivery.due(), Delivery::Due::now);
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to, .ack_wanted = true}, pattern_bytes(8, 2))));
  EXPECT_EQ((Buffer{memory.begin(), memory.begin() + 8}), pattern_bytes(8, 2));
  EXPECT_FALSE(hears(
      test::read_request(1, {.size = 8, .source_stag = stag, .source_to = TaggedOffset{to}})));
  EXPECT_EQ(run(), 0U);
  EXPECT_TRUE(parts->inbound.empty()) << "a Read waits behind it";

  host.post_receive(3, {segment(host, inbox)});
  const auto moved = parts->path.receives_posted();
  ASSERT_TRUE(moved.ok());
  EXPECT_TRUE(*moved);
  EXPECT_EQ(run(), 3U);
  EXPECT_EQ(parts->inbound.size(), 1U);
  EXPECT_EQ((Buffer{inbox.begin(), inbox.begin() + 10}), pattern_bytes(10, 1));
  EXPECT_FALSE(parts->delivery.is_waiting());
}

TEST_F(ReceivePathTest, AReceiveThatComesInTheMiddleOfAMessageTakesItsRest) {
  Buffer inbox(40, std::byte{0xcc});
  const Buffer data = pattern_bytes(40, 3);
  EXPECT_FALSE(send(1, {data.begin(), data.begin() + 15}, 0, false));
  EXPECT_TRUE(parts->path.waits_for_receive());
  host.post_receive(3, {segment(host, inbox)});
  ASSERT_TRUE(parts->path.receives_posted().ok());
  EXPECT_FALSE(parts->path.waits_for_receive());
  EXPECT_FALSE(parts->delivery.is_waiting());
  EXPECT_FALSE(send(1, {data.begin() + 15, data.end()}, 15));
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(inbox, data);
  EXPECT_EQ(run(), 1U);
}

TEST_F(ReceivePathTest, ReceivesPostedWithoutAnyIsNoProgress) {
  EXPECT_FALSE(send(1, {}));
  const auto moved = parts->path.receives_posted();
  ASSERT_TRUE(moved.ok());
  EXPECT_FALSE(*moved);
}

// Reads that wait behind a Send count against the IRD like those that are being answered.
TEST_F(ReceivePathTest, TheIrdHoldsForReadsThatWait) {
  configure(true, 2);
  const auto read = [](uint32_t msn) { return test::read_request(msn, {.size = 0}); };
  EXPECT_FALSE(hears(read(1)));
  EXPECT_FALSE(send(1, {}));
  EXPECT_FALSE(hears(read(2)));
  EXPECT_EQ(hears(read(3)), term::kOperationCatastrophicStream);
}

// wire.md 4.7: the length of the Write right before it on the stream, else 0.
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

TEST_F(ReceivePathTest, AnEarlyImmediateKeepsTheLengthOfItsWrite) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  EXPECT_FALSE(
      hears(tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(33, 1))));
  EXPECT_FALSE(hears(test::immediate(1, 7)));
  host.post_receive(1, {});
  ASSERT_TRUE(parts->path.receives_posted().ok());
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].arrival.length, 33U);
  EXPECT_EQ(run(), 2U);
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

TEST_F(ReceivePathTest, AnEarlyMessageHasNoReceiveToGiveBack) {
  EXPECT_FALSE(send(1, pattern_bytes(5, 1), 0, false));
  EXPECT_FALSE(parts->path.abandon_receive());
}

// Towards a plain peer the rest stays in the socket when 4 MiB wait; between wefts the credit keeps
// the sender from it.
TEST_F(ReceivePathTest, FullAt4MiBOfAPlainPeer) {
  for (const bool extension : {false, true}) {
    configure(extension);
    const Buffer piece(60'000);
    uint32_t msn = 0;
    while (uint64_t{msn} * piece.size() < (4U << 20)) {
      EXPECT_FALSE(parts->path.full());
      ASSERT_FALSE(send(++msn, piece));
    }
    EXPECT_EQ(parts->path.full(), !extension);
  }
}

TEST_F(ReceivePathTest, AWeftThatOverdrawsItsCreditIsCutOff) {
  const Buffer piece(60'000);
  std::optional<wire::TermError> error;
  uint32_t msn = 0;
  while (!error && msn < 1000) error = send(++msn, piece);
  EXPECT_EQ(error, term::kUntaggedNoBuffer);
  EXPECT_LE(uint64_t{msn} * piece.size(), (8U << 20) + 2 * piece.size()) << "memory is bounded";
}

TEST_F(ReceivePathTest, OneMessageMayBeLargerThanTheCredit) {
  const Buffer piece(65'000);
  for (uint32_t i = 0; i < 200; ++i) {
    ASSERT_FALSE(send(1, piece, i * 65'000, false)) << i;
  }
}

TEST_F(ReceivePathTest, MessagesWithoutBytesAreBoundedToo) {
  std::optional<wire::TermError> error;
  uint32_t msn = 0;
  while (!error && msn < 200'000) error = send(++msn, {});
  EXPECT_EQ(error, term::kUntaggedNoBuffer);
}

// --- atomics (RFC 7306 section 5, wire.md 4.8)

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

TEST_F(ReceivePathTest, TheQuoteOfAMessageThatWaited) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  EXPECT_FALSE(send(1, {}));
  const Buffer u = test::read_request(1, {.size = 5, .source_stag = Stag{0xbad00}});
  EXPECT_FALSE(hears(u));
  // Something else comes last.
  EXPECT_FALSE(
      hears(tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(8, 1))));
  host.post_receive(1, {});
  const auto moved = parts->path.receives_posted();
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error(), term::kProtectionInvalidStag);
  const auto q = parts->path.quote_waiting();
  EXPECT_EQ(q.segment->control.opcode, Opcode::read_request);
  EXPECT_EQ(test::to_hex(q.request), test::to_hex(Bytes{u}.subspan(18)));
}

TEST_F(ReceivePathTest, NothingIsHeardBehindATerminate) {
  EXPECT_FALSE(hears(test::terminate({.error = term::kMpaCrc})));
  ASSERT_TRUE(parts->path.terminate());
  EXPECT_EQ(parts->path.terminate()->error, term::kMpaCrc);
  host.post_receive(1, {});
  EXPECT_TRUE(send(1, {}));
  EXPECT_TRUE(host.received.empty());
}

TEST_F(ReceivePathTest, AWriteEndsBefore4GiB) {
  Buffer memory(65'000);
  const Stag stag = host.add_region(memory);
  const Buffer u =
      tagged({.stag = stag, .to = test::address_of(memory).value(), .last = false}, memory);
  uint64_t sum = 0;
  std::optional<wire::TermError> error;
  while (!error && sum < (uint64_t{5} << 30)) {
    // Straight to the path: 4 GiB of copies would take long.
    auto& r = parts->segments;
    if (auto v = r.begin(Bytes{u}.first(14), u.size()); !v.ok()) {
      error = v.error();
    } else {
      ASSERT_TRUE(r.deliver().ok());
      sum += memory.size();
    }
  }
  EXPECT_EQ(error, term::kTaggedBounds);
  EXPECT_LE(sum, UINT32_MAX);
}

}  // namespace
}  // namespace weft::rdmap
