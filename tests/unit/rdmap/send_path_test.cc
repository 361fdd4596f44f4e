#include "rdmap/send_path.h"

#include <gtest/gtest.h>

#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using test::Frame;
using test::names;
using test::pattern_bytes;
using wire::Opcode;

class SendPathTest : public ::testing::Test {
 protected:
  SendPathTest() { configure(true); }

  void configure(bool extension, uint16_t ord = 4, uint32_t capacity = 256, bool llp = false) {
    host = std::make_unique<test::Host>(capacity);
    config = {.mpa = {.extension = extension, .ird = 4, .ord = ord}, .llp_completion = llp};
    path = std::make_unique<SendPath>(*host, config, 3);
    posted = 0;
    said.clear();
  }

  SendWqe& post(SendWqe w, Buffer& memory) {
    w.wr_id = ++posted;
    return host->post(w, {test::segment(*host, memory)});
  }
  SendWqe& post_local(Operation op, bool signaled) {
    return host->post({.wr_id = ++posted, .operation = op, .signaled = signaled});
  }

  // Everything that may go out now.
  std::vector<Frame> say() {
    Buffer bytes;
    while (path->ready()) {
      mpa::TxBatch batch;
      while (path->ready() && path->write_fpdu(writer, batch)) {
      }
      if (batch.empty()) break;
      for (const IoVec& v : batch.pieces()) {
        const auto* p = static_cast<const std::byte*>(v.iov_base);
        bytes.insert(bytes.end(), p, p + v.iov_len);
      }
    }
    std::vector<Frame> frames = test::parse_stream(bytes);
    said.insert(said.end(), frames.begin(), frames.end());
    return frames;
  }
  // The peer covers all that was said.
  void cover() { path->covered(path->messages()); }
  std::vector<uint64_t> completed() const {
    std::vector<uint64_t> ids;
    for (const auto& d : host->sent) {
      EXPECT_EQ(d.status, Status::success);
      ids.push_back(d.wr_id);
    }
    return ids;
  }
  size_t asked() const {
    size_t n = 0;
    for (const Frame& f : said) n += f.control.ack_wanted;
    return n;
  }

  std::unique_ptr<test::Host> host;
  StreamConfig config;
  std::unique_ptr<SendPath> path;
  mpa::FpduWriter writer;
  uint64_t posted = 0;
  std::vector<Frame> said;
  Buffer small = pattern_bytes(100, 1);
};

using Ids = std::vector<uint64_t>;

TEST_F(SendPathTest, EveryOperationHasItsOpcode) {
  struct Row {
    Operation operation;
    bool solicited;
    const char* expected;
  };
  const Row rows[] = {
      {Operation::write, false, "RDMA Write"},
      {Operation::write, true, "RDMA Write"},
      {Operation::write_immediate, false, "RDMA Write, Immediate Data"},
      {Operation::write_immediate, true, "RDMA Write, Immediate Data with Solicited Event"},
      {Operation::send, false, "Send"},
      {Operation::send, true, "Send with Solicited Event"},
      {Operation::send_immediate, false, "Send with Immediate"},
      {Operation::send_immediate, true, "Send with Solicited Event and Immediate"},
      {Operation::send_invalidate, false, "Send with Invalidate"},
      {Operation::send_invalidate, true, "Send with Solicited Event and Invalidate"},
      {Operation::read, false, "RDMA Read Request"},
      {Operation::fetch_add, false, "Atomic Request"},
      {Operation::compare_swap, false, "Atomic Request"},
      {Operation::local_invalidate, false, ""},
      {Operation::bind_window, false, ""},
  };
  for (const Row& row : rows) {
    configure(true);
    post({.operation = row.operation, .solicited = row.solicited}, small);
    EXPECT_EQ(names(say()), row.expected);
  }
}

