// Requests of UC that are at fault themselves: what fails, and what goes on.

#include "tests/support/fault_catcher.h"
#include "tests/support/unmapped.h"
#include "tests/unit/wdp/uc_send_fixture.h"

namespace weft::wdp {
namespace {

using UcSendFailureTest = UcSendPathTest;

TEST_F(UcSendFailureTest, ARequestAtFaultFailsBehindThoseBeforeIt) {
  post({.operation = Operation::send}, small);
  SendWqe& bad = post({.operation = Operation::send}, small);
  bad.segment()[0].lkey = Stag{0xdead};
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  EXPECT_EQ(host->send_failures, 0);
  session->llp_took_all(now);
  EXPECT_EQ(host->send_failures, 1);
  ASSERT_EQ(host->host.sent.size(), 3U);
  EXPECT_EQ(host->host.sent[0].status, Status::success);
  EXPECT_EQ(host->host.sent[1].status, Status::local_protection);
  EXPECT_EQ(host->host.sent[2].status, Status::flushed);
  // The peer hears nothing of it, and the session goes on.
  EXPECT_FALSE(session->ready(now));
  EXPECT_FALSE(host->host.end);
}

// InfiniBand's SQE, and RTS after it.
TEST_F(UcSendFailureTest, AfterAFaultNothingIsSentUntilItIsResumed) {
  post({.operation = Operation::send}, small).segment()[0].lkey = Stag{0xdead};
  EXPECT_FALSE(session->ready(now));
  EXPECT_EQ(host->send_failures, 1);
  post({.operation = Operation::send}, small);
  EXPECT_FALSE(session->ready(now));
  EXPECT_TRUE(session->requests_idle());
  host->host.flush();
  session->resume_requests();
  EXPECT_FALSE(session->ready(now));
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  session->llp_took_all(now);
  ASSERT_EQ(host->host.sent.size(), 3U);
  EXPECT_EQ(host->host.sent[0].status, Status::local_protection);
  EXPECT_EQ(host->host.sent[1].status, Status::flushed);
  EXPECT_EQ(host->host.sent[2].status, Status::success);
  EXPECT_EQ(host->send_failures, 1);
}

TEST_F(UcSendFailureTest, AFaultWhileTheSessionIsBeingClosedEndsIt) {
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  post({.operation = Operation::send}, small).segment()[0].lkey = Stag{0xdead};
  session->close(now);
  session->llp_took_all(now);
  EXPECT_TRUE(session->ready(now));
  ASSERT_TRUE(host->host.end.has_value());
  EXPECT_EQ(host->host.end->kind, work::StreamEnd::Kind::local_error);
  // The peer hears that it is over.
  Train t;
  session->fill(t, now);
  ASSERT_EQ(t.datagrams(), 1U);
}

TEST_F(UcSendFailureTest, MemoryThatGoesAwayInTheMiddleFailsTheRequest) {
  configure({.max_payload = 1472});
  Buffer big = pattern_bytes(100'000, 4);
  post({.operation = Operation::write}, big);
  EXPECT_EQ(train().size(), 44U);
  host->host.regions.clear();
  session->llp_took_all(now);
  expect_failure();
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::local_protection);
  // The message in whose middle it was is over; the next one is another.
  session->resume_requests();
  post({.operation = Operation::send}, small);
  const auto d = say();
  ASSERT_EQ(d.size(), 1U);
  EXPECT_EQ(d[0].header.msn, Msn{2});
  EXPECT_EQ(d[0].header.mo.value(), 0U);
}

TEST_F(UcSendFailureTest, UcHasNoAtomics) {
  post({.operation = Operation::fetch_add}, small);
  expect_failure();
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::local_qp_operation);
}

TEST_F(UcSendFailureTest, WhatThePeerDidNotAgreeToFails) {
  for (const Operation op :
       {Operation::read, Operation::send_immediate, Operation::write_immediate}) {
    configure({.immediate = false, .reads = false, .ord = 4, .max_payload = 248});
    post({.operation = op}, small);
    expect_failure();
    ASSERT_EQ(host->host.sent.size(), 1U);
    EXPECT_EQ(host->host.sent[0].status, Status::local_qp_operation);
  }
}

TEST_F(UcSendFailureTest, AMessageOfTooManySegmentsIsRefused) {
  configure({.max_payload = 64});  // STRIDE 16
  Buffer huge(16 * (kMostSegmentsOfMessage + 1));
  post({.operation = Operation::send}, huge);
  expect_failure();
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::local_length);
}

TEST_F(UcSendFailureTest, TheKernelMissesMemoryOfTheRequestThatItWasGiven) {
  post({.operation = Operation::send}, small);
  say();
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  session->own_memory_lost(now);
  ASSERT_EQ(host->host.sent.size(), 2U);
  EXPECT_EQ(host->host.sent[1].status, Status::local_protection);
}

TEST_F(UcSendFailureTest, TheRequestWhoseMemoryTheKernelMissesIsTheOneAtFault) {
  const test::FaultCatcher faults;
  test::Unmapped unmapped;
  const auto address = reinterpret_cast<uintptr_t>(unmapped.begin());
  const Stag gone{0x77};
  host->host.regions[gone] = {unmapped.begin(), address, small.size(), 15};
  post({.operation = Operation::send}, small);
  post({.operation = Operation::write}, small);
  host->host.post({.wr_id = ++posted, .operation = Operation::send, .signaled = true},
                  {{address, static_cast<uint32_t>(small.size()), gone}});
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 4U);
  unmapped.go();
  session->own_memory_lost(now);
  EXPECT_EQ(host->send_failures, 1);
  ASSERT_EQ(host->host.sent.size(), 4U);
  EXPECT_EQ(host->host.sent[0].status, Status::success);
  EXPECT_EQ(host->host.sent[1].status, Status::success);
  EXPECT_EQ(host->host.sent[2].status, Status::local_protection);
  EXPECT_EQ(host->host.sent[3].status, Status::flushed);
}

}  // namespace
}  // namespace weft::wdp
