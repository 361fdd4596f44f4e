#include "ddp/untagged_queue.h"

#include <gtest/gtest.h>

namespace weft::ddp {
namespace {

namespace term = wire::term;

Segment segment(uint32_t msn, uint32_t mo, uint32_t payload, bool last) {
  Segment s;
  s.control.last = last;
  s.msn = Msn{msn};
  s.mo = MessageOffset{mo};
  s.payload = payload;
  return s;
}

wire::TermError refused(const UntaggedQueue& q, const Segment& s) {
  const auto v = q.check(s);
  EXPECT_FALSE(v.ok());
  return v.ok() ? wire::TermError{} : v.error();
}

// RFC 5041 section 4.3: MSN starts at 1 and grows by one for each message.
TEST(UntaggedQueue, StartsAtOne) {
  const UntaggedQueue q;
  EXPECT_TRUE(q.check(segment(1, 0, 10, true)).ok());
  EXPECT_EQ(refused(q, segment(0, 0, 10, true)), term::kUntaggedMsnRange);
  EXPECT_EQ(refused(q, segment(2, 0, 10, true)), term::kUntaggedMsnRange);
  EXPECT_EQ(refused(q, segment(1, 1, 10, true)), term::kUntaggedInvalidMo);
}

TEST(UntaggedQueue, TheOffsetGrowsByTheExactPayload) {
  UntaggedQueue q;
  q.advance(segment(1, 0, 1000, false));
  EXPECT_TRUE(q.check(segment(1, 1000, 5, true)).ok());
  EXPECT_EQ(refused(q, segment(1, 999, 5, true)), term::kUntaggedInvalidMo);
  EXPECT_EQ(refused(q, segment(1, 1001, 5, true)), term::kUntaggedInvalidMo);
  EXPECT_EQ(refused(q, segment(2, 0, 5, true)), term::kUntaggedMsnRange)
      << "the message is not at its end";
  q.advance(segment(1, 1000, 5, true));
  EXPECT_TRUE(q.check(segment(2, 0, 5, true)).ok());
  EXPECT_EQ(q.expected(), Msn{2});
}

TEST(UntaggedQueue, AMessageEndsBeforeItsOffsetWraps) {
  UntaggedQueue q;
  for (uint64_t at = 0; at + 65'535 < UINT32_MAX; at += 65'535)
    q.advance(segment(1, 0, 65'535, false));
  const uint32_t at = UINT32_MAX / 65'535 * 65'535 - 65'535;
  EXPECT_TRUE(q.check(segment(1, at, UINT32_MAX - at, true)).ok());
  EXPECT_EQ(refused(q, segment(1, at, UINT32_MAX - at + 1, true)), term::kUntaggedTooLong);
}

// spec/rdmap 2.1: the MSN wraps modulo 2^32, and 0 is a legal value then.
TEST(UntaggedQueue, TheMsnWraps) {
  UntaggedQueue q{Msn{0xfffffffe}};
  for (const uint32_t msn : {0xfffffffeU, 0xffffffffU, 0U, 1U, 2U}) {
    EXPECT_EQ(q.expected(), Msn{msn});
    EXPECT_TRUE(q.check(segment(msn, 0, 100, false)).ok());
    EXPECT_EQ(refused(q, segment(msn + 1, 0, 100, false)), term::kUntaggedMsnRange);
    q.advance(segment(msn, 0, 100, false));
    q.advance(segment(msn, 100, 0, true));
  }
}

}  // namespace
}  // namespace weft::ddp
