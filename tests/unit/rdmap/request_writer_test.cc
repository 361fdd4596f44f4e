// The messages that requests become.

#include "tests/support/append.h"
#include "tests/unit/rdmap/send_path_fixture.h"

namespace weft::rdmap {
namespace {

TEST_F(SendPathTest, EveryOperationHasItsOpcode) {
  struct Row {
    work::Operation operation;
    bool solicited;
    const char* expected;
  };
  const Row rows[] = {
      {work::Operation::write, false, "RDMA Write"},
      {work::Operation::write, true, "RDMA Write"},
      {work::Operation::write_immediate, false, "RDMA Write, Immediate Data"},
      {work::Operation::write_immediate, true, "RDMA Write, Immediate Data with Solicited Event"},
      {work::Operation::send, false, "Send"},
      {work::Operation::send, true, "Send with Solicited Event"},
      {work::Operation::send_immediate, false, "Send with Immediate"},
      {work::Operation::send_immediate, true, "Send with Solicited Event and Immediate"},
      {work::Operation::send_invalidate, false, "Send with Invalidate"},
      {work::Operation::send_invalidate, true, "Send with Solicited Event and Invalidate"},
      {work::Operation::read, false, "RDMA Read Request"},
      {work::Operation::fetch_add, false, "Atomic Request"},
      {work::Operation::compare_swap, false, "Atomic Request"},
      {work::Operation::local_invalidate, false, ""},
      {work::Operation::bind_window, false, ""},
  };
  for (const Row& row : rows) {
    configure(true);
    post({.operation = row.operation, .solicited = row.solicited}, small);
    EXPECT_EQ(names(say()), row.expected);
  }
}

// spec/rdmap 1.2, 1.3, 2.1
TEST_F(SendPathTest, AWriteIsCutIntoContiguousSegments) {
  config.mpa.extension = false;
  configure(false);
  Buffer data = pattern_bytes(5000, 2);
  post({.operation = work::Operation::write,
        .remote_stag = Stag{9},
        .remote_to = TaggedOffset{70'000}},
       data);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 4U);
  Buffer all;
  uint64_t to = 70'000;
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_TRUE(frames[i].control.tagged);
    EXPECT_EQ(frames[i].control.last, i == 3);
    EXPECT_EQ(frames[i].stag, Stag{9});
    EXPECT_EQ(frames[i].to, to);
    EXPECT_FALSE(frames[i].control.ack_wanted);
    if (i < 3) {
      EXPECT_EQ(frames[i].payload.size(), 1428U);
    }
    to += frames[i].payload.size();
    all.insert(all.end(), frames[i].payload.begin(), frames[i].payload.end());
  }
  EXPECT_EQ(all, data);
}

TEST_F(SendPathTest, ASendCountsMsnAndOffset) {
  configure(false);
  Buffer data = pattern_bytes(3000, 2);
  for (int i = 0; i < 2; ++i) post({.operation = work::Operation::send}, data);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 6U);
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].qn, 0U);
    EXPECT_EQ(frames[i].msn, 1 + i / 3);
    EXPECT_EQ(frames[i].mo, i % 3 * 1424);
    EXPECT_EQ(frames[i].control.last, i % 3 == 2);
  }
}

TEST_F(SendPathTest, AMessageOfNoBytesIsOneSegment) {
  Buffer none;
  for (const work::Operation op :
       {work::Operation::write, work::Operation::send, work::Operation::write_immediate}) {
    post({.operation = op}, none);
  }
  const auto frames = say();
  EXPECT_EQ(names(frames), "RDMA Write, Send, RDMA Write, Immediate Data")
      << "the Write goes out also when it is empty (spec/rdmap 1.6)";
  for (const Frame& f : frames) EXPECT_TRUE(f.control.last);
}

TEST_F(SendPathTest, ImmediatesAndStagsAreWhereTheyBelong) {
  post({.operation = work::Operation::send_immediate, .immediate = 0x01020304}, small);
  post({.operation = work::Operation::send_invalidate, .remote_stag = Stag{0xabcdef01}}, small);
  post({.operation = work::Operation::write_immediate, .immediate = 0x0a0b0c0d}, small);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].word, 0x01020304U);
  EXPECT_EQ(frames[1].word, 0xabcdef01U);
  EXPECT_EQ(test::to_hex(frames[3].payload), "0a 0b 0c 0d 00 00 00 00");
  EXPECT_EQ(frames[3].msn, 3U) << "an Immediate is a message of queue 0";
}

