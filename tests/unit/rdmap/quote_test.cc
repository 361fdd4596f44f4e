#include "rdmap/quote.h"

#include <gtest/gtest.h>

#include "tests/support/pattern.h"
#include "wire/rdmap_messages.h"

namespace weft::rdmap {
namespace {

using wire::Opcode;
namespace term = wire::term;

class QuoteTest : public ::testing::Test {
 protected:
  QuoteTest() {
    segment.control.opcode = Opcode::read_request;
    segment.ulpdu = 46;
    for (size_t i = 0; i < segment.header.size(); ++i) {
      segment.header[i] = static_cast<std::byte>(i * 7 + 1);
    }
  }
  wire::Terminate answer(wire::TermError error) const {
    return Quote{.segment = &segment, .request = request}.answer(error);
  }

  ddp::Segment segment;
  test::Buffer request = test::pattern_bytes(wire::ReadRequest::kSize, 4);
};

TEST_F(QuoteTest, HasTheHeaderAndLengthOfTheSegment) {
  const wire::Terminate t = answer(term::kUntaggedTooLong);
  EXPECT_EQ(t.error, term::kUntaggedTooLong);
  ASSERT_TRUE(t.has_segment_length);
  EXPECT_EQ(t.segment_length, 46);
  EXPECT_EQ(t.ddp_header_size, segment.header_bytes().size());
  EXPECT_TRUE(std::equal(segment.header.begin(), segment.header.end(), t.ddp_header.begin()));
  EXPECT_EQ(t.rdmap_header_size, 0) << "the error is one of DDP";
}

TEST_F(QuoteTest, OfATaggedSegmentHasTheShorterHeader) {
  segment.control.tagged = true;
  segment.control.opcode = Opcode::write;
  EXPECT_EQ(answer(term::kTaggedBounds).ddp_header_size, segment.header_bytes().size());
  EXPECT_LT(segment.header_bytes().size(), segment.header.size());
}

TEST_F(QuoteTest, HasTheReadRequestThatRdmapRefuses) {
  const wire::Terminate t = answer(term::kProtectionBounds);
  ASSERT_EQ(t.rdmap_header_size, request.size());
  EXPECT_TRUE(std::equal(request.begin(), request.end(), t.rdmap_header.begin()));
  segment.control.opcode = Opcode::atomic_request;
  EXPECT_EQ(answer(term::kProtectionBounds).rdmap_header_size, 0);
}

TEST_F(QuoteTest, IsNothingWhereTheErrorIsOfNoSegment) {
  for (const wire::TermError& error :
       {term::kLocalCatastrophic, term::kOperationUnexpectedOpcode, term::kUntaggedVersion}) {
    const wire::Terminate t = answer(error);
    EXPECT_EQ(t.error, error);
    EXPECT_FALSE(t.has_segment_length);
    EXPECT_EQ(t.ddp_header_size, 0);
  }
  EXPECT_FALSE(Quote{}.answer(term::kUntaggedTooLong).has_segment_length);
}

}  // namespace
}  // namespace weft::rdmap