// wire.md 4.2, 4.3, 4.5
TEST_F(SendPathTest, AWriteIsCutIntoContiguousSegments) {
  config.mpa.extension = false;
  configure(false);
  Buffer data = pattern_bytes(5000, 2);
  post({.operation = Operation::write, .remote_stag = Stag{9}, .remote_to = TaggedOffset{70'000}},
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
  for (int i = 0; i < 2; ++i) post({.operation = Operation::send}, data);
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
  for (const Operation op : {Operation::write, Operation::send, Operation::write_immediate}) {
    post({.operation = op}, none);
  }
  const auto frames = say();
  EXPECT_EQ(names(frames), "RDMA Write, Send, RDMA Write, Immediate Data")
      << "the Write goes out also when it is empty (wire.md 4.7)";
  for (const Frame& f : frames) EXPECT_TRUE(f.control.last);
}

TEST_F(SendPathTest, ImmediatesAndStagsAreWhereTheyBelong) {
  post({.operation = Operation::send_immediate, .immediate = 0x01020304}, small);
  post({.operation = Operation::send_invalidate, .remote_stag = Stag{0xabcdef01}}, small);
  post({.operation = Operation::write_immediate, .immediate = 0x0a0b0c0d}, small);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].word, 0x01020304U);
  EXPECT_EQ(frames[1].word, 0xabcdef01U);
  EXPECT_EQ(test::to_hex(frames[3].payload), "0a 0b 0c 0d 00 00 00 00");
  EXPECT_EQ(frames[3].msn, 3U) << "an Immediate is a message of queue 0";
}

// wire.md 4.6
TEST_F(SendPathTest, AReadRequestExposesNoLkey) {
  Buffer sink(500);
  post({.operation = Operation::read, .remote_stag = Stag{0x77}, .remote_to = TaggedOffset{0x1234}},
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

// wire.md 4.8: a plain add has mask 0, a plain compare and swap has both masks all ones.
TEST_F(SendPathTest, AtomicRequests) {
  Buffer result(8);
  post({.operation = Operation::fetch_add,
        .remote_stag = Stag{7},
        .remote_to = TaggedOffset{64},
        .compare_add = 5},
       result);
  post({.operation = Operation::compare_swap, .remote_stag = Stag{7}, .compare_add = 6, .swap = 8},
       result);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 2U);
  const auto add = wire::AtomicRequest::parse(frames[0].payload.data());
  EXPECT_EQ(add.code, wire::AtomicRequest::Code::fetch_add);
  EXPECT_EQ(add.to, TaggedOffset{64});
  EXPECT_EQ(add.add_swap, 5U);
  EXPECT_EQ(add.add_swap_mask | add.compare | add.compare_mask, 0U);
  const auto cas = wire::AtomicRequest::parse(frames[1].payload.data());
  EXPECT_EQ(cas.code, wire::AtomicRequest::Code::compare_swap);
  EXPECT_EQ(cas.compare, 6U);
  EXPECT_EQ(cas.add_swap, 8U);
  EXPECT_EQ(cas.add_swap_mask & cas.compare_mask, UINT64_MAX);
  EXPECT_NE(cas.request_id, add.request_id);
  EXPECT_EQ(frames[1].msn, 2U) << "reads and atomics share one MSN space";
}

TEST_F(SendPathTest, InlineDataIsCopiedFromTheRequest) {
  SendWqe& w =
      host->post({.wr_id = 1, .operation = Operation::send, .inlined = true, .length = 40});
  const Buffer data = pattern_bytes(40, 9);
  std::memcpy(w.payload(), data.data(), data.size());
  EXPECT_EQ(say().at(0).payload, data);
}

// --- completion

TEST_F(SendPathTest, WritesAndSendsCompleteWhenCovered) {
  for (int i = 0; i < 3; ++i) post({.operation = Operation::write, .signaled = true}, small);
  say();
  path->llp_took_all();
  EXPECT_EQ(completed(), Ids{}) << "what the kernel has the peer may not (wire.md 4.10)";
  path->covered(2);
  EXPECT_EQ(completed(), (Ids{1, 2}));
  path->covered(1);
  EXPECT_EQ(completed(), (Ids{1, 2})) << "an older report changes nothing";
  path->covered(3);
  EXPECT_EQ(completed(), (Ids{1, 2, 3}));
  EXPECT_TRUE(path->drained());
}

TEST_F(SendPathTest, TowardsAPlainPeerTheyCompleteWhenTheKernelHasThem) {
  configure(false);
  post({.operation = Operation::write, .signaled = true}, small);
  post({.operation = Operation::send}, small);
  say();
  EXPECT_EQ(completed(), Ids{});
  path->llp_took_all();
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(SendPathTest, AWriteWithImmediateIsTwoMessages) {
  post({.operation = Operation::write_immediate, .signaled = true}, small);
  say();
  EXPECT_EQ(path->messages(), 2U);
  EXPECT_EQ(asked(), 1U);
  EXPECT_TRUE(said[1].control.ack_wanted);
  path->covered(1);
  EXPECT_EQ(completed(), Ids{});
  path->covered(2);
  EXPECT_EQ(completed(), Ids{1});
}

// The order of posting is the order of completion, whatever comes first.
TEST_F(SendPathTest, AReadHoldsBackWhatIsBehindIt) {
  Buffer sink(10);
  post({.operation = Operation::read, .signaled = true}, sink);
  post({.operation = Operation::write, .signaled = true}, small);
  say();
  cover();
  EXPECT_EQ(completed(), Ids{});
  path->answered();
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

// wire.md 4.9: a peer answers nothing before all ahead of it is placed and consumed. Without this,
// requests that ask for no report would keep the read behind them from completing for ever.
TEST_F(SendPathTest, AnAnswerCoversWhatIsAheadOfIt) {
  Buffer sink(10);
  post({.operation = Operation::write}, small);
  post({.operation = Operation::send}, small);
  post({.operation = Operation::read, .signaled = true}, sink);
  post({.operation = Operation::write, .signaled = true}, small);
  say();
  path->answered();
  EXPECT_EQ(completed(), (Ids{1, 2, 3}));
  cover();
  EXPECT_EQ(completed(), (Ids{1, 2, 3, 4}));
}

TEST_F(SendPathTest, LocalOperationsCompleteInTheirTurn) {
  post({.operation = Operation::write, .signaled = true}, small);
  post_local(Operation::local_invalidate, true);
  post({.operation = Operation::send, .signaled = true}, small);
  EXPECT_EQ(names(say()), "RDMA Write, Send");
  EXPECT_EQ(completed(), Ids{});
  path->covered(1);
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

// No message of its own asks for what stands before it.
TEST_F(SendPathTest, ASignaledLocalOperationBehindUnsignaledRequestsCompletes) {
  post({.operation = Operation::write}, small);
  post_local(Operation::bind_window, true);
  EXPECT_EQ(names(say()), "RDMA Write, RDMA Write") << "the second one is empty and carries AW";
  EXPECT_EQ(asked(), 1U);
  cover();
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(SendPathTest, ALocalOperationThatFailsIsReportedBehindThoseBeforeIt) {
  post({.operation = Operation::write}, small);
  post_local(Operation::local_invalidate, true);
  host->local_result = Status::window_bind;
  say();
  EXPECT_FALSE(path->failed());
  cover();
  EXPECT_EQ(completed(), Ids{1});
  EXPECT_TRUE(path->failed());
  EXPECT_EQ(host->send_queue().at(host->send_queue().head()).status, Status::window_bind);
}

// --- asking for coverage

TEST_F(SendPathTest, SignaledRequestsAskUnsignaledOnesNowAndThen) {
  configure(true, 4, 64);
  for (int i = 0; i < 64; ++i) post({.operation = Operation::write}, small);
  say();
  EXPECT_GE(asked(), 1U);
  EXPECT_LE(asked(), 4U);
  cover();
  EXPECT_GE(host->sent.size(), 32U) << "so that at least half of the queue is free again";
}

TEST_F(SendPathTest, NoCapacityIsTooSmallToAsk) {
  for (uint32_t capacity = 1; capacity <= 9; ++capacity) {
    configure(true, 4, capacity);
    for (int round = 0; round < 20; ++round) {
      while (host->send_queue().tail() - host->send_queue().head() < capacity) {
        const bool local = (posted + capacity) % 5 == 0;
        local ? (void)post_local(Operation::bind_window, false)
              : (void)post({.operation = Operation::send}, small);
      }
      const uint64_t before = host->send_queue().head();
      say();
      // The peer covers up to the last message that asked, and no further.
      uint64_t ordinal = 0;
      uint64_t last = 0;
      for (const Frame& f : said) {
        ++ordinal;
        if (f.control.ack_wanted) last = ordinal;
      }
      path->covered(last);
      ASSERT_GT(host->send_queue().head(), before)
          << "capacity " << capacity << ": nothing gets free any more";
    }
  }
}

TEST_F(SendPathTest, WithoutExtensionNobodyIsAsked) {
  configure(false);
  for (int i = 0; i < 200; ++i) post({.operation = Operation::write, .signaled = true}, small);
  path->want_all_covered();
  say();
  EXPECT_EQ(asked(), 0U);
  EXPECT_EQ(said.size(), 200U);
}

TEST_F(SendPathTest, WantAllCoveredAsksOnce) {
  post({.operation = Operation::write}, small);
  say();
  path->want_all_covered();
  path->want_all_covered();
  EXPECT_EQ(names(say()), "RDMA Write");
  path->want_all_covered();
  EXPECT_EQ(say().size(), 0U) << "it was asked already";
  EXPECT_EQ(asked(), 1U);
}

// --- limits

TEST_F(SendPathTest, AtMostOrdReadsAreOut) {
  configure(true, 2);
  Buffer sink(10);
  for (int i = 0; i < 5; ++i) post({.operation = Operation::read, .signaled = true}, sink);
  EXPECT_EQ(say().size(), 2U);
  path->answered();
  EXPECT_EQ(say().size(), 1U);
  EXPECT_EQ(path->reads().outstanding(), 2U);
}

TEST_F(SendPathTest, ReadsAreRefusedWhereThePeerAllowsNone) {
  configure(true, 0);
  Buffer sink(10);
  post({.operation = Operation::write, .signaled = true}, small);
  post({.operation = Operation::read, .signaled = true}, sink);
  EXPECT_EQ(names(say()), "RDMA Write");
  cover();
  EXPECT_TRUE(path->failed());
  host->flush();
  EXPECT_EQ(host->sent.back().status, Status::local_qp_operation);
}

TEST_F(SendPathTest, TheExtensionsOperationsAreRefusedTowardsAPlainPeer) {
  for (const Operation op : {Operation::write_immediate, Operation::send_immediate,
                             Operation::fetch_add, Operation::compare_swap}) {
    configure(false);
    post({.operation = op, .signaled = true}, small);
    EXPECT_EQ(say().size(), 0U);
    EXPECT_TRUE(path->failed());
  }
}

TEST_F(SendPathTest, AFenceWaitsForReads) {
  Buffer sink(10);
  post({.operation = Operation::read}, sink);
  post({.operation = Operation::write}, small);
  post({.operation = Operation::send, .fence = true}, small);
  EXPECT_EQ(names(say()), "RDMA Read Request, RDMA Write");
  path->answered();
  EXPECT_EQ(names(say()), "Send");
}

// wire.md 4.10: at most 4 MiB of Sends, or one message where it is larger, beyond what is covered.
TEST_F(SendPathTest, TheSendCredit) {
  Buffer mib(1 << 20);
  for (int i = 0; i < 6; ++i) post({.operation = Operation::send}, mib);
  say();
  EXPECT_EQ(path->messages(), 4U);
  EXPECT_GE(asked(), 1U) << "asked in time";
  cover();
  say();
  EXPECT_EQ(path->messages(), 6U);
}

TEST_F(SendPathTest, OneLargerMessageGoesAlone) {
  Buffer big((4 << 20) + 1);
  post({.operation = Operation::send}, small);
  post({.operation = Operation::send, .signaled = true}, big);
  post({.operation = Operation::send}, small);
  say();
  EXPECT_EQ(path->messages(), 2U)
      << "the first one, and an empty Write that asks to have it covered";
  cover();
  say();
  EXPECT_EQ(path->messages(), 3U);
  cover();
  say();
  EXPECT_EQ(path->messages(), 4U);
}

// The first one is too small to ask by itself, the second one needs its credit back.
TEST_F(SendPathTest, WhoWaitsForCreditAsksForIt) {
  Buffer first((4 << 20) / 2 - 100);
  Buffer second((4 << 20) / 2 + 200);
  post({.operation = Operation::send}, first);
  post({.operation = Operation::send}, second);
  say();
  EXPECT_EQ(asked(), 1U);
  EXPECT_TRUE(said.back().control.ack_wanted);
  EXPECT_EQ(said.back().op(), Opcode::write);
  cover();
  say();
  EXPECT_EQ(said.back().msn, 2U);
}

TEST_F(SendPathTest, CreditIsKeptToAlsoWhereTheKernelCompletes) {
  configure(true, 4, 256, true);
  Buffer mib(1 << 20);
  for (int i = 0; i < 6; ++i) post({.operation = Operation::send, .signaled = true}, mib);
  say();
  path->llp_took_all();
  EXPECT_EQ(completed(), (Ids{1, 2, 3, 4})) << "completion=llp";
  EXPECT_GE(asked(), 1U);
  cover();
  say();
  path->llp_took_all();
  EXPECT_EQ(completed().size(), 6U);
}

TEST_F(SendPathTest, WritesNeedNoCredit) {
  Buffer mib(1 << 20);
  for (int i = 0; i < 12; ++i) post({.operation = Operation::write}, mib);
  say();
  EXPECT_EQ(path->messages(), 12U);
}

// --- errors

TEST_F(SendPathTest, AWrongLkeyFailsBeforeItsFirstByte) {
  host->post({.wr_id = 1, .operation = Operation::send},
             {{test::address_of(small).value(), 50, Stag{5}}});
  EXPECT_EQ(say().size(), 0U);
  EXPECT_TRUE(path->failed());
  host->flush();
  EXPECT_EQ(host->sent[0].status, Status::local_protection);
}

TEST_F(SendPathTest, AReadNeedsAWritableSink) {
  Buffer sink(10);
  const Stag read_only = host->add_region(sink, 0);
  host->post({.wr_id = 1, .operation = Operation::read},
             {{test::address_of(sink).value(), 10, read_only}});
  EXPECT_EQ(say().size(), 0U);
  EXPECT_TRUE(path->failed());
}

TEST_F(SendPathTest, MemoryThatGoesAwayInTheMiddleOfAMessage) {
  configure(false);
  Buffer data(100'000);
  const rdmap::LocalSegment s = test::segment(*host, data);
  host->post({.wr_id = 1, .operation = Operation::write}, {s});
  mpa::TxBatch batch;
  ASSERT_TRUE(path->ready() && path->write_fpdu(writer, batch));
  EXPECT_TRUE(path->in_message());
  host->regions.erase(s.lkey);
  EXPECT_FALSE(path->write_fpdu(writer, batch));
  EXPECT_TRUE(path->failed());
  host->flush();
  EXPECT_EQ(host->sent[0].status, Status::local_protection);
}

TEST_F(SendPathTest, BlameGoesToTheOneThatWaits) {
  Buffer sink(10);
  post({.operation = Operation::read, .signaled = true}, sink);
  post({.operation = Operation::write, .signaled = true}, small);
  post({.operation = Operation::send, .signaled = true}, small);
  say();
  path->covered(2);  // the read is accepted and the Write placed; the Send waits for a receive
  path->blame_waiting(Status::rnr_retry_exceeded);
  host->flush();
  ASSERT_EQ(host->sent.size(), 3U);
  EXPECT_EQ(host->sent[0].status, Status::flushed);
  EXPECT_EQ(host->sent[2].status, Status::rnr_retry_exceeded);
}

// --- receiver not ready

TEST_F(SendPathTest, TheRnrDeadlineIsRetriesTimesTheTimer) {
  config.rnr_retry = 2;
  path = std::make_unique<SendPath>(*host, config, 3);
  post({.operation = Operation::send}, small);
  say();
  const Time now = Time::from_ns(5000);
  path->receiver_not_ready(12, now);
  EXPECT_EQ(path->rnr_deadline(), now + std::chrono::microseconds{3 * 640});
  path->receiver_ready();
  EXPECT_TRUE(path->rnr_deadline().is_never());
  path->receiver_not_ready(12, now);
  path->covered(1);
  EXPECT_TRUE(path->rnr_deadline().is_never()) << "it was taken";
  path->receiver_not_ready(12, now);
  EXPECT_TRUE(path->rnr_deadline().is_never()) << "nothing is on the way";
}

TEST_F(SendPathTest, SevenRetriesMeanForEver) {
  post({.operation = Operation::send}, small);
  say();
  path->receiver_not_ready(1, Time::from_ns(5000));
  EXPECT_TRUE(path->rnr_deadline().is_never());
}

// --- messages of no request

TEST_F(SendPathTest, EmptyWritesComplateNothingAndCount) {
  path->add_empty_write(false);
  const auto frames = say();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].stag, Stag{1}) << "any but zero (wire.md 2.4)";
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
  post({.operation = Operation::read}, sink);
  EXPECT_EQ(say().size(), 0U);
  path->answered();
  EXPECT_EQ(say().at(0).msn, 2U);
}

TEST_F(SendPathTest, MessagesAreNotInterleaved) {
  configure(false);
  Buffer data(4000);
  post({.operation = Operation::write}, data);
  mpa::TxBatch batch;
  ASSERT_TRUE(path->ready() && path->write_fpdu(writer, batch));
  path->add_empty_write(false);
  while (path->ready() && path->write_fpdu(writer, batch)) {
  }
  Buffer bytes;
  for (const IoVec& v : batch.pieces()) {
    const auto* p = static_cast<const std::byte*>(v.iov_base);
    bytes.insert(bytes.end(), p, p + v.iov_len);
  }
  const auto frames = test::parse_stream(bytes);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_TRUE(frames[2].control.last);
  EXPECT_EQ(frames[3].stag, Stag{1}) << "the empty Write waits for the end of the other one";
}

}  // namespace
}  // namespace weft::rdmap