// spec/rdmap 1.5
TEST_F(SendPathTest, AReadRequestExposesNoLkey) {
  Buffer sink(500);
  post({.operation = work::Operation::read,
        .remote_stag = Stag{0x77},
        .remote_to = TaggedOffset{0x1234}},
       sink);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].qn, 1U);
  const auto r = wire::ReadRequest::parse(frames[0].payload.data());
  EXPECT_EQ(r.source_stag, Stag{0x77});
  EXPECT_EQ(r.source_to, TaggedOffset{0x1234});
  EXPECT_EQ(r.size, 500U);
  EXPECT_EQ(r.sink_to, TaggedOffset{0});
  EXPECT_FALSE(host->regions.contains(r.sink_stag));
}

// spec/rdmap 1.7: a plain add has mask 0, a plain compare and swap has both masks all ones. RFC
// 7306 section 5.2.1: the compare mask of an add is all ones, too.
TEST_F(SendPathTest, AtomicRequests) {
  Buffer result(8);
  post({.operation = work::Operation::fetch_add,
        .remote_stag = Stag{7},
        .remote_to = TaggedOffset{64},
        .compare_add = 5},
       result);
  post({.operation = work::Operation::compare_swap,
        .remote_stag = Stag{7},
        .compare_add = 6,
        .swap = 8},
       result);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 2U);
  const auto add = wire::AtomicRequest::parse(frames[0].payload.data());
  EXPECT_EQ(add.code, wire::AtomicRequest::Code::fetch_add);
  EXPECT_EQ(add.to, TaggedOffset{64});
  EXPECT_EQ(add.add_swap, 5U);
  EXPECT_EQ(add.add_swap_mask | add.compare, 0U);
  EXPECT_EQ(add.compare_mask, UINT64_MAX);
  const auto cas = wire::AtomicRequest::parse(frames[1].payload.data());
  EXPECT_EQ(cas.code, wire::AtomicRequest::Code::compare_swap);
  EXPECT_EQ(cas.compare, 6U);
  EXPECT_EQ(cas.add_swap, 8U);
  EXPECT_EQ(cas.add_swap_mask & cas.compare_mask, UINT64_MAX);
  EXPECT_NE(cas.request_id, add.request_id);
  EXPECT_EQ(frames[1].msn, 2U) << "reads and atomics share one MSN space";
}

TEST_F(SendPathTest, InlineDataIsCopiedFromTheRequest) {
  work::SendWqe& w =
      host->post({.wr_id = 1, .operation = work::Operation::send, .inlined = true, .length = 40});
  const Buffer data = pattern_bytes(40, 9);
  std::memcpy(w.payload(), data.data(), data.size());
  EXPECT_EQ(say().at(0).payload, data);
}

