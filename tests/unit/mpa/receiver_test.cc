#include "mpa/receiver.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "tests/support/fpdu.h"
#include "tests/support/hex.h"

namespace weft::mpa {
namespace {

using test::Buffer;
using test::make_fpdu;
using test::pattern;
namespace term = wire::term;

constexpr size_t kHeader = 14;

// Keeps what it is given: header and payload of each ULPDU, in order. Payload goes to pieces of a
// few bytes to a few hundred.
class Sink final : public UlpduSink {
 public:
  size_t header_size(std::byte first) const override {
    return first == std::byte{0xee} ? 18 : kHeader;
  }
  Verdict begin(Bytes start, size_t ulpdu) override {
    ++begun;
    header.assign(start.begin(), start.end());
    // The receiver asks for a header that is not there only of a ULPDU that is shorter.
    EXPECT_EQ(start.size(), std::min(header_size(start[0]), ulpdu));
    if (refuse_begin) return fail(term::kTaggedInvalidStag);
    place = Buffer(ulpdu - start.size() + 64, std::byte{0xcc});
    return Ok{};
  }
  Verdict where(size_t offset, size_t length, PieceList& places) override {
    if (refuse_where) return fail(term::kTaggedBounds);
    const size_t half = length / 2;
    places.add(place.data() + offset, half);
    places.add(place.data() + offset + half, length - half);
    return Ok{};
  }
  wire::TermError unreachable() override { return term::kTaggedBounds; }
  Verdict deliver() override {
    if (refuse_deliver) return fail(term::kUntaggedMsnRange);
    Buffer whole = header;
    whole.insert(whole.end(), place.begin(), place.end() - 64);
    for (size_t i = place.size() - 64; i < place.size(); ++i) EXPECT_EQ(place[i], std::byte{0xcc});
    ulpdus.push_back(std::move(whole));
    return Ok{};
  }

