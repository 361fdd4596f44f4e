// What holds a request back: the ORD, a fence, the credit for Sends.

#include "tests/unit/rdmap/send_path_fixture.h"

namespace weft::rdmap {
namespace {

TEST_F(SendPathTest, AtMostOrdReadsAreOut) {
  configure(true, 2);
  Buffer sink(10);
  for (int i = 0; i < 5; ++i) post({.operation = work::Operation::read, .signaled = true}, sink);
  EXPECT_EQ(say().size(), 2U);
  path->answered();
  EXPECT_EQ(say().size(), 1U);
  EXPECT_EQ(path->reads().outstanding(), 2U);
}

// InfiniBand's max_rd_atomic.
TEST_F(SendPathTest, FewerReadsThanTheOrd) {
  configure(true, 3);
  path->reads().set_limit(1);
  Buffer sink(10);
  for (int i = 0; i < 4; ++i) post({.operation = work::Operation::read, .signaled = true}, sink);
  EXPECT_EQ(say().size(), 1U);
  path->answered();
  EXPECT_EQ(say().size(), 1U);
  path->reads().set_limit(16);
  EXPECT_EQ(say().size(), 2U);
  EXPECT_EQ(path->reads().outstanding(), 3U);
}

TEST_F(SendPathTest, AFenceWaitsForReads) {
  Buffer sink(10);
  post({.operation = work::Operation::read}, sink);
  post({.operation = work::Operation::write}, small);
  post({.operation = work::Operation::send, .fence = true}, small);
  EXPECT_EQ(names(say()), "RDMA Read Request, RDMA Write");
  path->answered();
  EXPECT_EQ(names(say()), "Send");
}

// --- credit for Sends

// spec/rdmap 4.6: at most 4 MiB of Sends, or one message where it is larger, beyond what is
// covered.
TEST_F(SendPathTest, TheSendCredit) {
  Buffer mib(1 << 20);
  for (int i = 0; i < 6; ++i) post({.operation = work::Operation::send}, mib);
  say();
  EXPECT_EQ(path->messages(), 4U);
  EXPECT_GE(asked(), 1U) << "asked in time";
  cover();
  say();
  EXPECT_EQ(path->messages(), 6U);
}

TEST_F(SendPathTest, OneLargerMessageGoesAlone) {
  Buffer big((4 << 20) + 1);
  post({.operation = work::Operation::send}, small);
  post({.operation = work::Operation::send, .signaled = true}, big);
  post({.operation = work::Operation::send}, small);
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
  post({.operation = work::Operation::send}, first);
  post({.operation = work::Operation::send}, second);
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
  for (int i = 0; i < 6; ++i) post({.operation = work::Operation::send, .signaled = true}, mib);
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
  for (int i = 0; i < 12; ++i) post({.operation = work::Operation::write}, mib);
  say();
  EXPECT_EQ(path->messages(), 12U);
}

}  // namespace
}  // namespace weft::rdmap
