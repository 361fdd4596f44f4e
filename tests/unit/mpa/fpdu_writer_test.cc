#include "mpa/fpdu_writer.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/crc32c.h"
#include "base/random.h"
#include "base/slow_copy.h"
#include "tests/support/append.h"
#include "tests/support/fault_catcher.h"
#include "tests/support/fpdu.h"
#include "tests/support/spec_example.h"
#include "wire/ddp_header.h"

namespace weft::mpa {
namespace {

using test::Buffer;
using test::pattern;
using test::to_hex;

Buffer bytes_of(const TxBatch& batch) {
  return test::joined(batch.pieces());
}

FpduWriter writer(bool crc, bool markers = false) {
  FpduWriter w;
  w.configure(crc, markers);
  return w;
}

Buffer to_bytes(uint32_t length) {
  Buffer b(sizeof length);
  store_be(b.data(), length);
  return b;
}

// `payload` in pieces of the sizes given; the rest is the last one.
std::vector<IoVec> cut(Buffer& payload, std::initializer_list<size_t> sizes) {
  std::vector<IoVec> pieces;
  size_t at = 0;
  for (const size_t n : sizes) {
    pieces.push_back({payload.data() + at, n});
    at += n;
  }
  if (at < payload.size()) pieces.push_back({payload.data() + at, payload.size() - at});
  return pieces;
}

Buffer written(FpduWriter& w, Bytes header, std::span<const IoVec> payload) {
  TxBatch batch;
  EXPECT_TRUE(w.write(batch, header, payload));
  return bytes_of(batch);
}

// spec/same-host 3.5: a length of four bytes, and neither pad nor CRC, copied or not.
TEST(FpduWriter, InMemoryLengthAndUlpduAreAll) {
  for (const size_t n : {43U, 70'001U}) {
    FpduWriter w = writer(true);
    w.go_by_memory();
    const Buffer header = pattern(14, 1);
    Buffer payload = pattern(n, 2);
    Buffer expected = to_bytes(static_cast<uint32_t>(14 + n));
    expected.insert(expected.end(), header.begin(), header.end());
    expected.insert(expected.end(), payload.begin(), payload.end());
    EXPECT_EQ(written(w, header, cut(payload, {3, 20})), expected) << n;
  }
}

TEST(FpduWriter, TheExamplesOfTheSpecification) {
  for (const char* name : {"E3 Send", "E9 Write", "E9 Immediate"}) {
    const Buffer frame = test::example(name);
    const test::SplitFpdu parts = test::split_fpdu(frame);
    FpduWriter w = writer(true);
    EXPECT_EQ(to_hex(written(w, parts.ulpdu, {})), to_hex(frame));
    // The same with a part of it as payload.
    Buffer payload{parts.ulpdu.begin() + 14, parts.ulpdu.end()};
    EXPECT_EQ(to_hex(written(w, parts.ulpdu.first(14), cut(payload, {3, 0, 1}))), to_hex(frame));
  }
}

// RFC 5044 section 4.1: PAD makes the length a multiple of four and is sent as zero.
TEST(FpduWriter, EveryPadIsZero) {
  for (size_t n = 14; n < 22; ++n) {
    FpduWriter w = writer(true);
    const Buffer frame = written(w, pattern(n, 1), {});
    const test::SplitFpdu parts = test::split_fpdu(frame);
    EXPECT_EQ(frame.size() % 4, 0U);
    for (const std::byte b : parts.pad) EXPECT_EQ(b, std::byte{0});
    EXPECT_EQ(parts.crc, parts.crc_field);
  }
}

// RFC 5044 section 4.4: without CRC the field is still there; weft sends it as zero.
TEST(FpduWriter, WithoutCrcTheFieldIsZero) {
  for (const size_t n : {size_t{40}, FpduWriter::kCopyBelow + 5}) {
    Buffer payload = pattern(n, 2);
    FpduWriter w = writer(false);
    const Buffer frame = written(w, pattern(14, 1), cut(payload, {7}));
    EXPECT_EQ(test::split_fpdu(frame).crc_field, 0U);
    EXPECT_EQ(frame.size(), wire::fpdu_size(14 + n));
  }
}

TEST(FpduWriter, WithoutCrcSmallPayloadsAreCopiedLargeOnesReferredTo) {
  for (const size_t n : {FpduWriter::kCopyBelow - 1, FpduWriter::kCopyBelow}) {
    Buffer payload = pattern(n, 2);
    FpduWriter w = writer(false);
    TxBatch batch;
    EXPECT_TRUE(w.write(batch, pattern(18, 1), cut(payload, {100, 200})));
    bool refers = false;
    for (const IoVec& v : batch.pieces()) refers |= v.iov_base == payload.data();
    EXPECT_EQ(refers, n >= FpduWriter::kCopyBelow);
    const Buffer frame = bytes_of(batch);
    const test::SplitFpdu parts = test::split_fpdu(frame);
    EXPECT_EQ(Buffer(parts.ulpdu.begin(), parts.ulpdu.end()),
              test::join({pattern(18, 1), payload}));
  }
}

// docs/design/16: 1 to 31 bytes further in its page than it does here, a payload would be copied
// slowly.
TEST(FpduWriter, OfAPayloadThatTheKernelWouldCopySlowlyLittleIsTaken) {
  constexpr size_t kPage = 4096;
  constexpr size_t kHeader = 14;  // and the length before it: the payload lies at 16
  Buffer memory = pattern(2 * kPage, 2);
  const std::byte* const page =
      memory.data() + kPage - reinterpret_cast<uintptr_t>(memory.data()) % kPage;
  const uint32_t little = copies_slowly_close_by() ? FpduWriter::kSlowPart : 60'000;
  const FpduWriter w = writer(false);
  TxBatch batch;
  for (const size_t place : {size_t{0}, size_t{15}, kPage - 15}) {
    EXPECT_EQ(w.part(batch, kHeader, page + place, 60'000), little) << place;
  }
  for (const size_t place : {size_t{16}, kPage - 16, kPage / 2}) {
    EXPECT_EQ(w.part(batch, kHeader, page + place, 60'000), 60'000U) << place;
  }
  EXPECT_EQ(w.part(batch, kHeader, page, FpduWriter::kCopyBelow), FpduWriter::kCopyBelow)
      << "this much is copied anyway, or hardly more";
  EXPECT_EQ(writer(true).part(batch, kHeader, page, 60'000), 60'000U) << "copied, with the CRC";
  FpduWriter in_memory = writer(false);
  in_memory.go_by_memory();
  EXPECT_EQ(in_memory.part(batch, kHeader, page, 60'000), 60'000U);
  FpduWriter first = writer(false);
  ASSERT_TRUE(first.write(batch, pattern(kHeader, 1), {}));
  EXPECT_EQ(first.part(batch, kHeader, page, 60'000), 60'000U) << "not the first of its batch";
}

// docs/design/06: the memory of a request may change while it is sent. What leaves, now or when the
// socket has room, are the bytes that the CRC is of.
TEST(FpduWriter, WithCrcLaterWritesToAPayloadChangeNothing) {
  for (const size_t n : {size_t{64}, FpduWriter::kCopyBelow - 1, FpduWriter::kCopyBelow,
                         size_t{16'384}, size_t{60'000}}) {
    Buffer payload = pattern(n, 2);
    FpduWriter w = writer(true);
    TxBatch batch;
    EXPECT_TRUE(w.write(batch, pattern(18, 1), cut(payload, {10, 30})));
    batch.consumed(20);
    const Buffer before = bytes_of(batch);
    for (std::byte& b : payload) b ^= std::byte{0xff};
    EXPECT_TRUE(bytes_of(batch) == before);
  }
}

TEST(FpduWriter, ManyFpdusShareABatch) {
  FpduWriter w = writer(true);
  TxBatch batch;
  Buffer expected;
  std::vector<Buffer> payloads;
  for (size_t i = 0; i < 12; ++i) payloads.push_back(pattern(i * i * 300, i));
  for (Buffer& payload : payloads) {
    ASSERT_TRUE(w.fits(batch, 18, payload.size(), 2));
    EXPECT_TRUE(w.write(batch, pattern(18, 7), cut(payload, {payload.size() / 2})));
    const Buffer frame = test::make_fpdu(test::join({pattern(18, 7), payload}));
    expected.insert(expected.end(), frame.begin(), frame.end());
  }
  EXPECT_TRUE(bytes_of(batch) == expected);
}

// What fits() grants is what write() takes, until the batch is full; then it says no.
TEST(FpduWriter, FitsIsAPromise) {
  for (const bool markers : {false, true}) {
    for (const size_t n :
         {size_t{0}, size_t{100}, size_t{1428}, size_t{4095}, size_t{4096}, size_t{60'000}}) {
      FpduWriter w = writer(true, markers);
      TxBatch batch;
      Buffer payload = pattern(n, 3);
      size_t count = 0;
      for (; w.fits(batch, 18, n, 1); ++count) {
        EXPECT_TRUE(w.write(batch, pattern(18, 1), cut(payload, {})));
        ASSERT_LT(count, TxBatch::kStaging / 16);
      }
      EXPECT_GE(count, 1U) << "an empty batch takes any FPDU";
      EXPECT_LE(batch.pieces().size(), TxBatch::kMostPieces);
      EXPECT_LE(batch.bytes(), TxBatch::kMostBytes + wire::fpdu_size(wire::kMaxUlpdu));
    }
  }
}

// write_short() is write() for those that it takes: the same bytes, in TCP's form and in memory's.
TEST(FpduWriter, AShortOneHasTheSameBytes) {
  const wire::TaggedHeader tagged{.stag = Stag{0x01020304}, .to = TaggedOffset{0x0506070809}};
  const wire::UntaggedHeader untagged{.ulp_word = 77, .qn = QueueNumber{0}, .msn = Msn{9}};
  for (const bool in_memory : {false, true}) {
    for (const size_t n : {1U, 2U, 3U, 4U, 15U, 64U, 65U, 1000U, 4095U}) {
      Buffer payload = pattern(n, static_cast<uint8_t>(n));
      FpduWriter a = writer(false);
      FpduWriter b = writer(false);
      if (in_memory) {
        a.go_by_memory();
        b.go_by_memory();
      }
      Buffer header(wire::TaggedHeader::kSize);
      tagged.encode(header.data());
      TxBatch batch;
      ASSERT_TRUE(a.writes_short(n));
      ASSERT_EQ(a.write_short(batch, tagged, payload.data(), n), FpduWriter::Short::written);
      Buffer expected = written(b, header, cut(payload, {}));
      header.resize(wire::UntaggedHeader::kSize);
      untagged.encode(header.data());
      ASSERT_EQ(a.write_short(batch, untagged, payload.data(), n), FpduWriter::Short::written);
      const Buffer second = written(b, header, cut(payload, {}));
      expected.insert(expected.end(), second.begin(), second.end());
      EXPECT_EQ(bytes_of(batch), expected) << n;
      EXPECT_EQ(a.fpdus(), 2U);
    }
  }
}

TEST(FpduWriter, IsNotAskedToWriteShortWithCrcOrMarkers) {
  EXPECT_TRUE(writer(false).writes_short(FpduWriter::kCopyBelow - 1));
  EXPECT_FALSE(writer(false).writes_short(FpduWriter::kCopyBelow));
  EXPECT_FALSE(writer(true).writes_short(1));
  EXPECT_FALSE(writer(false, true).writes_short(1));
}

// As many short ones as fits() would promise, in a batch and in a segment.
TEST(FpduWriter, AShortOneHasNoMoreRoom) {
  const wire::TaggedHeader header{.stag = Stag{1}};
  const Buffer payload = pattern(100, 3);
  const size_t frame = wire::fpdu_size(wire::TaggedHeader::kSize + payload.size());
  for (const uint32_t segment : {0U, 1448U}) {
    FpduWriter w = writer(false);
    w.keep_whole_in(segment);
    TxBatch batch;
    size_t count = 0;
    while (w.write_short(batch, header, payload.data(), payload.size()) ==
           FpduWriter::Short::written) {
      ASSERT_LT(++count, TxBatch::kStaging);
    }
    EXPECT_FALSE(w.fits(batch, wire::TaggedHeader::kSize, payload.size(), 1));
    EXPECT_EQ(count, (segment == 0 ? TxBatch::kStaging : segment) / frame);
    EXPECT_EQ(batch.bytes(), count * frame);
  }
}

TEST(FpduWriter, AShortOneWhoseMemoryIsGoneLeavesNothing) {
  const test::FaultCatcher faults;
  FpduWriter w = writer(false);
  TxBatch batch;
  const wire::TaggedHeader header{.stag = Stag{1}};
  const Buffer payload = pattern(100, 3);
  ASSERT_EQ(w.write_short(batch, header, payload.data(), 100), FpduWriter::Short::written);
  const Buffer before = bytes_of(batch);
  const auto* const nowhere = reinterpret_cast<const void*>(uintptr_t{8});
  EXPECT_EQ(w.write_short(batch, header, nowhere, 100), FpduWriter::Short::gone);
  EXPECT_EQ(bytes_of(batch), before);
  EXPECT_EQ(w.fpdus(), 1U);
}

// RFC 5044 section 5.1: where the batch is cut every so many bytes, as TCP does it, each cut is
// between two FPDUs.
TEST(FpduWriter, KeepsEachFpduWholeInASegment) {
  for (const size_t segment : {size_t{1448}, size_t{1398}}) {
    for (const size_t n : {size_t{10}, size_t{700}, size_t{1424 - 48}, size_t{1424}}) {
      const size_t frame = wire::fpdu_size(18 + n);
      if (frame > segment) continue;
      FpduWriter w = writer(true);
      w.keep_whole_in(static_cast<uint32_t>(segment));
      TxBatch batch;
      Buffer payload = pattern(n, 3);
      size_t count = 0;
      for (; count < 100 && w.fits(batch, 18, n, 1); ++count) {
        ASSERT_EQ(batch.bytes() / segment, (batch.bytes() + frame - 1) / segment) << "would be cut";
        EXPECT_TRUE(w.write(batch, pattern(18, 1), cut(payload, {})));
      }
      EXPECT_EQ(count, segment % frame == 0 ? 100U : segment / frame) << n << " of " << segment;
    }
  }
}

// --- markers: RFC 5044 section 4.3, read back by a decoder that goes byte by byte

struct Marked {
  std::vector<Buffer> ulpdus;
  size_t markers = 0;
};

class MarkerDecoder {
 public:
  explicit MarkerDecoder(Bytes stream, bool crc) : stream_(stream), crc_(crc) {}
  Marked decode() {
    while (at_ < stream_.size() && !::testing::Test::HasFailure()) fpdu();
    return std::move(out_);
  }

 private:
  bool marker_due() const { return at_ % 512 == 0; }
  std::byte raw() {
    if (at_ >= stream_.size()) {
      ADD_FAILURE() << "the stream ends inside an FPDU";
      return {};
    }
    return stream_[at_++];
  }
  void marker(uint16_t expected) {
    const size_t where = at_;
    std::byte m[4];
    for (std::byte& b : m) covered_.push_back(b = raw());
    EXPECT_EQ(load_be<uint16_t>(m), 0U) << "reserved half of the marker at " << where;
    EXPECT_EQ(load_be<uint16_t>(m + 2), expected) << "FPDUPTR of the marker at " << where;
    ++out_.markers;
  }
  std::byte next() {
    if (marker_due()) marker(static_cast<uint16_t>(at_ - begin_));
    covered_.push_back(raw());
    return covered_.back();
  }
  void fpdu() {
    covered_.clear();
    // One that directly precedes the ULPDU_Length field says zero.
    if (marker_due()) marker(0);
    begin_ = at_;
    std::byte length[2] = {next(), next()};
    Buffer ulpdu(load_be<uint16_t>(length));
    for (std::byte& b : ulpdu) b = next();
    for (size_t pad = wire::fpdu_pad(ulpdu.size()); pad > 0; --pad) EXPECT_EQ(next(), std::byte{0});
    if (marker_due()) marker(static_cast<uint16_t>(at_ - begin_));
    std::byte field[4];
    for (std::byte& b : field) {
      EXPECT_FALSE(marker_due() && &b != field) << "a marker inside the CRC field";
      b = raw();
    }
    EXPECT_EQ(load_le32(field), crc_ ? crc32c(covered_) : 0U);
    out_.ulpdus.push_back(std::move(ulpdu));
  }

  Bytes stream_;
  const bool crc_;
  size_t at_ = 0;
  size_t begin_ = 0;  // of the ULPDU_Length field
  Buffer covered_;
  Marked out_;
};

TEST(FpduWriter, MarkersStandEvery512BytesAndPointToTheirFpdu) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SeededRandom random(seed);
    const bool crc = seed % 3 != 0;
    FpduWriter w = writer(crc, true);
    Buffer stream;
    std::vector<Buffer> sent;
    for (int i = 0; i < 40; ++i) {
      const size_t n = seed == 7 && i == 3 ? 60'000 : random.next() % (i % 5 == 0 ? 9000 : 600);
      Buffer payload = pattern(n, seed + static_cast<uint64_t>(i));
      const Buffer header = pattern(random.next() % 2 == 0 ? 14 : 18, 5);
      TxBatch batch;
      ASSERT_TRUE(w.fits(batch, header.size(), n, 2));
      EXPECT_TRUE(w.write(batch, header, cut(payload, {n / 3})));
      const Buffer bytes = bytes_of(batch);
      stream.insert(stream.end(), bytes.begin(), bytes.end());
      sent.push_back(test::join({header, payload}));
    }
    const Marked got = MarkerDecoder(stream, crc).decode();
    EXPECT_TRUE(got.ulpdus == sent) << "seed " << seed;
    EXPECT_EQ(got.markers, (stream.size() + 511) / 512) << "seed " << seed;
  }
}

TEST(FpduWriter, TheFirstMarkerPrecedesTheFirstFpdu) {
  FpduWriter w = writer(true, true);
  const Buffer frame = written(w, pattern(22, 1), {});
  EXPECT_EQ(to_hex(Bytes{frame}.first(4)), "00 00 00 00");
  EXPECT_EQ(frame.size(), 4 + wire::fpdu_size(22));
}

}  // namespace
}  // namespace weft::mpa
