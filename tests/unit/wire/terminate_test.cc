#include "wire/terminate.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"
#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;
using Layout = Terminate::Layout;

std::string encoded(const Terminate& t) {
  Buffer b(Terminate::kMaxSize + 1, std::byte{0xee});
  const size_t n = t.encode(b.data());
  EXPECT_LE(n, Terminate::kMaxSize);
  EXPECT_EQ(b[n], std::byte{0xee}) << "wrote beyond what it returned";
  b.resize(n);
  return to_hex(b);
}

Terminate with_headers(TermError error, Bytes ddp, Bytes rdmap) {
  Terminate t;
  t.error = error;
  t.has_segment_length = true;
  t.segment_length = 0x0122;
  t.ddp_header_size = static_cast<uint8_t>(ddp.size());
  std::copy(ddp.begin(), ddp.end(), t.ddp_header.begin());
  t.rdmap_header_size = static_cast<uint8_t>(rdmap.size());
  std::copy(rdmap.begin(), rdmap.end(), t.rdmap_header.begin());
  return t;
}

// --- encode: spec/errors 1.1

TEST(TerminateEncode, ErrorAlone) {
  Terminate t;
  t.error = term::kMpaCrc;
  EXPECT_EQ(encoded(t), "20 02 00 00");
  t.error = term::kUntaggedTooLong;
  EXPECT_EQ(encoded(t), "12 05 00 00");
}

TEST(TerminateEncode, SegmentLengthGoesWithMOrD) {
  Terminate t;
  t.error = term::kTaggedBounds;
  t.segment_length = 0x0122;
  EXPECT_EQ(encoded(t), "11 01 00 00");
  t.has_segment_length = true;
  EXPECT_EQ(encoded(t), "11 01 80 00 01 22");
  t.has_segment_length = false;
  t.ddp_header_size = 14;
  EXPECT_EQ(encoded(t).substr(0, 18), "11 01 40 00 01 22 ");
}

TEST(TerminateEncode, HeadersOfEverySize) {
  const Buffer tagged = from_hex("c1 40 01 02 03 04 11 12 13 14 15 16 17 18");
  const Buffer read = from_hex("41 41 00 00 00 00 00 00 00 01 00 00 00 07 00 00 00 00");
  const Buffer atomic = from_hex("41 4a 00 00 00 00 00 00 00 01 00 00 00 07 00 00 00 00");
  const Buffer read_header = test::pattern(ReadRequest::kSize, 1);
  const Buffer atomic_header = test::pattern(AtomicRequest::kSize, 2);
  EXPECT_EQ(encoded(with_headers(term::kTaggedBounds, tagged, {})),
            "11 01 c0 00 01 22 " + to_hex(tagged));
  EXPECT_EQ(encoded(with_headers(term::kProtectionBounds, read, read_header)),
            "01 01 e0 00 01 22 " + to_hex(read) + " " + to_hex(read_header));
  const std::string largest = encoded(with_headers(term::kProtectionBounds, atomic, atomic_header));
  EXPECT_EQ(largest, "01 01 e0 00 01 22 " + to_hex(atomic) + " " + to_hex(atomic_header));
  EXPECT_EQ(from_hex(largest).size(), Terminate::kMaxSize);
}

// --- which layout: the decoder of spec/errors 1.2, row by row

