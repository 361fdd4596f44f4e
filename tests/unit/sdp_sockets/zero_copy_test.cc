#include "sdp/sockets/zero_copy.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace weft::sdp {
namespace {

bool shows(const ZeroCopy& sends) {
  pollfd p{sends.shown_at(), 0, 0};
  return ::poll(&p, 1, 0) == 1 && p.revents == POLLERR;
}

void expect_report(ZeroCopy& sends, uint32_t first, uint32_t last, bool copied) {
  const auto report = sends.take();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->first, first);
  EXPECT_EQ(report->last, last);
  EXPECT_EQ(report->copied, copied);
}

TEST(ZeroCopy, CountsFlaggedSendsOfWhoAsked) {
  ZeroCopy sends;
  EXPECT_FALSE(sends.counts(MSG_ZEROCOPY));
  sends.enable(true);
  EXPECT_TRUE(sends.counts(MSG_ZEROCOPY | MSG_NOSIGNAL));
  EXPECT_FALSE(sends.counts(MSG_NOSIGNAL));
  sends.enable(false);
  EXPECT_FALSE(sends.counts(MSG_ZEROCOPY));
}

TEST(ZeroCopy, SendsOfOneKindAreReportedTogether) {
  ZeroCopy sends;
  sends.enable(true);
  sends.sent(false);
  sends.sent(false);
  sends.sent(true);
  sends.sent(false);
  expect_report(sends, 0, 1, false);
  sends.sent(false);
  expect_report(sends, 2, 2, true);
  expect_report(sends, 3, 4, false);
  EXPECT_FALSE(sends.take());
  sends.sent(true);
  expect_report(sends, 5, 5, true);
}

TEST(ZeroCopy, AReportIsShownUntilItIsTaken) {
  ZeroCopy sends;
  EXPECT_LT(sends.shown_at(), 0);
  sends.enable(true);
  ASSERT_GE(sends.shown_at(), 0);
  EXPECT_TRUE(ZeroCopy::any());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(shows(sends));
    sends.sent(true);
    sends.sent(false);
    EXPECT_TRUE(shows(sends));
    (void)sends.take();
    EXPECT_TRUE(shows(sends)) << "there is another one";
    (void)sends.take();
  }
  EXPECT_FALSE(shows(sends));
  sends.close();
  EXPECT_LT(sends.shown_at(), 0);
  EXPECT_FALSE(ZeroCopy::any());
}

// Of a program that never asks.
TEST(ZeroCopy, ReportsHaveALimit) {
  ZeroCopy sends;
  sends.enable(true);
  constexpr uint32_t kSends = 10'000;
  for (uint32_t i = 0; i < kSends; ++i) sends.sent(i % 2 == 0);
  uint32_t count = 0;
  uint32_t next = 0;
  while (const auto report = sends.take()) {
    EXPECT_EQ(report->first, next);
    // What is not claimed of one send is claimed of none that it is reported with.
    EXPECT_TRUE(report->copied || report->first == report->last);
    next = report->last + 1;
    ++count;
  }
  EXPECT_EQ(next, kSends);
  EXPECT_LT(count, 1000U);
}

}  // namespace
}  // namespace weft::sdp
