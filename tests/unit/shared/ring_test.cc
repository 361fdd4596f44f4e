#include "shared/ring.h"

#include <sys/mman.h>

#include <cerrno>

#include "tests/support/fault_catcher.h"
#include "tests/support/unmapped.h"
#include "tests/unit/shared/two_ends.h"

namespace weft::shared {
namespace {

class RingTest : public ::testing::Test {
 protected:
  // What the reader gets in one call with this much room.
  Buffer read(size_t most) {
    Buffer got(most);
    const IoVec to = piece(got);
    const auto t = reader.read({&to, 1});
    error = t.error;
    got.resize(t.bytes);
    return got;
  }
  Buffer read_all(size_t n, size_t step = 1 << 20) {
    Buffer got;
    while (got.size() < n) {
      const Buffer part = read(step);
      if (part.empty()) break;
      got.insert(got.end(), part.begin(), part.end());
      reader.publish();
    }
    return got;
  }
  size_t write(const Buffer& from, Bytes own = kNotOwn, size_t offset = 0) {
    const IoVec one = piece(from, offset);
    const auto t = writer.write({&one, 1}, own);
    error = t.error;
    writer.publish();
    return t.bytes;
  }
  // Puts a record there that no writer of weft's would write, and shows it.
  void forge(std::initializer_list<uint64_t> words, uint64_t shown) {
    auto* at = reinterpret_cast<uint64_t*>(memory.bytes->data.data());
    std::copy(words.begin(), words.end(), at);
    memory.control.written = shown;
  }
  void references() { reader.allow_references(this_process()); }