struct LayoutRow {
  const char* why;
  uint8_t first, code, control;
  bool started;
  Layout layout;
};
class GuessLayout : public testing::TestWithParam<LayoutRow> {};
TEST_P(GuessLayout, Row) {
  const LayoutRow& r = GetParam();
  EXPECT_EQ(Terminate::guess_layout(r.first, r.code, r.control, r.started), r.layout) << r.why;
}
INSTANTIATE_TEST_SUITE_P(
    Specification, GuessLayout,
    testing::Values(
        LayoutRow{"RFC header bits decide", 0x21, 0x02, 0xc0, true, Layout::rfc},
        LayoutRow{"each of them: M", 0x21, 0x02, 0x80, true, Layout::rfc},
        LayoutRow{"each of them: D", 0x21, 0x02, 0x40, true, Layout::rfc},
        LayoutRow{"each of them: R", 0x21, 0x02, 0x20, true, Layout::rfc},
        LayoutRow{"siw header bits decide", 0x12, 0x02, 0x03, true, Layout::siw},
        LayoutRow{"each of them: M", 0x12, 0x02, 0x01, true, Layout::siw},
        LayoutRow{"each of them: D", 0x12, 0x02, 0x02, true, Layout::siw},
        LayoutRow{"each of them: R", 0x12, 0x02, 0x04, true, Layout::siw},
        LayoutRow{"neither: RDMAP local, same in both", 0x00, 0x00, 0x00, true, Layout::rfc},
        LayoutRow{"neither: DDP tagged, same in both", 0x11, 0x01, 0x00, true, Layout::rfc},
        LayoutRow{"DDP untagged", 0x12, 0x05, 0x00, true, Layout::rfc},
        LayoutRow{"DDP untagged, swapped", 0x21, 0x05, 0x00, true, Layout::siw},
        LayoutRow{"0x20 code 04: LLP bad frame", 0x20, 0x04, 0x00, true, Layout::rfc},
        LayoutRow{"0x20 code 05: RDMAP version", 0x20, 0x05, 0x00, true, Layout::siw},
        LayoutRow{"0x20 code 06: unexpected opcode", 0x20, 0x06, 0x00, true, Layout::siw},
        LayoutRow{"0x20 code 07: catastrophic stream", 0x20, 0x07, 0x00, true, Layout::siw},
        LayoutRow{"0x20 code 08", 0x20, 0x08, 0x00, true, Layout::rfc},
        LayoutRow{"start-up, 0x20 code 05: LLP", 0x20, 0x05, 0x00, false, Layout::rfc},
        LayoutRow{"start-up, 0x20 code 06: insufficient IRD", 0x20, 0x06, 0x00, false, Layout::rfc},
        LayoutRow{"start-up, 0x20 code 07: no matching RTR", 0x20, 0x07, 0x00, false, Layout::rfc},
        LayoutRow{"0x02 code 02: CRC", 0x02, 0x02, 0x00, true, Layout::siw},
        LayoutRow{"0x02 code 04: bad frame", 0x02, 0x04, 0x00, true, Layout::siw},
        LayoutRow{"0x02 code 05: RDMAP version", 0x02, 0x05, 0x00, true, Layout::rfc},
        LayoutRow{"0x02 code 06: unexpected opcode", 0x02, 0x06, 0x00, true, Layout::rfc},
        LayoutRow{"start-up, 0x02 code 04", 0x02, 0x04, 0x00, false, Layout::siw},
        LayoutRow{"start-up, 0x02 code 06: insufficient IRD", 0x02, 0x06, 0x00, false, Layout::siw},
        LayoutRow{"start-up, 0x02 code 07: no matching RTR", 0x02, 0x07, 0x00, false, Layout::siw},
        LayoutRow{"RDMAP protection", 0x01, 0x00, 0x00, true, Layout::rfc},
        LayoutRow{"DDP catastrophic", 0x10, 0x00, 0x00, true, Layout::rfc},
        LayoutRow{"bits of both kinds decide nothing: first byte", 0x21, 0x02, 0xc3, true,
                  Layout::siw},
        LayoutRow{"bits of both kinds decide nothing: first byte", 0x12, 0x02, 0xc3, true,
                  Layout::rfc},
        LayoutRow{"reserved bits are no header bits", 0x21, 0x02, 0x18, true, Layout::siw}));

// --- parse

TEST(TerminateParse, WithTheExtensionItIsAlwaysTheRfcs) {
  const Buffer b = from_hex("20 06 00 00");
  EXPECT_EQ(Terminate::parse(b, true, true).error, term::kMpaInsufficientIrd);
  EXPECT_EQ(Terminate::parse(b, false, true).error, term::kOperationUnexpectedOpcode);
  EXPECT_EQ(Terminate::parse(b, false, false).error, term::kMpaInsufficientIrd);
  EXPECT_EQ(Terminate::parse(from_hex("21 02 03 00"), true, true).error,
            (TermError{Layer::llp, 1, 0x02}));
}

TEST(TerminateParse, EveryErrorOfBothLayoutsInAndOutOfStartUp) {
  // What siw and weft send is understood by weft without the extension, as long as the row of 5.2
  // is not ambiguous.
  struct Row {
    const char* bytes;
    bool started;
    TermError error;
  };
  const Row rows[] = {
      {"00 ff 00 00", true, {Layer::rdmap, 0, 0xff}},  // siw, local SGE fault
      {"02 02 00 00", true, term::kMpaCrc},            // siw
      {"20 02 00 00", true, term::kMpaCrc},            // weft
      {"02 06 00 00", false, term::kMpaInsufficientIrd},
      {"02 07 00 00", false, term::kMpaNoMatchingRtr},
      {"20 06 00 00", true, term::kOperationUnexpectedOpcode},
      {"02 06 00 00", true, term::kOperationUnexpectedOpcode},
      {"02 05 00 00", true, term::kOperationVersion},
      {"12 06 00 00", true, term::kUntaggedVersion},
      {"21 06 00 00", true, term::kUntaggedVersion},
      {"01 00 00 00", true, term::kProtectionInvalidStag},
      {"10 00 00 00", true, term::kDdpCatastrophic},
      {"11 00 00 00", true, term::kTaggedInvalidStag},
  };
  for (const Row& r : rows) {
    EXPECT_EQ(Terminate::parse(from_hex(r.bytes), false, r.started).error, r.error)
        << r.bytes << (r.started ? "" : " in start-up");
  }
}