  int begun = 0;
  bool refuse_begin = false;
  bool refuse_where = false;
  bool refuse_deliver = false;
  Buffer header;
  Buffer place;
  std::vector<Buffer> ulpdus;
};

struct Bench {
  explicit Bench(bool crc, bool empty = false) { receiver.configure(crc, empty); }
  Sink sink;
  Receiver receiver{sink};
};

Buffer stream_of(const std::vector<Buffer>& ulpdus) {
  Buffer all;
  for (const Buffer& u : ulpdus) {
    const Buffer frame = make_fpdu(u);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  return all;
}

// As the engine does it: what is wanted in its place goes there, the rest through a bounce buffer.
// `Cut` draws the sizes.
template <class Cut>
Verdict feed(Receiver& r, Bytes bytes, Cut&& cut) {
  while (!bytes.empty()) {
    const size_t n = std::min<size_t>(cut(), bytes.size());
    if (!r.direct()) {
      if (Verdict v = r.received(bytes.first(n)); !v.ok()) return v;
    } else {
      PieceList places;
      if (Verdict v = r.direct_places(places); !v.ok()) return v;
      size_t done = 0;
      for (const IoVec& piece : places.pieces()) {
        const size_t part = std::min(piece.iov_len, n - done);
        std::memcpy(piece.iov_base, bytes.data() + done, part);
        done += part;
      }
      if (Verdict v = r.direct_received(done); !v.ok()) return v;
      if (done < n) {
        if (Verdict v = r.received(bytes.subspan(done, n - done)); !v.ok()) return v;
      }
    }
    bytes = bytes.subspan(n);
  }
  return Ok{};
}

wire::TermError error_of(const Verdict& v) {
  return v.ok() ? wire::TermError{wire::Layer::llp, 15, 0xfe} : v.error();
}

TEST(Receiver, EveryCutOfSeveralSmallFpdus) {
  const std::vector<Buffer> ulpdus = {pattern(14, 1), pattern(15, 2), pattern(40, 3),
                                      pattern(17, 4)};
  const Buffer stream = stream_of(ulpdus);
  for (size_t first = 0; first <= stream.size(); ++first) {
    for (size_t second = first; second <= stream.size(); ++second) {
      Bench s(true);

      const size_t sizes[] = {first, second - first, stream.size()};
      Bytes rest{stream};
      for (const size_t size : sizes) {
        const size_t n = std::min(size, rest.size());
        ASSERT_TRUE(s.receiver.received(rest.first(n)).ok()) << first << ' ' << second;
        rest = rest.subspan(n);
      }
      ASSERT_TRUE(s.sink.ulpdus == ulpdus) << first << ' ' << second;
      ASSERT_TRUE(s.receiver.at_boundary());
      ASSERT_EQ(s.receiver.fpdus(), ulpdus.size());
    }
  }
}

TEST(Receiver, ByteByByte) {
  for (const bool crc : {false, true}) {
    std::vector<Buffer> ulpdus = {pattern(14, 1), pattern(20'000, 2), pattern(1000, 3),
                                  pattern(65'535, 4)};
    ulpdus[1][0] = std::byte{0xee};  // the longer of the two headers
    Bench s(crc);
    EXPECT_TRUE(feed(s.receiver, stream_of(ulpdus), [] { return 1; }).ok());
    EXPECT_TRUE(s.sink.ulpdus == ulpdus);
    EXPECT_TRUE(s.receiver.at_boundary());
  }
}

// Large and small FPDUs, pieces of any size, with and without CRC and direct placing.
TEST(Receiver, AnyCutOfAnyFpdus) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SeededRandom random(seed);
    std::vector<Buffer> ulpdus;
    for (int i = 0; i < 12; ++i) {
      const size_t most = i % 3 == 0 ? wire::kMaxUlpdu - 14 : 2000;
      ulpdus.push_back(pattern(14 + random.next() % most, seed * 100 + static_cast<uint64_t>(i)));
    }
    Bench s(seed % 2 == 0);
    const size_t piece = seed % 5 == 0 ? 200'000 : 3000;
    EXPECT_TRUE(
        feed(s.receiver, stream_of(ulpdus), [&] { return 1 + random.next() % piece; }).ok());
    EXPECT_TRUE(s.sink.ulpdus == ulpdus) << "seed " << seed;
    EXPECT_TRUE(s.receiver.at_boundary());
  }
}

TEST(Receiver, WithoutCrcDirectFromTheHeaderOfALargeFpduOn) {
  const Buffer frame = make_fpdu(pattern(30'000, 1));
  Bench s(false);
  ASSERT_TRUE(s.receiver.received(Bytes{frame}.first(15)).ok());
  EXPECT_FALSE(s.receiver.direct()) << "the header is not whole";
  ASSERT_TRUE(s.receiver.received(Bytes{frame}.subspan(15, 1)).ok());
  EXPECT_TRUE(s.receiver.direct() && s.receiver.in_place());
  EXPECT_FALSE(s.receiver.at_boundary());
  PieceList places;
  ASSERT_TRUE(s.receiver.direct_places(places).ok());
  EXPECT_EQ(places.bytes(), frame.size() - 16) << "trailer included, header not";
}

// RFC 5044 section 6: the CRC is verified before the ULPDU goes to DDP.
TEST(Receiver, WithCrcNothingIsLookedAtBeforeTheCrcIsKnown) {
  const Buffer frame = make_fpdu(pattern(60'000, 1));
  Bench s(true);
  ASSERT_TRUE(s.receiver.received(Bytes{frame}.first(1000)).ok());
  EXPECT_TRUE(s.receiver.direct()) << "the rest has its place";
  EXPECT_FALSE(s.receiver.in_place()) << "which is nobody's but the receiver's";
  PieceList places;
  ASSERT_TRUE(s.receiver.direct_places(places).ok());
  ASSERT_EQ(places.bytes(), frame.size() - 1000);
  ASSERT_EQ(places.pieces().size(), 1U);
  std::memcpy(places.pieces()[0].iov_base, frame.data() + 1000, frame.size() - 1001);
  ASSERT_TRUE(s.receiver.direct_received(frame.size() - 1001).ok());
  EXPECT_EQ(s.sink.begun, 0);
  ASSERT_TRUE(s.receiver.received(Bytes{frame}.last(1)).ok());
  EXPECT_EQ(s.sink.ulpdus.size(), 1U);
  EXPECT_FALSE(s.receiver.direct());
}

// RFC 5044 section 4.4: an FPDU with a bad CRC MUST NOT be delivered.
TEST(Receiver, AnyDamagedByteIsFound) {
  const std::vector<Buffer> ulpdus = {pattern(20, 1), pattern(33, 2)};
  const Buffer stream = stream_of(ulpdus);
  const size_t second = wire::fpdu_size(20);
  for (size_t i = second; i < stream.size(); ++i) {
    Buffer damaged = stream;
    damaged[i] ^= std::byte{0x10};
    Bench s(true);
    const Verdict v = s.receiver.received(damaged);
    // A damaged length may make it wait for bytes that never come; then nothing is delivered
    // either.
    if (i >= second + wire::kFpduLengthSize) {
      EXPECT_EQ(error_of(v), term::kMpaCrc) << i;
    }
    EXPECT_EQ(s.sink.ulpdus.size(), 1U) << i;
    EXPECT_EQ(s.sink.begun, 1) << "a small FPDU is not even placed";
  }
}

TEST(Receiver, ALargeDamagedFpduIsNotPlaced) {
  Buffer frame = make_fpdu(pattern(50'000, 1));
  frame[30'000] ^= std::byte{1};
  Bench s(true);
  SeededRandom random(7);
  const Verdict v = feed(s.receiver, frame, [&] { return 1 + random.next() % 5000; });
  EXPECT_EQ(error_of(v), term::kMpaCrc);
  EXPECT_TRUE(s.sink.ulpdus.empty());
  EXPECT_EQ(s.sink.begun, 0);
  EXPECT_EQ(s.receiver.fpdus(), 0U);
}

TEST(Receiver, WithoutCrcTheFieldIsNotLookedAt) {
  for (const size_t n : {size_t{100}, size_t{40'000}}) {
    Buffer frame = make_fpdu(pattern(n, 1));
    std::fill(frame.end() - 4, frame.end(), std::byte{0x5a});
    Bench s(false);
    EXPECT_TRUE(feed(s.receiver, frame, [] { return 10'000; }).ok());
    EXPECT_EQ(s.sink.ulpdus.size(), 1U);
  }
}

// spec/siw 3.2: siw sends stale bytes as pad.
TEST(Receiver, ThePadIsNotChecked) {
  for (const size_t n : {size_t{15}, size_t{20'015}}) {
    const Buffer u = pattern(n, 1);
    const Buffer pad(wire::fpdu_pad(n), std::byte{0x5a});
    Bench s(true);
    EXPECT_TRUE(feed(s.receiver, make_fpdu(u, pad), [] { return 10'000; }).ok());
    EXPECT_EQ(s.sink.ulpdus, std::vector<Buffer>{u});
  }
}

// spec/same-host 3.5.
TEST(Receiver, FromMemoryAnyCut) {
  std::vector<Buffer> ulpdus = {pattern(14, 1), pattern(1'048'590, 2), pattern(43, 3),
                                pattern(70'001, 4), pattern(25'000, 5)};
  ulpdus[3][0] = std::byte{0xee};
  Buffer stream;
  for (const Buffer& u : ulpdus) {
    Buffer length(4);
    store_be(length.data(), static_cast<uint32_t>(u.size()));
    stream.insert(stream.end(), length.begin(), length.end());
    stream.insert(stream.end(), u.begin(), u.end());
  }
  SeededRandom random{3};
  for (int round = 0; round < 50; ++round) {
    Bench s(true);
    s.receiver.go_by_memory();
    const uint64_t most = round < 25 ? 50'000 : 700'000;
    EXPECT_TRUE(feed(s.receiver, stream, [&] { return 1 + random.next() % most; }).ok());
    ASSERT_TRUE(s.sink.ulpdus == ulpdus) << round;
    ASSERT_TRUE(s.receiver.at_boundary());
  }
}

// There is no call to be spared by a copy, so that smaller ones go straight to their places.
TEST(Receiver, FromMemoryTheRestGoesToItsPlaceSooner) {
  for (const bool memory : {false, true}) {
    Bench s(false);
    if (memory) s.receiver.go_by_memory();
    EXPECT_EQ(s.receiver.direct_from(),
              memory ? Receiver::kDirectFromInMemory : Receiver::kDirectFrom);
    const Buffer u = pattern(Receiver::kDirectFromInMemory, 1);
    Buffer begin(memory ? 4 : 2);
    if (memory) {
      store_be(begin.data(), static_cast<uint32_t>(u.size()));
    } else {
      store_be(begin.data(), static_cast<uint16_t>(u.size()));
    }
    begin.insert(begin.end(), u.begin(), u.begin() + 100);
    EXPECT_TRUE(s.receiver.received(begin).ok());
    EXPECT_EQ(s.receiver.direct(), memory);
    EXPECT_EQ(s.receiver.in_place(), memory);
  }
}

TEST(Receiver, FromMemoryNoneIsLongerThanAgreed) {
  const Buffer begin = test::from_hex("00100041");
  for (const size_t first : {0U, 3U}) {
    Bench s(true);
    s.receiver.go_by_memory();
    EXPECT_TRUE(s.receiver.received(Bytes{begin}.first(first)).ok());
    EXPECT_EQ(error_of(s.receiver.received(Bytes{begin}.subspan(first))), term::kMpaLength);
    EXPECT_EQ(s.sink.begun, 0);
  }
}

// spec/mpa 3.1: ULPDU_Length 0 is legal only as RTR of kind B.
TEST(Receiver, AnEmptyUlpduOpensAStreamThatAgreedOnIt) {
  const Buffer empty = make_fpdu({});
  const Buffer frame = make_fpdu(pattern(20, 1));
  Bench agreed(true, true);
  EXPECT_TRUE(agreed.receiver.received(empty).ok());
  EXPECT_EQ(agreed.receiver.fpdus(), 1U);
  EXPECT_EQ(agreed.sink.begun, 0);
  EXPECT_TRUE(agreed.receiver.received(frame).ok());
  EXPECT_EQ(error_of(agreed.receiver.received(empty)), term::kMpaLength) << "the first FPDU only";

  Bench later(true, true);
  EXPECT_TRUE(later.receiver.received(frame).ok());
  EXPECT_EQ(error_of(later.receiver.received(empty)), term::kMpaLength);

  Bench never(true);
  EXPECT_EQ(error_of(never.receiver.received(empty)), term::kMpaLength);

  Buffer damaged = empty;
  damaged[7] ^= std::byte{1};
  Bench bad(true, true);
  EXPECT_EQ(error_of(bad.receiver.received(damaged)), term::kMpaCrc);
}

TEST(Receiver, AUlpduShorterThanItsHeaderGoesUpAsItIs) {
  Bench s(true);
  // The sink's business: it knows what is missing.
  s.sink.refuse_begin = true;
  EXPECT_EQ(error_of(s.receiver.received(make_fpdu(pattern(3, 1)))), term::kTaggedInvalidStag);
  EXPECT_EQ(s.sink.header, pattern(3, 1));
}

TEST(Receiver, WhatTheSinkRefusesEndsIt) {
  for (const size_t n : {size_t{50}, size_t{20'000}}) {
    const Buffer frame = make_fpdu(pattern(n, 1));
    Bench begin(true);
    begin.sink.refuse_begin = true;
    EXPECT_EQ(error_of(feed(begin.receiver, frame, [] { return 7000; })), term::kTaggedInvalidStag);
    Bench where(true);
    where.sink.refuse_where = true;
    EXPECT_EQ(error_of(feed(where.receiver, frame, [] { return 7000; })), term::kTaggedBounds);
    Bench deliver(true);
    deliver.sink.refuse_deliver = true;
    EXPECT_EQ(error_of(feed(deliver.receiver, frame, [] { return 7000; })),
              term::kUntaggedMsnRange);
    EXPECT_EQ(deliver.receiver.fpdus(), 0U) << "one that is refused does not count";
  }
}

TEST(Receiver, MemoryThatGoesAwayMeanwhileIsNoticed) {
  const Buffer frame = make_fpdu(pattern(40'000, 1));
  Bench s(false);
  ASSERT_TRUE(feed(s.receiver, Bytes{frame}.first(9000), [] { return 4000; }).ok());
  ASSERT_TRUE(s.receiver.direct());
  s.sink.refuse_where = true;
  PieceList places;
  EXPECT_EQ(error_of(s.receiver.direct_places(places)), term::kTaggedBounds);
}

TEST(Receiver, AFinIsCleanOnlyBetweenFpdus) {
  for (const size_t n : {size_t{30}, size_t{20'000}}) {
    const Buffer frame = make_fpdu(pattern(n, 1));
    for (size_t cut : {size_t{0}, size_t{1}, size_t{2}, size_t{10}, size_t{17}, frame.size() / 2,
                       frame.size() - 1, frame.size()}) {
      Bench s(true);
      ASSERT_TRUE(feed(s.receiver, Bytes{frame}.first(cut), [] { return 5000; }).ok());
      EXPECT_EQ(s.receiver.at_boundary(), cut == 0 || cut == frame.size()) << cut;
    }
  }
}

TEST(Receiver, TrimKeepsWhatIsNeeded) {
  const Buffer frame = make_fpdu(pattern(3000, 1));
  Bench s(true);
  ASSERT_TRUE(s.receiver.received(Bytes{frame}.first(1000)).ok());
  s.receiver.trim();
  ASSERT_TRUE(s.receiver.received(Bytes{frame}.subspan(1000)).ok());
  s.receiver.trim();
  ASSERT_TRUE(s.receiver.received(frame).ok());
  EXPECT_EQ(s.sink.ulpdus.size(), 2U);
}

}  // namespace
}  // namespace weft::mpa