  RingMemory memory;
  RingWriter writer{memory.place(), kReferFrom};
  RingReader reader{memory.place()};
  int error = 0;
};

constexpr uint64_t kBytesKind = uint64_t{1} << 56;
constexpr uint64_t kReferenceKind = uint64_t{2} << 56;

TEST_F(RingTest, BytesComeOutAsTheyWentIn) {
  const Buffer a = pattern_bytes(1000, 1);
  EXPECT_FALSE(reader.has_input());
  EXPECT_EQ(write(a), a.size());
  EXPECT_TRUE(reader.has_input());
  EXPECT_EQ(read(5000), a);
  EXPECT_FALSE(reader.has_input());
  EXPECT_EQ(read(5000), Buffer{});
}

// Whoever asks again and again looks at the word alone.
TEST_F(RingTest, TheWordForInputChangesWithIt) {
  const Buffer a = pattern_bytes(1000, 1);
  const port::PeerWord none = reader.input_word();
  EXPECT_FALSE(none.has_changed());
  EXPECT_EQ(write(a), a.size());
  EXPECT_TRUE(none.has_changed());
  EXPECT_TRUE(reader.input_word().has_changed());
  EXPECT_EQ(read(400).size(), 400);
  EXPECT_TRUE(reader.input_word().has_changed()) << "the rest of a record";
  EXPECT_EQ(read(600).size(), 600);
  EXPECT_FALSE(reader.input_word().has_changed());
  EXPECT_TRUE(none.has_changed());
}

TEST_F(RingTest, PiecesOfAnySizeGoRoundTheRingManyTimes) {
  SeededRandom random{7};
  Buffer sent;
  Buffer got;
  for (int round = 0; round < 8000; ++round) {
    const Buffer part = pattern_bytes(1 + random.next() % 3000, 100 + static_cast<uint64_t>(round));
    const size_t n = write(part);
    sent.insert(sent.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(n));
    const Buffer out = read(1 + random.next() % 4000);
    got.insert(got.end(), out.begin(), out.end());
    reader.publish();
  }
  ASSERT_GT(sent.size(), 10 * kRingBytes);
  const Buffer rest = read_all(sent.size() - got.size());
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_EQ(got, sent);
}

TEST_F(RingTest, ManyPiecesAreTakenInOrder) {
  std::vector<Buffer> parts;
  std::vector<IoVec> pieces;
  Buffer all;
  for (size_t i = 0; i < 40; ++i) parts.push_back(pattern_bytes(i * 37 % 900, i));
  for (const Buffer& p : parts) {
    pieces.push_back(piece(p));
    all.insert(all.end(), p.begin(), p.end());
  }
  EXPECT_EQ(writer.write(pieces, kNotOwn).bytes, all.size());
  writer.publish();
  EXPECT_EQ(read_all(all.size(), 777), all);
}

TEST_F(RingTest, AFullRingTakesTheRestLater) {
  const Buffer all = pattern_bytes(3 * kRingBytes, 3);
  Buffer got;
  size_t sent = 0;
  while (sent < all.size()) {
    const size_t n = write(all, Bytes{all}, sent);
    if (n == 0) {
      ASSERT_EQ(error, 0);
      EXPECT_FALSE(writer.has_room());
      const Buffer part = read_all(kRingBytes / 2, kRingBytes / 2);
      got.insert(got.end(), part.begin(), part.end());
      EXPECT_TRUE(writer.has_room());
    }
    sent += n;
  }
  const Buffer rest = read_all(all.size() - got.size());
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_EQ(got, all);
}

TEST_F(RingTest, NothingIsSeenBeforeItIsPublished) {
  const Buffer a = pattern_bytes(10, 1);
  const IoVec one = piece(a);
  (void)writer.write({&one, 1}, kNotOwn);
  EXPECT_FALSE(reader.has_input());
  writer.publish();
  EXPECT_TRUE(reader.has_input());
}

TEST_F(RingTest, AReaderThatSleepsIsToBeWokenForPartsAtTheEnd) {
  const Buffer a = pattern_bytes(10, 1);
  const IoVec one = piece(a);
  (void)writer.write({&one, 1}, kNotOwn);
  writer.publish_part();
  EXPECT_TRUE(reader.has_input());
  EXPECT_TRUE(writer.publish()) << "which has nothing more to show";
  EXPECT_EQ(read(100), a);
  (void)writer.write({&one, 1}, kNotOwn);
  writer.publish_part();
  EXPECT_FALSE(writer.publish()) << "it does not sleep";
}

TEST_F(RingTest, LargePiecesAreReferredToAndNotCopied) {
  references();
  Buffer a = pattern_bytes(kReferFrom, 1);
  EXPECT_EQ(write(a), a.size());
  EXPECT_TRUE(writer.refers_now());
  const Buffer later = pattern_bytes(a.size(), 2);
  std::copy(later.begin(), later.end(), a.begin());
  EXPECT_EQ(read(a.size()), later) << "what is there when it is pulled";
  reader.publish();
  EXPECT_FALSE(writer.refers_now());
}

TEST_F(RingTest, SmallerPiecesAreCopied) {
  references();
  Buffer a = pattern_bytes(kReferFrom - 1, 1);
  const Buffer before = a;
  EXPECT_EQ(write(a), a.size());
  EXPECT_FALSE(writer.refers_now());
  a.assign(a.size(), std::byte{});
  EXPECT_EQ(read_all(before.size()), before);
}

TEST_F(RingTest, WhatIsTheWritersOwnIsCopied) {
  references();
  Buffer a = pattern_bytes(2 * kReferFrom, 1);
  const Buffer before = a;
  EXPECT_EQ(write(a, Bytes{a}), a.size());
  EXPECT_FALSE(writer.refers_now());
  a.assign(a.size(), std::byte{});
  EXPECT_EQ(read_all(before.size()), before);
}

TEST_F(RingTest, NothingIsReferredToWhereTheReaderCannotPull) {
  Buffer a = pattern_bytes(2 * kReferFrom, 1);
  EXPECT_EQ(write(a), a.size());
  EXPECT_FALSE(writer.refers_now());
  EXPECT_EQ(read_all(a.size()), a);
}

TEST_F(RingTest, AWriterThatDoesNotReferCopies) {
  references();
  RingWriter copies{memory.place(), kNeverPull};
  const Buffer a = pattern_bytes(2 * kReferFrom, 1);
  const IoVec one = piece(a);
  EXPECT_EQ(copies.write({&one, 1}, kNotOwn).bytes, a.size());
  copies.publish();
  EXPECT_FALSE(copies.refers_now());
  EXPECT_EQ(read_all(a.size()), a);
}

TEST_F(RingTest, AReferenceIsBegunByACallOfItsOwn) {
  references();
  const Buffer head = pattern_bytes(18, 1);
  const Buffer body = pattern_bytes(60'000, 2);
  const Buffer tail = pattern_bytes(6, 3);
  const IoVec all[] = {piece(head), piece(body), piece(tail)};
  EXPECT_EQ(writer.write(all, kNotOwn).bytes, head.size() + body.size() + tail.size());
  writer.publish();
  EXPECT_EQ(read(100'000), head);
  // In two parts, the second with what follows.
  const Buffer first = read(20'000);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), body.begin(), body.begin() + 20'000));
  Buffer rest = read(100'000);
  ASSERT_EQ(rest.size(), 40'000 + tail.size());
  EXPECT_TRUE(std::equal(body.begin() + 20'000, body.end(), rest.begin()));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), rest.begin() + 40'000));
}

TEST_F(RingTest, OneReferenceIsPulledIntoSeveralPlaces) {
  references();
  const Buffer a = pattern_bytes(50'000, 1);
  EXPECT_EQ(write(a), a.size());
  Buffer x(10'001);
  Buffer y(3);
  Buffer z(39'996);
  const IoVec places[] = {piece(x), piece(y), {nullptr, 0}, piece(z)};
  EXPECT_EQ(reader.read(places).bytes, a.size());
  x.insert(x.end(), y.begin(), y.end());
  x.insert(x.end(), z.begin(), z.end());
  EXPECT_EQ(x, a);
}

TEST_F(RingTest, SoMuchIsReferredToAndNoMore) {
  references();
  const Buffer a = pattern_bytes(64 * 1024, 1);
  size_t taken = 0;
  while (write(a) > 0) taken += a.size();
  EXPECT_EQ(taken, RingWriter::kReferredMost);
  EXPECT_FALSE(writer.has_room());
  // Half of it has to be gone.
  for (size_t n = 0; n < RingWriter::kReferredMost / 2 - a.size(); n += a.size()) read(a.size());
  reader.publish();
  EXPECT_FALSE(writer.has_room());
  read(a.size());
  reader.publish();
  EXPECT_TRUE(writer.has_room());
  EXPECT_EQ(write(a), a.size());
}

TEST_F(RingTest, AfterDetachTheMemoryMayChange) {
  references();
  Buffer a = pattern_bytes(40'000, 1);
  const Buffer before = a;
  EXPECT_EQ(write(a), a.size());
  const Buffer first = read(10'000);
  EXPECT_EQ(writer.detach(), nullptr);
  a.assign(a.size(), std::byte{0x55});
  const Buffer rest = read(30'000);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), before.begin()));
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), before.begin() + 10'000, before.end()));
  reader.publish();
  EXPECT_FALSE(writer.refers_now());
}

TEST_F(RingTest, AStreamThatEndsForLossSaysSoBehindItsBytes) {
  const Buffer a = pattern_bytes(100, 1);
  write(a);
  writer.end_for_loss();
  (void)writer.publish();
  EXPECT_EQ(read(1000), a);
  EXPECT_EQ(read(1000), Buffer{});
  EXPECT_EQ(error, port::SharedBytes::kSourceLost);
}

TEST_F(RingTest, AfterRevokeNothingIsPulled) {
  references();
  const Buffer small = pattern_bytes(100, 1);
  const Buffer large = pattern_bytes(40'000, 2);
  const IoVec all[] = {piece(small), piece(large)};
  EXPECT_EQ(writer.write(all, kNotOwn).bytes, small.size() + large.size());
  writer.publish();
  writer.revoke();
  EXPECT_EQ(read(50'000), small) << "what is in the ring is there";
  EXPECT_EQ(read(50'000), Buffer{});
  EXPECT_EQ(error, port::SharedBytes::kSourceLost);
}

// A page of memory that can go.
struct Page {
  explicit Page(size_t n) : size(n) {
    at = static_cast<std::byte*>(
        ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const Buffer v = pattern_bytes(n, 5);
    std::copy(v.begin(), v.end(), at);
  }
  ~Page() { ::munmap(at, size); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  void protect(int rights) const { ASSERT_EQ(::mprotect(at, size, rights), 0); }
  IoVec all() const { return {at, size}; }
  std::byte* at;
  size_t size;
};

TEST_F(RingTest, MemoryThatCannotBeReachedIsAskedForAsACopy) {
  const test::FaultCatcher faults;
  references();
  const Page page{32'768};
  const IoVec one = page.all();
  EXPECT_EQ(writer.write({&one, 1}, kNotOwn).bytes, page.size);
  writer.publish();
  page.protect(PROT_NONE);
  EXPECT_EQ(read(page.size), Buffer{});
  EXPECT_EQ(error, 0);
  EXPECT_TRUE(reader.publish()) << "the writer is to be woken up";
  EXPECT_FALSE(reader.has_input()) << "nothing new until it has answered";
  EXPECT_TRUE(reader.input_word().has_changed()) << "another word tells of its answer";
  EXPECT_TRUE(writer.copies_wanted());
  page.protect(PROT_READ);
  EXPECT_EQ(writer.detach(), nullptr);
  EXPECT_FALSE(writer.copies_wanted());
  EXPECT_TRUE(reader.has_input());
  EXPECT_EQ(read(page.size), Buffer(page.at, page.at + page.size));
}

TEST_F(RingTest, MemoryThatIsGoneEndsTheConnectionAtBothEnds) {
  const test::FaultCatcher faults;
  references();
  const Page page{32'768};
  const IoVec one = page.all();
  EXPECT_EQ(writer.write({&one, 1}, kNotOwn).bytes, page.size);
  writer.publish();
  page.protect(PROT_NONE);
  EXPECT_EQ(read(page.size), Buffer{});
  EXPECT_EQ(writer.detach(), page.at);
  EXPECT_TRUE(reader.has_input());
  EXPECT_EQ(read(page.size), Buffer{});
  EXPECT_EQ(error, port::SharedBytes::kSourceLost);
}

// The place for the copy might be where the memory was, and then it would seem to be there.
TEST_F(RingTest, UnmappedMemoryIsGoneWhateverIsAllocated) {
  const test::FaultCatcher faults;
  references();
  test::Unmapped unmapped;
  const IoVec one{unmapped.begin(), test::Unmapped::kSize};
  EXPECT_EQ(writer.write({&one, 1}, kNotOwn).bytes, test::Unmapped::kSize);
  writer.publish();
  unmapped.go();
  EXPECT_EQ(writer.detach(), unmapped.begin());
}

TEST_F(RingTest, AGoneDestinationIsToldFromAGoneSource) {
  const test::FaultCatcher faults;
  references();
  const Buffer a = pattern_bytes(32'768, 1);
  EXPECT_EQ(write(a), a.size());
  const Page page{32'768};
  page.protect(PROT_READ);
  const IoVec one = page.all();
  EXPECT_EQ(reader.read({&one, 1}).error, EFAULT);
  EXPECT_FALSE(writer.copies_wanted());
  // The bytes are there yet.
  EXPECT_EQ(read(a.size()), a);
}

TEST_F(RingTest, MemoryThatIsGoneIsNotCopied) {
  const test::FaultCatcher faults;
  const Page page{4096};
  page.protect(PROT_NONE);
  const Buffer before = pattern_bytes(100, 1);
  const IoVec pieces[] = {piece(before), page.all()};
  EXPECT_EQ(writer.write(pieces, kNotOwn).bytes, before.size());
  const IoVec one = page.all();
  EXPECT_EQ(writer.write({&one, 1}, kNotOwn).error, EFAULT);
  writer.publish();
  EXPECT_EQ(read(5000), before);
}

// --- waking each other

TEST_F(RingTest, AReaderThatSleepsIsWokenUpOnce) {
  memory.control.reader_sleeps = 0;
  const Buffer a = pattern_bytes(8, 1);
  const IoVec one = piece(a);
  (void)writer.write({&one, 1}, kNotOwn);
  EXPECT_FALSE(writer.publish()) << "it is awake";
  EXPECT_FALSE(reader.sleep()) << "there is something";
  read(8);
  EXPECT_TRUE(reader.sleep());
  (void)writer.write({&one, 1}, kNotOwn);
  EXPECT_TRUE(writer.publish());
  (void)writer.write({&one, 1}, kNotOwn);
  EXPECT_FALSE(writer.publish()) << "it was told";
  EXPECT_FALSE(writer.publish()) << "there is nothing new";
}

TEST_F(RingTest, AReaderThatWaitsForACopyIsWokenUpByIt) {
  const test::FaultCatcher faults;
  references();
  const Page page{32'768};
  const IoVec one = page.all();
  (void)writer.write({&one, 1}, kNotOwn);
  writer.publish();
  page.protect(PROT_NONE);
  read(page.size);
  EXPECT_TRUE(reader.sleep());
  page.protect(PROT_READ);
  (void)writer.detach();
  EXPECT_TRUE(writer.publish());
}

TEST_F(RingTest, AWriterThatWaitsForRoomIsWokenUpOnce) {
  const Buffer a = pattern_bytes(2 * kRingBytes, 1);
  write(a, Bytes{a});
  EXPECT_TRUE(writer.await_room());
  read(1024);
  EXPECT_FALSE(reader.publish()) << "not enough for it to go on";
  bool woken = false;
  size_t read_bytes = 0;
  for (Buffer part = read(8192); !part.empty(); part = read(8192)) {
    read_bytes += part.size();
    const bool now = reader.publish();
    EXPECT_FALSE(now && woken);
    woken |= now;
  }
  EXPECT_TRUE(woken);
  EXPECT_TRUE(writer.has_room());
  EXPECT_FALSE(writer.await_room());
}

// --- a peer that is hostile

TEST_F(RingTest, WhatIsNoRecordEndsTheConnection) {
  const std::vector<std::pair<std::vector<uint64_t>, uint64_t>> forged = {
      {{0, 0}, 16},                            // no kind
      {{kBytesKind, 0}, 16},                   // no bytes
      {{kBytesKind | 9, 0}, 16},               // more than is there
      {{kBytesKind | 0xffffffffffff, 0}, 16},  // much more
      {{uint64_t{3} << 56 | 8, 0}, 16},        // a kind that there is not
      {{kReferenceKind, 0x1000}, 16},          // a reference to nothing
      {{kReferenceKind | 8}, 8},               // without its address
      {{kBytesKind | 1}, 4},                   // half a word
      {{kBytesKind | 8, 0}, kRingBytes + 8},   // more than the ring holds
      {{kBytesKind | 8, 0}, uint64_t{0} - 8},  // before the beginning
  };
  for (size_t i = 0; i < forged.size(); ++i) {
    RingMemory m;
    RingReader r{m.place()};
    std::copy(forged[i].first.begin(), forged[i].first.end(),
              reinterpret_cast<uint64_t*>(m.bytes->data.data()));
    m.control.written = forged[i].second;
    Buffer to(1000);
    const IoVec one = piece(to);
    EXPECT_EQ(r.read({&one, 1}).error, EPROTO) << i;
    EXPECT_EQ(r.read({&one, 1}).error, EPROTO) << "and stays over " << i;
  }
}

TEST_F(RingTest, ALengthThatChangesWhileItIsReadIsTheOneThatWasChecked) {
  const Buffer a = pattern_bytes(100, 1);
  write(a);
  const Buffer first = read(50);
  *reinterpret_cast<uint64_t*>(memory.bytes->data.data()) = kBytesKind | 0xffffff;
  EXPECT_EQ(read(1000).size(), 50U);
}

TEST_F(RingTest, AnAddressOfTheKernelsIsNoAddress) {
  references();
  forge({kReferenceKind | 100, 0xffff800000000000}, 16);
  EXPECT_EQ(read(100), Buffer{});
  EXPECT_EQ(error, 0);
  EXPECT_EQ(memory.control.copies_wanted, 1U);
  EXPECT_FALSE(reader.has_input());
}

TEST_F(RingTest, AReaderThatClaimsWhatCannotBeEndsTheConnection) {
  const Buffer a = pattern_bytes(kRingBytes, 1);
  write(a, Bytes{a});
  memory.control.read = kRingBytes + 8;
  EXPECT_TRUE(writer.has_room()) << "so that it is looked at";
  EXPECT_EQ(write(a), 0U);
  EXPECT_EQ(error, EPROTO);
}

TEST_F(RingTest, AReaderThatGoesBackEndsTheConnection) {
  const Buffer a = pattern_bytes(kRingBytes / 2 + 4096, 1);
  write(a, Bytes{a});
  read_all(kRingBytes / 2);
  ASSERT_TRUE(writer.has_room());
  memory.control.read = 0;
  write(a, Bytes{a});
  EXPECT_EQ(write(a, Bytes{a}), 0U);
  EXPECT_EQ(error, EPROTO);
}

TEST_F(RingTest, AReferenceWithoutLeaveIsAnError) {
  const Buffer a = pattern_bytes(30'000, 1);
  forge({kReferenceKind | a.size(), reinterpret_cast<uintptr_t>(a.data())}, 16);
  EXPECT_EQ(read(a.size()), Buffer{});
  EXPECT_EQ(error, EPROTO);
}

// A process that has another nonce is not the peer, whatever its number.
TEST_F(RingTest, AnotherProcessIsNotPulledFrom) {
  wire::HostOffer::Nonce other = kNonce;
  other[15] ^= std::byte{1};
  RingReader stranger{memory.place()};
  stranger.allow_references(
      PeerMemory{::getpid(), reinterpret_cast<uintptr_t>(kNonce.data()), other});
  const Buffer a = pattern_bytes(30'000, 1);
  write(a);
  Buffer to(30'000);
  const IoVec one = piece(to);
  EXPECT_EQ(stranger.read({&one, 1}).error, ECONNRESET);
}

}  // namespace
}  // namespace weft::shared