TEST(TerminateParse, TakesTheHeadersOut) {
  const Buffer tagged = from_hex("81 40 01 02 03 04 11 12 13 14 15 16 17 18");
  const Buffer b = test::join({from_hex("11 01 c0 00 01 22"), tagged});
  for (const bool extension : {false, true}) {
    const Terminate t = Terminate::parse(b, extension, true);
    EXPECT_EQ(t.error, term::kTaggedBounds);
    EXPECT_TRUE(t.has_segment_length);
    EXPECT_EQ(t.segment_length, 0x0122);
    ASSERT_EQ(t.ddp_header_size, TaggedHeader::kSize);
    EXPECT_EQ(TaggedHeader::parse(t.ddp_header.data()).to, TaggedOffset{0x1112131415161718});
    EXPECT_EQ(t.rdmap_header_size, 0);
    EXPECT_EQ(encoded(t), to_hex(b));
  }
}

TEST(TerminateParse, TheDdpHeaderTellsAReadFromAnAtomic) {
  const Buffer read = from_hex("41 41 00 00 00 00 00 00 00 01 00 00 00 07 00 00 00 00");
  const Buffer atomic = from_hex("41 4a 00 00 00 00 00 00 00 01 00 00 00 07 00 00 00 00");
  const Buffer rest = test::pattern(AtomicRequest::kSize, 3);
  const auto parse = [&](Bytes ddp, size_t n) {
    return Terminate::parse(test::join({from_hex("01 01 e0 00 01 22"), ddp, Bytes{rest}.first(n)}),
                            true, true);
  };
  EXPECT_EQ(parse(read, 28).rdmap_header_size, 28);
  EXPECT_EQ(parse(read, 52).rdmap_header_size, 28) << "a Read Request has no more";
  EXPECT_EQ(parse(read, 27).rdmap_header_size, 0);
  EXPECT_EQ(parse(atomic, 52).rdmap_header_size, 52);
  EXPECT_EQ(parse(atomic, 51).rdmap_header_size, 0) << "cut short, left out";
  const Terminate t = parse(atomic, 52);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), t.rdmap_header.begin()));
}

TEST(TerminateParse, WhatIsCutOffIsLeftOut) {
  const Buffer whole = test::join(
      {from_hex("01 01 e0 00 01 22 41 41 00 00 00 00 00 00 00 01 00 00 00 07 00 00 00 00"),
       test::pattern(ReadRequest::kSize, 4)});
  for (size_t n = 0; n <= whole.size(); ++n) {
    const Terminate t = Terminate::parse(Bytes{whole}.first(n), true, true);
    EXPECT_EQ(t.error, n < 4 ? (TermError{Layer::rdmap, 2, 0xff}) : term::kProtectionBounds) << n;
    EXPECT_EQ(t.has_segment_length, n >= 6) << n;
    EXPECT_EQ(t.ddp_header_size, n >= 24 ? 18 : 0) << n;
    EXPECT_EQ(t.rdmap_header_size, n >= 52 ? 28 : 0) << n;
  }
}

TEST(TerminateParse, SiwSaysRWhereNoHeaderFollows) {
  // spec/errors 1.2: R for RDMAP protection errors in general; here on a Write.
  const Buffer b = from_hex("10 02 07 00 00 00 c1 40 01 02 03 04 11 12 13 14 15 16 17 18");
  const Terminate t = Terminate::parse(b, false, true);
  EXPECT_EQ(t.error, term::kProtectionAccess);
  EXPECT_EQ(t.ddp_header_size, TaggedHeader::kSize);
  EXPECT_EQ(t.rdmap_header_size, 0);
}

TEST(TerminateParse, TellsWhichLayoutItWas) {
  EXPECT_EQ(Terminate::parse(from_hex("10 02 07 00"), false, true).layout, Layout::siw);
  EXPECT_EQ(Terminate::parse(from_hex("01 02 e0 00"), false, true).layout, Layout::rfc);
  EXPECT_EQ(Terminate::parse(from_hex("21 02 00 00"), false, true).layout, Layout::siw);
  EXPECT_EQ(Terminate::parse(from_hex("12 02 00 00"), false, true).layout, Layout::rfc);
  EXPECT_EQ(Terminate::parse(from_hex("10 02 07 00"), true, true).layout, Layout::rfc)
      << "between wefts it is always the RFC's";
}

