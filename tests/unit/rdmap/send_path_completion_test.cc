// When requests complete, in which order, and who asks the peer for it.

#include "tests/unit/rdmap/send_path_fixture.h"

namespace weft::rdmap {
namespace {

TEST_F(SendPathTest, WritesAndSendsCompleteWhenCovered) {
  for (int i = 0; i < 3; ++i) post({.operation = work::Operation::write, .signaled = true}, small);
  say();
  path->llp_took_all();
  EXPECT_EQ(completed(), Ids{}) << "what the kernel has the peer may not (spec/rdmap 4.4)";
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
  post({.operation = work::Operation::write, .signaled = true}, small);
  post({.operation = work::Operation::send}, small);
  say();
  EXPECT_EQ(completed(), Ids{});
  path->llp_took_all();
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(SendPathTest, AWriteWithImmediateIsTwoMessages) {
  post({.operation = work::Operation::write_immediate, .signaled = true}, small);
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
  post({.operation = work::Operation::read, .signaled = true}, sink);
  post({.operation = work::Operation::write, .signaled = true}, small);
  say();
  cover();
  EXPECT_EQ(completed(), Ids{});
  path->answered();
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

// spec/rdmap 3.3: a peer answers nothing before all ahead of it is placed and consumed. Without
// this, requests that ask for no report would keep the read behind them from completing for ever.
TEST_F(SendPathTest, AnAnswerCoversWhatIsAheadOfIt) {
  Buffer sink(10);
  post({.operation = work::Operation::write}, small);
  post({.operation = work::Operation::send}, small);
  post({.operation = work::Operation::read, .signaled = true}, sink);
  post({.operation = work::Operation::write, .signaled = true}, small);
  say();
  path->answered();
  EXPECT_EQ(completed(), (Ids{1, 2, 3}));
  cover();
  EXPECT_EQ(completed(), (Ids{1, 2, 3, 4}));
}

TEST_F(SendPathTest, LocalOperationsCompleteInTheirTurn) {
  post({.operation = work::Operation::write, .signaled = true}, small);
  post_local(work::Operation::local_invalidate, true);
  post({.operation = work::Operation::send, .signaled = true}, small);
  EXPECT_EQ(names(say()), "RDMA Write, Send");
  EXPECT_EQ(completed(), Ids{});
  path->covered(1);
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

// A window's memory is the program's when the window is closed, and what goes out by reference is
// read when the kernel takes it.
TEST_F(SendPathTest, ALocalOperationWaitsForWhatTheBatchRefersTo) {
  writer.configure(false, false);  // else the payload is copied while it is summed
  Buffer large = pattern_bytes(100'000, 1);
  post({.operation = work::Operation::write, .signaled = true}, large);
  const work::SendWqe& local = post_local(work::Operation::local_invalidate, true);
  post({.operation = work::Operation::send, .signaled = true}, small);
  mpa::TxBatch batch;
  while (path->ready(&batch) && path->write_fpdu(writer, batch)) {
  }
  ASSERT_TRUE(batch.refers());
  EXPECT_FALSE(local.answered);
  batch.consumed(batch.bytes());
  EXPECT_TRUE(path->ready(&batch));
  EXPECT_TRUE(local.answered);
  writer.configure(true, false);
  EXPECT_EQ(names(say()), "Send");
  cover();
  EXPECT_EQ(completed(), (Ids{1, 2, 3}));
}

// No message of its own asks for what stands before it.
TEST_F(SendPathTest, ASignaledLocalOperationBehindUnsignaledRequestsCompletes) {
  post({.operation = work::Operation::write}, small);
  post_local(work::Operation::bind_window, true);
  EXPECT_EQ(names(say()), "RDMA Write, RDMA Write") << "the second one is empty and carries AW";
  EXPECT_EQ(asked(), 1U);
  cover();
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(SendPathTest, ALocalOperationThatFailsIsReportedBehindThoseBeforeIt) {
  post({.operation = work::Operation::write}, small);
  post_local(work::Operation::local_invalidate, true);
  host->local_result = work::Status::window_bind;
  say();
  EXPECT_FALSE(path->failed());
  cover();
  EXPECT_EQ(completed(), Ids{1});
  EXPECT_TRUE(path->failed());
  EXPECT_EQ(host->send_queue().at(host->send_queue().head()).status, work::Status::window_bind);
}

// --- asking for coverage

TEST_F(SendPathTest, SignaledRequestsAskUnsignaledOnesNowAndThen) {
  configure(true, 4, 64);
  for (int i = 0; i < 64; ++i) post({.operation = work::Operation::write}, small);
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
        local ? (void)post_local(work::Operation::bind_window, false)
              : (void)post({.operation = work::Operation::send}, small);
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
  for (int i = 0; i < 200; ++i)
    post({.operation = work::Operation::write, .signaled = true}, small);
  path->want_all_covered();
  say();
  EXPECT_EQ(asked(), 0U);
  EXPECT_EQ(said.size(), 200U);
}

TEST_F(SendPathTest, WantAllCoveredAsksOnce) {
  post({.operation = work::Operation::write}, small);
  say();
  path->want_all_covered();
  path->want_all_covered();
  EXPECT_EQ(names(say()), "RDMA Write");
  path->want_all_covered();
  EXPECT_EQ(say().size(), 0U) << "it was asked already";
  EXPECT_EQ(asked(), 1U);
}

}  // namespace
}  // namespace weft::rdmap
