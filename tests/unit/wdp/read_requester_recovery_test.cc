// UC Reads of which something is lost: spec/wdp-uc 5.5.

#include "tests/unit/wdp/read_requester_fixture.h"

namespace weft::wdp {
namespace {

// --- recovery

TEST_F(ReadRequesterTest, WhatDoesNotComeIsAskedForAgain) {
  post(2000);
  const auto first = requests().at(0);
  for (const uint32_t i : {0U, 2U}) answer(first, i);
  const Time progress = now;
  // The hole is noticed 250 us after what came behind it, the end by the timer.
  wait_for_deadline();
  EXPECT_EQ(now - progress, kHoldFor);
  auto r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].header.mo.value(), 400U);
  EXPECT_EQ(r[0].range, (wire::WdpReadRange{400, 1}));
  EXPECT_EQ(r[0].header.read_id(), first.header.read_id());
  EXPECT_EQ(r[0].header.stride, 400);
  answer(first, 1);
  const Time again = now;
  wait_for_deadline();
  EXPECT_GE(now - again, kLeastReadTimeout);
  r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].header.mo.value(), 1200U);
  EXPECT_EQ(r[0].range, (wire::WdpReadRange{800, 2}));
  answer(r[0], 4);
  answer(r[0], 3);
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
  EXPECT_TRUE(std::equal(sink.begin(), sink.begin() + 2000, source.begin()));
  EXPECT_EQ(counters().ranges_repeated, 2U);
}

TEST_F(ReadRequesterTest, ARequestThatIsLostWholeIsAskedAgainWhenALaterOneIsAnswered) {
  post(400);
  post(400, 400);
  const auto r = requests();
  ASSERT_EQ(r.size(), 2U);
  post(800, 800);
  const auto third = requests().at(0);
  answer(third, 0, 800);
  wait_for_deadline();
  const auto again = requests();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].header.read_id(), r[0].header.read_id());
  EXPECT_EQ(again[1].header.read_id(), r[1].header.read_id());
}

TEST_F(ReadRequesterTest, AtMost64RangesAreAskedForAtOnce) {
  start({.max_payload = 448, .receive_buffer = 4 << 20, .rtt = 1ms});
  post(40'000);  // 100 segments
  sink.resize(sink.size());
  const auto first = requests();
  for (const auto& r : first) {
    for (uint32_t i = r.header.mo.value() / 400; i * 400 < r.header.mo.value() + r.range.length;
         ++i) {
      if (i % 2 == 0) answer(r, i);
    }
  }
  std::set<uint32_t> asked;
  for (int round = 0; round < 10 && asked.size() < 50; ++round) {
    wait_for_deadline();
    const auto r = requests();
    EXPECT_LE(r.size(), kMostReRequests);
    for (const auto& x : r) asked.insert(x.header.mo.value() / 400);
  }
  EXPECT_EQ(asked.size(), 50U);
  for (const uint32_t i : asked) EXPECT_EQ(i % 2, 1U);
}

// "RTO*2 after an expiry that brought nothing. After retry_cnt (7) expiries without any new
// segment: WC RETRY_EXC_ERR for that WR; QP stays RTS, later WRs continue".
TEST_F(ReadRequesterTest, AfterSevenExpiriesTheRequestFailsAndNothingElse) {
  post(400);
  const auto r = requests().at(0);
  std::vector<int64_t> waits;
  Time since = now;
  while (completed().empty()) {
    wait_for_deadline();
    waits.push_back((now - since).count() / 1'000'000);
    since = now;
    if (completed().empty()) {
      EXPECT_EQ(requests().size(), 1U);
    }
  }
  ASSERT_EQ(waits.size(), 7U);
  for (size_t i = 1; i < waits.size(); ++i) EXPECT_NEAR(waits[i], 2 * waits[i - 1], 2);
  EXPECT_EQ(completed(), (Done{{1, Status::retry_exceeded}}));
  EXPECT_FALSE(host->host.end);
  EXPECT_EQ(counters().reads_failed, 1U);
  // What still comes of it is nobody's; the queue pair goes on.
  answer(r, 0);
  EXPECT_EQ(drops(WdpDrop::stale_read), 1U);
  EXPECT_EQ(sink[0], std::byte{0});
  post(400, 400);
  answer(requests().at(0), 0);
  EXPECT_EQ(completed(), (Done{{1, Status::retry_exceeded}, {2, Status::success}}));
}

TEST_F(ReadRequesterTest, EveryNewSegmentGivesItNewPatience) {
  post(4000);
  auto r = requests().at(0);
  uint32_t next_segment = 0;
  for (int i = 0; i < 40 && completed().empty(); ++i) {
    for (int k = 0; k < 5; ++k) wait_for_deadline();
    (void)requests();
    answer(r, next_segment++);
  }
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
}

TEST_F(ReadRequesterTest, TheTimeoutFollowsTheRoundTripTime) {
  start({.max_payload = 448, .rtt = 100ms});
  post(400);
  (void)requests();
  EXPECT_GE(session->deadline(), now + 400ms);
  EXPECT_LT(session->deadline(), now + 500ms);
}

// "+ MLEN/rate estimate": what was asked for takes its time to come. 100 Mb/s before any has.
TEST_F(ReadRequesterTest, TheTimeoutHasRoomForWhatWasAskedFor) {
  start({.max_payload = 1448, .rtt = 1ms});
  post(400);
  (void)requests();
  EXPECT_EQ(session->deadline() - now, 10ms + 32us);
  start({.max_payload = 1448, .rtt = 1ms});
  post(40'000);
  (void)requests();
  EXPECT_EQ(session->deadline() - now, 10ms + 3200us);
}

// Answers that come faster leave less room for the next.
TEST_F(ReadRequesterTest, TheRateIsWhatAnswersCameWith) {
  start({.max_payload = 1448, .rtt = 1ms});
  for (int read = 0; read < 4; ++read) post(40'000);
  const auto asked = requests();
  ASSERT_EQ(asked.size(), 4U);
  now = now + 1600us;  // 800 Mb/s
  for (const Request& r : asked) {
    for (uint32_t i = 0; i < 100; ++i) answer(r, i);
  }
  ASSERT_EQ(completed().size(), 4U);
  post(40'000);
  (void)requests();
  EXPECT_GT(session->deadline() - now, 10ms + 400us);
  EXPECT_LT(session->deadline() - now, 10ms + 2000us);
}

}  // namespace
}  // namespace weft::wdp
