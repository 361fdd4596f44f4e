// Requests that fail: refused, without their memory, blamed, or without a receive at the peer.

#include "tests/unit/rdmap/send_path_fixture.h"

namespace weft::rdmap {
namespace {

TEST_F(SendPathTest, ReadsAreRefusedWhereThePeerAllowsNone) {
  configure(true, 0);
  Buffer sink(10);
  post({.operation = work::Operation::write, .signaled = true}, small);
  post({.operation = work::Operation::read, .signaled = true}, sink);
  EXPECT_EQ(names(say()), "RDMA Write");
  cover();
  EXPECT_TRUE(path->failed());
  host->flush();
  EXPECT_EQ(host->sent.back().status, work::Status::local_qp_operation);
}

TEST_F(SendPathTest, TheExtensionsOperationsAreRefusedTowardsAPlainPeer) {
  for (const work::Operation op :
       {work::Operation::write_immediate, work::Operation::send_immediate,
        work::Operation::fetch_add, work::Operation::compare_swap}) {
    configure(false);
    post({.operation = op, .signaled = true}, small);
    EXPECT_EQ(say().size(), 0U);
    EXPECT_TRUE(path->failed());
  }
}

TEST_F(SendPathTest, AWrongLkeyFailsBeforeItsFirstByte) {
  host->post({.wr_id = 1, .operation = work::Operation::send},
             {{test::address_of(small).value(), 50, Stag{5}}});
  EXPECT_EQ(say().size(), 0U);
  EXPECT_TRUE(path->failed());
  host->flush();
  EXPECT_EQ(host->sent[0].status, work::Status::local_protection);
}

TEST_F(SendPathTest, AReadNeedsAWritableSink) {
  Buffer sink(10);
  const Stag read_only = host->add_region(sink, 0);
  host->post({.wr_id = 1, .operation = work::Operation::read},
             {{test::address_of(sink).value(), 10, read_only}});
  EXPECT_EQ(say().size(), 0U);
  EXPECT_TRUE(path->failed());
}

TEST_F(SendPathTest, MemoryThatGoesAwayInTheMiddleOfAMessage) {
  configure(false);
  Buffer data(100'000);
  const work::LocalSegment s = test::segment(*host, data);
  host->post({.wr_id = 1, .operation = work::Operation::write}, {s});
  mpa::TxBatch batch;
  ASSERT_TRUE(path->ready() && path->write_fpdu(writer, batch));
  EXPECT_TRUE(path->in_message());
  host->regions.erase(s.lkey);
  EXPECT_FALSE(path->write_fpdu(writer, batch));
  EXPECT_TRUE(path->failed());
  host->flush();
  EXPECT_EQ(host->sent[0].status, work::Status::local_protection);
}

TEST_F(SendPathTest, BlameGoesToTheOneThatWaits) {
  Buffer sink(10);
  post({.operation = work::Operation::read, .signaled = true}, sink);
  post({.operation = work::Operation::write, .signaled = true}, small);
  post({.operation = work::Operation::send, .signaled = true}, small);
  say();
  path->covered(2);  // the read is accepted and the Write placed; the Send waits for a receive
  path->blame_waiting(work::Status::rnr_retry_exceeded);
  host->flush();
  ASSERT_EQ(host->sent.size(), 3U);
  EXPECT_EQ(host->sent[0].status, work::Status::flushed);
  EXPECT_EQ(host->sent[2].status, work::Status::rnr_retry_exceeded);
}

// --- receiver not ready

TEST_F(SendPathTest, TheRnrDeadlineIsRetriesTimesTheTimer) {
  config.rnr_retry = 2;
  path = std::make_unique<SendPath>(*host, config, 3);
  post({.operation = work::Operation::send}, small);
  say();
  const Time now = Time::from_ns(5000);
  path->receiver_not_ready(12, now);
  EXPECT_EQ(path->rnr_deadline(), now + std::chrono::microseconds{3 * 640});
  path->receiver_not_ready(31, now + std::chrono::microseconds{500});
  EXPECT_EQ(path->rnr_deadline(), now + std::chrono::microseconds{3 * 640})
      << "to say so again brings no more time";
  path->receiver_ready();
  EXPECT_TRUE(path->rnr_deadline().is_never());
  path->receiver_not_ready(12, now);
  path->covered(1);
  EXPECT_TRUE(path->rnr_deadline().is_never()) << "it was taken";
  path->receiver_not_ready(12, now);
  EXPECT_TRUE(path->rnr_deadline().is_never()) << "nothing is on the way";
}

TEST_F(SendPathTest, SevenRetriesMeanForEver) {
  post({.operation = work::Operation::send}, small);
  say();
  path->receiver_not_ready(1, Time::from_ns(5000));
  EXPECT_TRUE(path->rnr_deadline().is_never());
}

}  // namespace
}  // namespace weft::rdmap
