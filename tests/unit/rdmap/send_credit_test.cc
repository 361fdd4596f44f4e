#include "rdmap/send_credit.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace weft::rdmap {
namespace {

TEST(SendCredit, CoveredUpToTheMessageThatAsked) {
  SendCredit c;
  c.sent(100);
  c.sent(200);
  c.asked(2);
  c.sent(50);
  EXPECT_EQ(c.used(), 350U);
  c.covered(1);
  EXPECT_EQ(c.used(), 350U) << "counted at messages that ask";
  c.covered(2);
  EXPECT_EQ(c.used(), 50U);
  c.asked(3);
  c.covered(3);
  EXPECT_EQ(c.used(), 0U);
}

TEST(SendCredit, OneReportCoversManyQuestions) {
  SendCredit c;
  for (uint64_t m = 1; m <= 50; ++m) {
    c.sent(10);
    c.asked(m);
  }
  c.covered(49);
  EXPECT_EQ(c.used(), 10U);
}

// More questions than it can remember: then it believes for a while that more is on the way than
// there is, never less, and in the end nothing is.
TEST(SendCredit, NeverLessThanThereIs) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    SendCredit c;
    std::map<uint64_t, uint64_t> bytes;  // message -> size
    uint64_t message = 0;
    uint64_t run = 0;
    uint64_t last_asked = 0;
    for (int step = 0; step < 3000; ++step) {
      if (random.next() % 8 != 0) {
        const auto n = static_cast<uint32_t>(random.next() % 1000);
        bytes[++message] = n;
        c.sent(n);
        if (random.next() % 3 == 0) c.asked(last_asked = message);
      } else if (run < message) {
        c.covered(run += random.next() % (message - run + 1));
      }
      uint64_t exact = 0;
      for (auto it = bytes.upper_bound(run); it != bytes.end(); ++it) exact += it->second;
      ASSERT_GE(c.used(), exact) << "seed " << seed << " step " << step;
    }
    c.asked(message);
    c.covered(message);
    EXPECT_EQ(c.used(), 0U);
  }
}

}  // namespace
}  // namespace weft::rdmap
