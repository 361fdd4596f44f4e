#include "ddp/segment_receiver.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/hex.h"

namespace weft::ddp {
namespace {

using test::Buffer;
using wire::Opcode;
namespace term = wire::term;

// Notes which question came when, and refuses where it is told to.
class NotingUlp final : public Ulp {
 public:
  Verdict check(const Segment& s) override { return note('c', s); }
  Verdict open(const Segment& s) override { return note('o', s); }
  Verdict where(const Segment& s, size_t offset, size_t length, PieceList& places) override {
    places.add(place.data() + offset, length);
    return note('w', s);
  }
  wire::TermError unreachable(const Segment& s) override {
    (void)note('u', s).ok();
    return term::kOperationUnspecified;
  }
  Verdict deliver(const Segment& s) override { return note('d', s); }

  std::string calls;
  char refuse = 0;
  Segment last;
  Buffer place = Buffer(70'000);

 private:
  Verdict note(char call, const Segment& s) {
    calls += call;
    last = s;
    if (call == refuse) return fail(term::kOperationUnspecified);
    return Ok{};
  }
};

struct Bench {
  NotingUlp ulp;
  SegmentReceiver receiver{ulp};
};

Buffer untagged(Opcode op, uint32_t qn, uint32_t msn, uint32_t mo, bool last = true) {
  Buffer b(18);
  wire::UntaggedHeader{.control = {.last = last, .opcode = op},
                       .qn = QueueNumber{qn},
                       .msn = Msn{msn},
                       .mo = MessageOffset{mo}}
      .encode(b.data());
  return b;
}
Buffer tagged(Opcode op) {
  Buffer b(14);
  wire::TaggedHeader{.control = {.tagged = true, .last = true, .opcode = op}, .stag = Stag{5}}
      .encode(b.data());
  return b;
}

wire::TermError error_of(const Verdict& v) {
  EXPECT_FALSE(v.ok());
  return v.ok() ? wire::TermError{} : v.error();
}

TEST(SegmentReceiver, TheFirstBitTellsTheHeaderSize) {
  const Bench b;
  EXPECT_EQ(b.receiver.header_size(std::byte{0x41}), 18U);
  EXPECT_EQ(b.receiver.header_size(std::byte{0xc1}), 14U);
}

TEST(SegmentReceiver, AGoodSegmentGoesThroughAllQuestions) {
  Bench b;
  ASSERT_TRUE(b.receiver.begin(untagged(Opcode::send, 0, 1, 0), 18 + 7).ok());
  EXPECT_EQ(b.ulp.last.payload, 7U);
  PieceList places;
  ASSERT_TRUE(b.receiver.where(2, 5, places).ok());
  EXPECT_EQ(places.pieces()[0].iov_base, b.ulp.place.data() + 2);
  ASSERT_TRUE(b.receiver.deliver().ok());
  EXPECT_EQ(b.ulp.calls, "cowd");
  EXPECT_TRUE(b.receiver.segment_valid());
  EXPECT_EQ(b.receiver.segment().qn, kSendQueue);
}

// RFC 5041 section 7: each check comes before the one whose input it guards; the first that fails
// names the error.
TEST(SegmentReceiver, OrderOfChecks) {
  Bench b;
  // Not even the header: MPA's length was wrong.
  EXPECT_EQ(error_of(b.receiver.begin(Bytes{untagged(Opcode::send, 0, 1, 0)}.first(17), 17)),
            term::kMpaLength);
  EXPECT_EQ(error_of(b.receiver.begin(Bytes{tagged(Opcode::write)}.first(13), 13)),
            term::kMpaLength);
  EXPECT_EQ(error_of(b.receiver.begin(Bytes{tagged(Opcode::write)}.first(1), 1)), term::kMpaLength);
  EXPECT_FALSE(b.receiver.segment_valid());

  // DDP version before RDMAP version before everything else.
  Buffer h = untagged(Opcode{15}, 9, 9, 9);
  h[0] = std::byte{0x42};
  h[1] &= std::byte{0x3f};
  EXPECT_EQ(error_of(b.receiver.begin(h, 18)), term::kUntaggedVersion);
  h[0] = std::byte{0xc0};
  EXPECT_EQ(error_of(b.receiver.begin(Bytes{h}.first(14), 14)), term::kTaggedVersion);
  h[0] = std::byte{0x41};
  EXPECT_EQ(error_of(b.receiver.begin(h, 18)), term::kOperationVersion);
  EXPECT_EQ(b.ulp.calls, "") << "nothing of it can be believed";
  EXPECT_FALSE(b.receiver.segment_valid());

  // The ULP knows its opcodes and queues; then the size that the opcode needs; then the queue; then
  // MSN and MO.
  b.ulp.refuse = 'c';
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::read_request, 9, 9, 9), 18)),
            term::kOperationUnspecified);
  EXPECT_TRUE(b.receiver.segment_valid());
  b.ulp.refuse = 0;
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::read_request, 9, 9, 9), 45)),
            term::kMpaLength);
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::read_request, 9, 9, 9), 46)),
            term::kUntaggedInvalidQn);
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::read_request, 1, 9, 9), 46)),
            term::kUntaggedMsnRange);
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::read_request, 1, 1, 9), 46)),
            term::kUntaggedInvalidMo);
  EXPECT_EQ(b.ulp.calls, "ccccc");
  b.ulp.refuse = 'o';
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::read_request, 1, 1, 0), 46)),
            term::kOperationUnspecified);
}

TEST(SegmentReceiver, QueueNumbersBeyondTheLastAreRefused) {
  Bench b;
  for (const uint32_t qn : {4U, 5U, 0x80000000U, 0xffffffffU}) {
    EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::send, qn, 1, 0), 18)),
              term::kUntaggedInvalidQn);
  }
}

TEST(SegmentReceiver, EachQueueCountsForItself) {
  Bench b;
  const auto take = [&](uint32_t qn, uint32_t msn, uint32_t mo, size_t payload, bool last) {
    const bool good =
        b.receiver.begin(untagged(Opcode::send, qn, msn, mo, last), 18 + payload).ok();
    return good && b.receiver.deliver().ok();
  };
  EXPECT_TRUE(take(0, 1, 0, 100, false));
  EXPECT_TRUE(take(1, 1, 0, 0, true));
  EXPECT_TRUE(take(3, 1, 0, 0, true));
  EXPECT_TRUE(take(0, 1, 100, 50, true));
  EXPECT_TRUE(take(0, 2, 0, 0, true));
  EXPECT_TRUE(take(1, 2, 0, 0, true));
  EXPECT_FALSE(take(3, 1, 0, 0, true));
}

TEST(SegmentReceiver, ASegmentThatIsNotDeliveredDoesNotCount) {
  Bench b;
  ASSERT_TRUE(b.receiver.begin(untagged(Opcode::send, 0, 1, 0), 18).ok());
  // Its CRC was wrong, say: the next one is judged as if it had not been.
  EXPECT_EQ(error_of(b.receiver.begin(untagged(Opcode::send, 0, 2, 0), 18)),
            term::kUntaggedMsnRange);
}

TEST(SegmentReceiver, TaggedSegmentsHaveNoQueue) {
  Bench b;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(b.receiver.begin(tagged(Opcode::write), 20).ok());
    ASSERT_TRUE(b.receiver.deliver().ok());
  }
  EXPECT_EQ(b.ulp.calls, "codcodcod");
  EXPECT_EQ(b.ulp.last.stag, Stag{5});
}

}  // namespace
}  // namespace weft::ddp
