#include "rdmap/limits.h"

#include <gtest/gtest.h>

namespace weft::rdmap {
namespace {

using namespace std::chrono_literals;

StreamConfig config(uint32_t emss, bool extension = false, bool markers = false) {
  return {.mpa = {.send_markers = markers, .extension = extension}, .emss = emss};
}

// spec/mpa 3.1: at an MSS of 1448 siw sends Write payloads of 1428 and Send payloads of 1424 bytes.
TEST(MaxPayload, AsSiwAtAnMssOf1448) {
  EXPECT_EQ(max_payload(config(1448), wire::TaggedHeader::kSize), 1428U);
  EXPECT_EQ(max_payload(config(1448), wire::UntaggedHeader::kSize), 1424U);
}

// RFC 5044 section 5.1: the FPDU fits the EMSS; the payload is a multiple of four, so that no pad
// is needed.
TEST(MaxPayload, TheFpduFitsAnyEmss) {
  for (uint32_t emss = 536; emss < 66'000; emss += 1 + emss / 50) {
    for (const size_t header : {wire::TaggedHeader::kSize, wire::UntaggedHeader::kSize}) {
      const uint32_t n = max_payload(config(emss), header);
      const size_t fpdu = wire::fpdu_size(header + n);
      EXPECT_LE(fpdu, emss);
      EXPECT_LT(std::min<size_t>(emss, 65'535) - fpdu, 16U) << "and wastes little of it";
      EXPECT_EQ(n % 4, 0U);
      EXPECT_LE(header + n, wire::kMaxUlpdu);
    }
  }
}

TEST(MaxPayload, AnEmssBelowTheLeastIsNotBelieved) {
  EXPECT_EQ(max_payload(config(0), 14), max_payload(config(536), 14));
  EXPECT_EQ(max_payload(config(88), 18), max_payload(config(536), 18));
}

TEST(MaxPayload, BigFpdusBetweenWeftsOrByOption) {
  EXPECT_EQ(max_payload(config(1448, true), 14), kBigPayload);
  StreamConfig c = config(1448);
  c.big_fpdu = true;
  EXPECT_EQ(max_payload(c, 18), kBigPayload);
  EXPECT_LE(wire::fpdu_size(18 + kBigPayload), 64U * 1024);
}

// spec/same-host 3.5.
TEST(MaxPayload, AMegabyteThroughMemory) {
  StreamConfig c = config(1448, true);
  c.by_memory = true;
  EXPECT_EQ(max_payload(c, wire::TaggedHeader::kSize), 1024U * 1024);
  EXPECT_EQ(max_payload(c, wire::UntaggedHeader::kSize), 1024U * 1024);
}

// Segments matter to plain peers alone; with markers a receiver needs none.
TEST(FpduSegment, IsTcpsWhereFpdusFitIt) {
  EXPECT_EQ(fpdu_segment(config(1448)), 1448U);
  EXPECT_EQ(fpdu_segment(config(1398)), 1398U);
  EXPECT_EQ(fpdu_segment(config(88)), 536U) << "as for the size of FPDUs";
  EXPECT_EQ(fpdu_segment(config(1448, true)), 0U);
  EXPECT_EQ(fpdu_segment(config(1448, false, true)), 0U);
  StreamConfig c = config(1448);
  c.big_fpdu = true;
  EXPECT_EQ(fpdu_segment(c), 0U);
}

// RFC 5044 section 4.5: markers take their share of the segment, wherever the FPDU begins in the
// stream.
TEST(MaxPayload, MarkersTakeTheirShare) {
  for (const uint32_t emss : {536U, 1448U, 8948U, 65'483U}) {
    for (const bool extension : {false, true}) {
      const uint32_t n = max_payload(config(emss, extension, true), 14);
      const size_t fpdu = wire::fpdu_size(14 + n);
      // At the worst place one marker more than the length alone would say.
      EXPECT_LE(fpdu + 4 * ((fpdu + 511) / 512), emss);
    }
  }
}

// InfiniBand 9.7.5.2.8, table 45, in milliseconds.
TEST(RnrTime, TheTableOfInfiniBand) {
  EXPECT_EQ(rnr_time(0), 655'360us);
  EXPECT_EQ(rnr_time(1), 10us);
  EXPECT_EQ(rnr_time(12), 640us);
  EXPECT_EQ(rnr_time(14), 1280us);
  EXPECT_EQ(rnr_time(31), 491'520us);
  EXPECT_EQ(rnr_time(32), rnr_time(0)) << "five bits";
  for (uint8_t code = 2; code < 32; ++code) EXPECT_GT(rnr_time(code), rnr_time(code - 1));
}

}  // namespace
}  // namespace weft::rdmap
