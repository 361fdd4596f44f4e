// When a queue pair that looks for its peer tries again, and when it gives up (spec/addressing
// 5.4).

#include "cm/bring_up_times.h"

#include <gtest/gtest.h>

#include "device/device.h"
#include "tests/support/spec_section.h"
#include "verbs/number_pool.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;

const Time kStart = Time::from_ns(5'000'000'000);

// "A call that fails is repeated after 10, 20, 40 .. 500 ms".
TEST(BringUpTimes, PausesDoubleUpToHalfASecond) {
  BringUpTimes times;
  std::vector<int64_t> pauses;
  for (int i = 0; i < 8; ++i) pauses.push_back((times.next_try(kStart, 0) - kStart) / 1ms);
  EXPECT_EQ(pauses, (std::vector<int64_t>{10, 20, 40, 80, 160, 320, 500, 500}));
}

// "each with up to a quarter more at random"
TEST(BringUpTimes, EachPauseIsUpToAQuarterLonger) {
  Duration longest{0};
  for (uint64_t random = 0; random < 5000; ++random) {
    BringUpTimes times;
    const Duration pause = times.next_try(kStart, random * 2'654'435'761U) - kStart;
    EXPECT_GE(pause, 10ms);
    EXPECT_LT(pause, 12500us);
    longest = std::max(longest, pause);
  }
  EXPECT_GT(longest, 12ms);
}

// "A queue pair that was asked for nothing tries without limit. From its first request on it tries
// for T = max(10 s, 4.096 us x 2^timeout x (retry_cnt + 1))."
TEST(BringUpTimes, ThePatienceIsThatOfTheRetriesAndTenSecondsAtLeast) {
  const auto patience = [](uint8_t timeout, uint8_t retries) {
    BringUpTimes times;
    EXPECT_TRUE(times.give_up_at().is_never());
    verbs::QpAttributes a;
    a.timeout = timeout;
    a.retry_cnt = retries;
    times.request_waits(kStart, a);
    times.request_waits(kStart + 5s, a);  // not the first
    return times.give_up_at() - kStart;
  };
  EXPECT_EQ(patience(0, 0), 10s);
  EXPECT_EQ(patience(14, 7), 10s);
  EXPECT_EQ(patience(20, 7), 4096ns * (1 << 20) * 8);
  EXPECT_GT(patience(20, 7), 34s);
}

TEST(BringUpTimes, TheLastTryIsNotBehindTheEnd) {
  BringUpTimes times;
  times.request_waits(kStart, {});
  EXPECT_EQ(times.next_try(kStart + 10s - 3ms, 0), kStart + 10s);
}

// "Codes 3, 5 and 6 end it earlier, 2 s after the first of them, unless code 1 or 2 came in
// between."
TEST(BringUpTimes, ARefusalHasToLastForTwoSeconds) {
  BringUpTimes times;
  times.request_waits(kStart, {});
  EXPECT_FALSE(times.refused_for_good(kStart));
  EXPECT_FALSE(times.refused_for_good(kStart + 1999ms));
  EXPECT_TRUE(times.refused_for_good(kStart + 2s));
  times.not_refused_for_good();
  EXPECT_FALSE(times.refused_for_good(kStart + 3s));
  EXPECT_FALSE(times.refused_for_good(kStart + 4s));
  EXPECT_TRUE(times.refused_for_good(kStart + 5s));
}

// "Where no request waits they end nothing."
TEST(BringUpTimes, ARefusalIsNoEndWhereNothingWaits) {
  BringUpTimes times;
  EXPECT_FALSE(times.refused_for_good(kStart));
  EXPECT_FALSE(times.refused_for_good(kStart + 60s));
  times.request_waits(kStart + 60s, {});
  EXPECT_TRUE(times.refused_for_good(kStart + 61s));
}

TEST(AddressingSpec, HasTheNumbersOfTheCode) {
  const auto expect = [](const char* section, const std::string& words) {
    EXPECT_NE(test::section_text("addressing", section).find(words), std::string::npos)
        << section << " does not say: " << words;
  };
  expect("2.1", "1 to " + std::to_string(verbs::NumberPool::kOfAPort) + " | queue pairs");
  expect("2.2", "A port has " + std::to_string(verbs::NumberPool::kOfAPort) + " numbers");
  expect("3", "up to " + std::to_string(device::kMaxReads));
  expect("3", "offer IRD and ORD " + std::to_string(device::kMaxReads));
  expect("5.4", "after 10, 20, 40 .. 500 ms, each with up to a quarter more");
  expect("5.4", "T = max(10 s, 4.096 us x 2^timeout x (retry_cnt + 1))");
  expect("5.4", "2 s after the first of them");
}

}  // namespace
}  // namespace weft::cm
