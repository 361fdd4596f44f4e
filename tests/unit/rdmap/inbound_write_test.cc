#include "rdmap/inbound_write.h"

#include <gtest/gtest.h>

#include "tests/support/host.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using wire::Refusal;
namespace term = wire::term;

class InboundWriteTest : public ::testing::Test {
 protected:
  // A segment for byte `at` of the region.
  ddp::Segment segment_at(size_t at, uint32_t payload) const {
    ddp::Segment s;
    s.control = {.tagged = true, .last = true, .opcode = wire::Opcode::write};
    s.stag = stag;
    s.to = TaggedOffset{test::address_of(target).value() + at};
    s.payload = payload;
    return s;
  }
  // Where that part of the segment goes, as a place in the region.
  std::optional<size_t> place(const ddp::Segment& s, size_t offset, size_t length) {
    PieceList places;
    if (!write.where(host, s, offset, length, places).ok()) return {};
    EXPECT_EQ(places.bytes(), length);
    return static_cast<std::byte*>(places.pieces().front().iov_base) - target.data();
  }

  test::Host host;
  Buffer target = Buffer(100);
  Stag stag = host.add_region(target);
  InboundWrite write;
};

TEST_F(InboundWriteTest, ASegmentGoesWhereItSays) {
  const auto s = segment_at(20, 50);
  ASSERT_TRUE(write.open(host, s).ok());
  EXPECT_EQ(place(s, 0, 10), 20U);
  EXPECT_EQ(place(s, 10, 40), 30U);
}

// What was opened is good within the call that brought the segment, and is looked up anew behind
// it (spec/rdmap 2.6).
TEST_F(InboundWriteTest, APlaceIsForgottenAndAskedForAgain) {
  const auto s = segment_at(0, 50);
  ASSERT_TRUE(write.open(host, s).ok());
  const auto region = host.regions.at(stag);
  host.regions.clear();
  EXPECT_EQ(place(s, 0, 10), 0U) << "nobody could deregister it meanwhile";
  write.forget_place();
  EXPECT_FALSE(place(s, 10, 40));
  host.regions[stag] = region;
  EXPECT_EQ(place(s, 10, 40), 10U);
}

TEST_F(InboundWriteTest, EachSegmentIsChecked) {
  const auto outside = write.open(host, segment_at(60, 41));
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error(), term::kTaggedBounds);
  EXPECT_TRUE(write.open(host, segment_at(60, 40)).ok());
  host.regions[stag].rights = static_cast<uint8_t>(work::Access::remote_read);
  const auto forbidden = write.open(host, segment_at(0, 1));
  ASSERT_FALSE(forbidden.ok());
  EXPECT_EQ(forbidden.error(), term::kProtectionAccess);
  host.regions.clear();
  const auto gone = write.open(host, segment_at(0, 1));
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error(), term::kTaggedInvalidStag);
  EXPECT_TRUE(write.open(host, segment_at(0, 0)).ok()) << "no bytes name no memory";
}

// RFC 5041 section 5.2, of all segments together.
TEST_F(InboundWriteTest, NoMessageIsLongerThanItsLengthCanSay) {
  host.regions[stag].length = uint64_t{1} << 33;
  constexpr uint32_t kHalf = 1U << 31;
  write.placed(kHalf);
  EXPECT_TRUE(write.open(host, segment_at(0, kHalf - 1)).ok());
  const auto v = write.open(host, segment_at(0, kHalf));
  ASSERT_FALSE(v.ok());
  EXPECT_EQ(v.error(), term::kTaggedBounds);
  EXPECT_EQ(v.error().why, Refusal::message_too_long);
  write.complete();
  EXPECT_TRUE(write.open(host, segment_at(0, kHalf)).ok()) << "of the next one";
}

// spec/rdmap 1.6.
TEST_F(InboundWriteTest, ItsLengthIsKnownUntilSomethingElseComes) {
  EXPECT_EQ(write.take_preceding(), 0U);
  write.placed(30);
  EXPECT_EQ(write.take_preceding(), 0U) << "half of it";
  write.placed(12);
  write.complete();
  EXPECT_EQ(write.take_preceding(), 42U);
  EXPECT_EQ(write.take_preceding(), 0U) << "once";
  write.placed(5);
  write.complete();
  write.placed(7);
  write.complete();
  EXPECT_EQ(write.take_preceding(), 7U) << "of the last one";
  write.placed(5);
  write.complete();
  write.forget_preceding();
  EXPECT_EQ(write.take_preceding(), 0U);
}

}  // namespace
}  // namespace weft::rdmap