TEST(TerminateParse, UnknownLayersEndTheStreamAsRdmap) {
  for (unsigned layer = 3; layer < 16; ++layer) {
    const Buffer b{static_cast<std::byte>(layer << 4 | 5), std::byte{0x42}, std::byte{0x80},
                   std::byte{0}};
    EXPECT_EQ(Terminate::parse(b, true, true).error, (TermError{Layer::rdmap, 5, 0x42})) << layer;
  }
}

TEST(TerminateParse, EveryThreeByteStartInEveryModeIsAnErrorThatCanBePrinted) {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned control = 0; control < 256; ++control) {
      for (const uint8_t code : {0x00, 0x02, 0x05, 0x09, 0xff}) {
        const Buffer b{static_cast<std::byte>(first), std::byte{code},
                       static_cast<std::byte>(control), std::byte{0}};
        for (const bool extension : {false, true}) {
          const Terminate t = Terminate::parse(b, extension, true);
          ASSERT_LE(static_cast<unsigned>(t.error.layer), 2U);
          ASSERT_LE(t.error.etype, 15);
          ASSERT_EQ(t.error.code, code);
        }
      }
    }
  }
}

// --- names and numbers

TEST(TermError, NumbersOfTheSpecification) {
  struct Row {
    TermError error;
    int layer, etype, code;
  };
  const Row rows[] = {
      {term::kLocalCatastrophic, 0, 0, 0x00},
      {term::kProtectionInvalidStag, 0, 1, 0x00},
      {term::kProtectionBounds, 0, 1, 0x01},
      {term::kProtectionAccess, 0, 1, 0x02},
      {term::kProtectionNotOnStream, 0, 1, 0x03},
      {term::kProtectionToWrap, 0, 1, 0x04},
      {term::kProtectionCannotInvalidate, 0, 1, 0x09},
      {term::kProtectionUnspecified, 0, 1, 0xff},
      {term::kOperationVersion, 0, 2, 0x05},
      {term::kOperationUnexpectedOpcode, 0, 2, 0x06},
      {term::kOperationCatastrophicStream, 0, 2, 0x07},
      {term::kOperationCannotInvalidate, 0, 2, 0x09},
      {term::kDdpCatastrophic, 1, 0, 0x00},
      {term::kTaggedInvalidStag, 1, 1, 0x00},
      {term::kTaggedBounds, 1, 1, 0x01},
      {term::kTaggedNotOnStream, 1, 1, 0x02},
      {term::kTaggedToWrap, 1, 1, 0x03},
      {term::kTaggedVersion, 1, 1, 0x04},
      {term::kUntaggedInvalidQn, 1, 2, 0x01},
      {term::kUntaggedNoBuffer, 1, 2, 0x02},
      {term::kUntaggedMsnRange, 1, 2, 0x03},
      {term::kUntaggedInvalidMo, 1, 2, 0x04},
      {term::kUntaggedTooLong, 1, 2, 0x05},
      {term::kUntaggedVersion, 1, 2, 0x06},
      {term::kMpaConnectionLost, 2, 0, 0x01},
      {term::kMpaCrc, 2, 0, 0x02},
      {term::kMpaLength, 2, 0, 0x03},
      {term::kMpaBadFrame, 2, 0, 0x04},
      {term::kMpaInsufficientIrd, 2, 0, 0x06},
      {term::kMpaNoMatchingRtr, 2, 0, 0x07},
  };
  for (const Row& r : rows) {
    EXPECT_EQ(static_cast<int>(r.error.layer), r.layer) << r.error.to_string();
    EXPECT_EQ(r.error.etype, r.etype) << r.error.to_string();
    EXPECT_EQ(r.error.code, r.code) << r.error.to_string();
    Terminate t;
    t.error = r.error;
    EXPECT_EQ(Terminate::parse(from_hex(encoded(t)), true, true).error, r.error);
  }
}

TEST(TermError, ToString) {
  EXPECT_EQ(term::kMpaCrc.to_string(), "LLP error type 0 code 0x02");
  EXPECT_EQ(term::kTaggedVersion.to_string(), "DDP error type 1 code 0x04");
  const Terminate t =
      with_headers(term::kProtectionBounds, test::pattern(18, 1), test::pattern(28, 2));
  EXPECT_EQ(t.to_string(),
            "Terminate: RDMAP error type 1 code 0x01, with DDP header, with RDMAP header");
}

}  // namespace
}  // namespace weft::wire