// Without CRC a message of one FPDU goes a shorter way (FpduWriter::write_short()). It says the
// same, asks for the same to be covered, and counts the same.
TEST_F(SendPathTest, AShortMessageIsTheSameWithoutCrc) {
  using enum work::Operation;
  Buffer data = pattern_bytes(1424, 5);
  const auto saying = [&](bool with_crc) {
    configure(true);
    crc = with_crc;
    writer.configure(crc, false);
    for (const work::Operation op : {write, send, send_immediate, send_invalidate}) {
      for (const uint32_t n : {1U, 3U, 64U, 1424U}) {
        for (const bool flag : {false, true}) {
          work::SendWqe w{.wr_id = ++posted,
                          .operation = op,
                          .signaled = flag,
                          .solicited = flag,
                          .remote_stag = Stag{0x0a0b0c00 + n},
                          .remote_to = TaggedOffset{uint64_t{n} << 33},
                          .immediate = 0x01020304 * n};
          work::LocalSegment segment = test::segment(*host, data);
          segment.length = n;
          host->post(w, {segment});
        }
      }
    }
    const stats::QpCounters& counted = config.counters.qp->counters;
    const auto count = [&counted](stats::Kind kind) {
      const auto k = static_cast<size_t>(kind);
      return std::pair{counted.messages_sent[k].value(), counted.bytes_sent[k].value()};
    };
    const auto before = std::pair{count(stats::Kind::write), count(stats::Kind::send)};
    (void)say();
    const auto after = std::pair{count(stats::Kind::write), count(stats::Kind::send)};
    EXPECT_EQ(after.first.first - before.first.first, 8U);
    EXPECT_EQ(after.first.second - before.first.second, 2 * (1U + 3 + 64 + 1424));
    EXPECT_EQ(after.second.first - before.second.first, 24U);
    EXPECT_EQ(after.second.second - before.second.second, 6 * (1U + 3 + 64 + 1424));
    cover();
    return std::pair{said, completed()};
  };
  const auto with = saying(true);
  const auto without = saying(false);
  ASSERT_EQ(with.first.size(), 32U);
  ASSERT_EQ(without.first.size(), 32U);
  for (size_t i = 0; i < 32; ++i) {
    const Frame& a = with.first[i];
    const Frame& b = without.first[i];
    EXPECT_EQ(a.control.bits(), b.control.bits()) << i;
    EXPECT_EQ(a.stag, b.stag) << i;
    EXPECT_EQ(a.to, b.to) << i;
    EXPECT_EQ(a.word, b.word) << i;
    EXPECT_EQ(a.msn, b.msn) << i;
    EXPECT_EQ(a.mo, b.mo) << i;
    EXPECT_EQ(a.payload, b.payload) << i;
  }
  EXPECT_EQ(with.second, without.second);
  EXPECT_EQ(with.second.size(), 32U);
}

// spec/rdmap 4.6: of Writes that nobody waits for one asks before half the credit of bytes is out.
TEST_F(SendPathTest, ShortWritesAskByTheirBytes) {
  Buffer data = pattern_bytes(1424, 5);
  for (const bool with_crc : {true, false}) {
    configure(true, 4, 8192);
    crc = with_crc;
    writer.configure(crc, false);
    for (size_t bytes = 0; bytes < kSendCredit / 2; bytes += data.size()) {
      post({.operation = work::Operation::write}, data);
    }
    (void)say();
    EXPECT_EQ(asked(), 0U);
    post({.operation = work::Operation::write}, data);
    (void)say();
    EXPECT_EQ(asked(), 1U);
  }
}

// --- messages of no request

TEST_F(SendPathTest, EmptyWritesComplateNothingAndCount) {
  path->add_empty_write(false);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].stag, Stag{1}) << "any but zero (spec/mpa 2.4)";
  EXPECT_EQ(frames[0].to, 0U);
  EXPECT_TRUE(frames[0].payload.empty() && frames[0].control.last);
  EXPECT_EQ(path->messages(), 1U);
  EXPECT_TRUE(path->drained());
}

TEST_F(SendPathTest, TheRtrReadTakesAnMsnAndASlot) {
  configure(true, 1);
  mpa::TxBatch batch;
  path->write_rtr_read(writer, batch);
  Buffer sink(10);
  post({.operation = work::Operation::read}, sink);
  EXPECT_EQ(say().size(), 0U);
  path->answered();
  EXPECT_EQ(say().at(0).msn, 2U);
}

TEST_F(SendPathTest, MessagesAreNotInterleaved) {
  configure(false);
  Buffer data(4000);
  post({.operation = work::Operation::write}, data);
  mpa::TxBatch batch;
  ASSERT_TRUE(path->ready() && path->write_fpdu(writer, batch));
  path->add_empty_write(false);
  while (path->ready() && path->write_fpdu(writer, batch)) {
  }
  Buffer bytes;
  test::append(bytes, batch.pieces());
  const auto frames = test::parse_stream(bytes);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_TRUE(frames[2].control.last);
  EXPECT_EQ(frames[3].stag, Stag{1}) << "the empty Write waits for the end of the other one";
}

}  // namespace
}  // namespace weft::rdmap
