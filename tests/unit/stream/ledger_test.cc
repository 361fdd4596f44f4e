#include "stream/ledger.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace weft::stream {
namespace {

constexpr uint32_t kPackets = 8;  // of a block
constexpr uint32_t kBlocks = 8;

struct Bench {
  explicit Bench(const LedgerRules& rules, bool landing = false)
      : ring({.name = {},
              .shape = {.format = Format::raw, .payload = 24},
              .streams = 1,
              .blocks = kBlocks,
              .packets_per_block = kPackets,
              .slot_bytes = 48,
              .landing = landing}),
        store(ring.stream(0)),
        ledger(store, rules) {
    store.attach();
  }
  // Numbers `from` to `to` - 1 arrive, but those of `without`.
  void arrive(uint64_t from, uint64_t to, const std::set<uint64_t>& without = {}) {
    for (uint64_t n = from; n < to; ++n) {
      if (!without.contains(n)) (void)ledger.arrive(n);
    }
    ledger.settle();
  }
  // The packets of all published blocks, which are released.
  std::set<uint64_t> take() {
    std::set<uint64_t> numbers;
    while (const weft_stream_block* b = store.unreleased()) {
      for (uint32_t i = 0; i < b->packets; ++i) {
        if ((b->valid[i / 8] >> (i % 8) & 1) != 0) numbers.insert(b->number * b->packets + i);
      }
      store.release();
    }
    return numbers;
  }

  Ring ring;
  BlockStore& store;
  Ledger ledger;
};

Header header_of(uint64_t number) {
  return {.verdict = Verdict::good, .number = number, .origin = {}};
}

std::set<uint64_t> range(uint64_t from, uint64_t to, const std::set<uint64_t>& without = {}) {
  std::set<uint64_t> numbers;
  for (uint64_t n = from; n < to; ++n) {
    if (!without.contains(n)) numbers.insert(n);
  }
  return numbers;
}

TEST(Ledger, CompleteBlocksAreShownAtOnce) {
  Bench b{{.hold = 1}};
  b.ledger.begin(16, std::nullopt);
  b.arrive(16, 31);
  EXPECT_EQ(b.take(), range(16, 24));
  b.arrive(31, 32);
  EXPECT_EQ(b.take(), range(24, 32));
  EXPECT_EQ(b.ledger.counts().missing, 0U);
}

TEST(Ledger, EveryMissingPacketIsCountedAndShown) {
  Bench b{{.hold = 1}};
  // In the middle, at both ends of a block, and at both ends of the stream.
  const std::set<uint64_t> lost{19, 23, 24, 31, 32, 42, 43};
  b.ledger.begin(19, std::nullopt);
  b.arrive(19, 44, lost);
  b.ledger.finish(44);
  EXPECT_EQ(b.take(), range(19, 44, lost));
  EXPECT_EQ(b.ledger.counts().missing, lost.size());
  EXPECT_EQ(b.ledger.counts().received, 25 - lost.size());
}

TEST(Ledger, BlocksOfWhichNothingCameAreMissingAndNotShown) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 4);
  b.arrive(8 * 1001 + 4, 8 * 1001 + 8);
  b.ledger.finish(8 * 2000);
  EXPECT_EQ(b.ledger.counts().blocks, 2U);
  EXPECT_EQ(b.ledger.counts().missing, 8 * 2000 - 8U);
  std::set<uint64_t> expected = range(0, 4);
  expected.merge(range(8012, 8016));
  EXPECT_EQ(b.take(), expected);
}

TEST(Ledger, OvertakenPacketsAreNoneOfTheMissing) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 13, {3, 7});
  EXPECT_EQ(b.ledger.arrive(7), Arrival::taken);
  EXPECT_EQ(b.ledger.arrive(3), Arrival::taken);
  b.ledger.finish(16);
  EXPECT_EQ(b.ledger.counts().out_of_order, 2U);
  EXPECT_EQ(b.ledger.counts().missing, 3U);
  EXPECT_EQ(b.take(), range(0, 13));
}

TEST(Ledger, LatePacketsStayMissing) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 17, {3});
  EXPECT_EQ(b.ledger.arrive(3), Arrival::late);
  b.ledger.finish(17);
  EXPECT_EQ(b.ledger.counts().late, 1U);
  EXPECT_EQ(b.ledger.counts().missing, 1U);
  EXPECT_EQ(b.take(), range(0, 17, {3}));
}

TEST(Ledger, DoublesCountOnce) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 5);
  EXPECT_EQ(b.ledger.arrive(4), Arrival::duplicate);
  EXPECT_EQ(b.ledger.arrive(0), Arrival::duplicate);
  EXPECT_EQ(b.ledger.counts().duplicate, 2U);
  b.ledger.finish(std::nullopt);
  EXPECT_EQ(b.ledger.counts().received, 5U);
}

TEST(Ledger, DoublesOfAClosedBlockAreNotLate) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 17, {3});
  EXPECT_EQ(b.ledger.arrive(2), Arrival::duplicate);
  EXPECT_EQ(b.ledger.arrive(3), Arrival::late);
}

TEST(Ledger, WhatTheConsumerHoldsIsOverrunAndNotLoss) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  // The consumer sleeps; memory is for 8 blocks.
  b.arrive(0, 8 * 10, {5});
  EXPECT_EQ(b.ledger.counts().overrun, 16U);
  EXPECT_EQ(b.ledger.counts().missing, 1U);
  EXPECT_EQ(b.take(), range(0, 64, {5}));
  b.arrive(80, 96);
  EXPECT_EQ(b.ledger.counts().overrun, 16U);
  EXPECT_EQ(b.take(), range(80, 96));
}

TEST(Ledger, GapsBetweenSendersAreNotLoss) {
  Bench b{{.hold = 1}};
  b.ledger.begin(3, std::nullopt);
  b.arrive(3, 9);
  EXPECT_EQ(b.ledger.may_begin(12), 16U);  // blocks up to there are closed for good
  b.ledger.begin(40, std::nullopt);
  b.arrive(40, 48);
  b.ledger.finish(48);
  EXPECT_EQ(b.ledger.counts().gap, 31U);
  EXPECT_EQ(b.ledger.counts().missing, 0U);
  EXPECT_EQ(b.ledger.counts().sessions, 2U);
  std::set<uint64_t> expected = range(3, 9);
  expected.merge(range(40, 48));
  EXPECT_EQ(b.take(), expected);
}

TEST(Ledger, ANewReceiverLearnsOfTheGap) {
  Bench b{{.hold = 1}};
  b.ledger.begin(500, 400);
  EXPECT_EQ(b.ledger.counts().gap, 100U);
}

// What a receiver that was killed had not published, and what was not sent until this one came.
TEST(Ledger, TheGapBeginsBehindWhatAPredecessorPublished) {
  Bench b{{.hold = 1}};
  b.ledger.follow(40);
  EXPECT_EQ(b.ledger.may_begin(37), 40U);
  EXPECT_EQ(b.ledger.may_begin(75), 75U);
  b.ledger.begin(75, 60);
  EXPECT_EQ(b.ledger.counts().gap, 35U);
  EXPECT_EQ(b.ledger.counts().gap_sent, 20U);
  b.arrive(75, 80);
  b.ledger.finish(80);
  EXPECT_EQ(b.take(), range(75, 80));
  EXPECT_EQ(b.ledger.counts().missing, 0U);
  // The same sender lost this one for a while, another one was never there.
  b.ledger.begin(90, 84);
  b.ledger.finish(96);
  EXPECT_EQ(b.ledger.counts().gap, 45U);
  EXPECT_EQ(b.ledger.counts().gap_sent, 24U);
  b.ledger.begin(104, std::nullopt);
  EXPECT_EQ(b.ledger.counts().gap, 53U);
  EXPECT_EQ(b.ledger.counts().gap_sent, 24U);
}

// A ring may have had other blocks.
TEST(Ledger, APredecessorsEndMayLieWithinABlock) {
  Bench b{{.hold = 1}};
  b.ledger.follow(42);
  EXPECT_EQ(b.ledger.may_begin(42), 48U);
  b.ledger.begin(48, 45);
  EXPECT_EQ(b.ledger.counts().gap, 6U);
  EXPECT_EQ(b.ledger.counts().gap_sent, 3U);
}

TEST(Ledger, ASenderThatCountsAnewMay) {
  Bench b{{.hold = 1}};
  b.ledger.begin(800, std::nullopt);
  b.arrive(800, 808);
  b.ledger.finish(808);
  EXPECT_EQ(b.ledger.may_begin(0), 0U);
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 8);
  EXPECT_EQ(b.ledger.counts().gap, 0U);
  std::set<uint64_t> expected = range(0, 8);
  expected.merge(range(800, 808));
  EXPECT_EQ(b.take(), expected);
}

TEST(Ledger, FindsPacketsByTheirTrailers) {
  Bench b{{.hold = 1, .guard = 2}, true};
  const std::set<uint64_t> whole{4, 5, 13, 14, 15};
  b.ledger.recover = [&](uint64_t n) { return whole.contains(n); };
  b.ledger.begin(0, std::nullopt);
  // The immediates of 4 to 7, and of the last Write, 12 to 15, never came.
  b.arrive(0, 4);
  b.arrive(8, 12);
  b.ledger.finish(16);
  EXPECT_EQ(b.ledger.counts().recovered, 5U);
  EXPECT_EQ(b.ledger.counts().missing, 3U);
  EXPECT_EQ(b.take(), range(0, 16, {6, 7, 12}));
}

TEST(Ledger, WhatALaterTurnOverwroteIsNotShown) {
  Bench b{{.hold = 1, .guard = 2}, true};
  std::map<uint64_t, uint64_t> found{{2, 66}, {5, 1}};
  b.ledger.in_place = [&](uint64_t n) { return header_of(found.contains(n) ? found[n] : n); };
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 12);
  b.ledger.finish(12);
  EXPECT_EQ(b.take(), range(0, 12, {2, 5}));
  EXPECT_EQ(b.ledger.counts().overrun, 2U);
  EXPECT_EQ(b.ledger.counts().missing, 0U);
  EXPECT_EQ(b.ledger.counts().received, 10U);
}

TEST(Ledger, WhatItsSenderCallsNotValidCameAndIsNotShown) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 8, {3});
  EXPECT_EQ(b.ledger.arrive(3, true), Arrival::flagged);
  EXPECT_EQ(b.ledger.arrive(3, true), Arrival::duplicate);
  b.ledger.settle();
  EXPECT_EQ(b.take(), range(0, 8, {3}));
  EXPECT_EQ(b.ledger.counts().flagged, 1U);
  EXPECT_EQ(b.ledger.counts().missing, 0U);
  EXPECT_EQ(b.ledger.counts().received, 7U);
}

TEST(Ledger, WhatLiesInPlaceAndIsNotValidIsNotShown) {
  Bench b{{.hold = 0, .guard = 2, .credit = true}, true};
  b.ledger.in_place = [](uint64_t n) {
    Header header = header_of(n);
    if (n == 5) header.verdict = Verdict::flagged;
    return header;
  };
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 12);
  b.ledger.finish(12);
  EXPECT_EQ(b.take(), range(0, 12, {5}));
  EXPECT_EQ(b.ledger.counts().flagged, 1U);
  EXPECT_EQ(b.ledger.counts().missing, 0U);
  EXPECT_EQ(b.ledger.counts().invalid, 0U);
}

// Who subtracts two reports from each other relies on it. What a block loses when it is closed was
// not counted yet.
TEST(Ledger, WhatWasReceivedNeverFalls) {
  Bench b{{.hold = 1, .guard = 2}, true};
  b.ledger.in_place = [](uint64_t n) {
    Header header = header_of(n);
    if (n % 8 < 3) header.verdict = Verdict::flagged;
    if (n % 8 == 7) header.number = n + 64;
    return header;
  };
  b.ledger.begin(0, std::nullopt);
  EXPECT_FALSE(b.ledger.any_came());
  uint64_t before = 0;
  for (uint64_t n = 0; n < 40; ++n) {
    b.arrive(n, n + 1);
    EXPECT_TRUE(b.ledger.any_came());
    EXPECT_GE(b.ledger.counts().received, before) << n;
    EXPECT_EQ(b.ledger.counts().received + b.ledger.counts().flagged + b.ledger.counts().overrun +
                  b.ledger.open(),
              n + 1);
    before = b.ledger.counts().received;
    (void)b.take();
  }
  b.ledger.finish(40);
  EXPECT_EQ(b.ledger.counts().received, 5U * 4);
  EXPECT_EQ(b.ledger.counts().flagged, 5U * 3);
  EXPECT_EQ(b.ledger.counts().overrun, 5U);
}

TEST(Ledger, ACountThatBeginsAnewLeavesNoGap) {
  Bench b{{.hold = 1}};
  b.ledger.begin(1'000'000, std::nullopt);
  b.arrive(1'000'000, 1'000'020);
  b.ledger.begin_anew(3);
  EXPECT_EQ(b.take(), range(1'000'000, 1'000'020));
  b.arrive(3, 20);
  b.ledger.finish(20);
  EXPECT_EQ(b.take(), range(3, 20));
  b.ledger.begin_anew(uint64_t{1} << 40);
  b.arrive(uint64_t{1} << 40, (uint64_t{1} << 40) + 4);
  b.ledger.finish(std::nullopt);
  const Counts& c = b.ledger.counts();
  EXPECT_EQ(c.received, 20U + 17 + 4);
  EXPECT_EQ(c.sessions, 3U);
  EXPECT_EQ(c.gap, 0U);
  EXPECT_EQ(c.missing, 0U);
  EXPECT_EQ(c.late, 0U);
}

TEST(Ledger, WithCreditAWriteThatBroughtSomethingElseIsInvalid) {
  Bench b{{.hold = 0, .guard = 2, .credit = true}, true};
  b.ledger.in_place = [](uint64_t n) { return header_of(n == 5 ? 1 : n); };
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 12);
  b.ledger.finish(12);
  EXPECT_EQ(b.take(), range(0, 12, {5}));
  EXPECT_EQ(b.ledger.counts().invalid, 1U);
  EXPECT_EQ(b.ledger.counts().missing, 1U);
}

// A byte of the sender's, wherever number `n` belongs.
void write(Bench& b, uint64_t n) {
  *b.store.place(n) = std::byte{1};
}

TEST(Ledger, ASenderThatCameRoundLeavesNothingThatMayBeMixed) {
  Bench b{{.hold = 1, .guard = 2}, true};
  // Every header says what it should: a later packet's first datagram was lost each time.
  b.ledger.in_place = header_of;
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 24);
  EXPECT_EQ(b.take(), range(0, 24));
  b.arrive(24, 28);  // makes ready as far as it can: two blocks stay shut
  // This thread does not look, while the sender goes on through these into the fourth block again.
  for (uint64_t n = 28; n < 3 * 8 + 64 + 4; ++n) write(b, n);
  b.arrive(28, 48);
  EXPECT_EQ(b.take(), range(0, 0));
  EXPECT_EQ(b.ledger.counts().overrun, 24U);
  EXPECT_EQ(b.ledger.counts().missing, 0U);
}

// The same before anything was published, and behind blocks of which nothing came.
TEST(Ledger, ASenderThatComesRoundIsNoticedFromItsBeginningOn) {
  Bench b{{.hold = 1, .guard = 2}, true};
  b.ledger.in_place = header_of;
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 4);
  for (uint64_t n = 4; n < 64 + 4; ++n) write(b, n);
  b.arrive(4, 16);
  EXPECT_EQ(b.take(), range(0, 0));
  EXPECT_EQ(b.ledger.counts().overrun, 16U);
}

TEST(Ledger, ASenderThatComesRoundIsNoticedBehindBlocksOfWhichNothingCame) {
  Bench b{{.hold = 1, .guard = 2}, true};
  b.ledger.in_place = header_of;
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 24);
  b.arrive(80, 84);  // of block 10, and none of 3 to 9
  EXPECT_EQ(b.take(), range(0, 24));
  b.ledger.settle();
  for (uint64_t n = 84; n < 80 + 64 + 4; ++n) write(b, n);
  b.arrive(84, 96);
  EXPECT_EQ(b.take(), range(0, 0));
  EXPECT_EQ(b.ledger.counts().overrun, 16U);
}

// While this thread catches up, the sender is a turn ahead of each block that is closed.
TEST(Ledger, NothingIsShownUntilASenderThatCameRoundIsCaughtUpWith) {
  Bench b{{.hold = 1, .guard = 2}, true};
  b.ledger.in_place = header_of;
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 4);
  for (uint64_t n = 4; n < 64 + 4; ++n) write(b, n);
  for (uint64_t n = 4; n < 130; n += 2) b.arrive(n, n + 2);
  EXPECT_EQ(b.take(), range(0, 0));
  b.ledger.caught_up();
  for (uint64_t n = 130; n < 160; ++n) {
    write(b, n);
    b.arrive(n, n + 1);
  }
  EXPECT_EQ(b.take(), range(136, 160));
  EXPECT_EQ(b.ledger.counts().overrun, 136U);
  EXPECT_EQ(b.ledger.counts().missing, 0U);
}

TEST(Ledger, LatePacketsCostNoBlock) {
  Bench b{{.hold = 1, .guard = 2}, true};
  b.ledger.in_place = header_of;
  b.ledger.begin(0, std::nullopt);
  for (uint64_t block = 0; block < 64; ++block) {
    b.arrive(block * 8, block * 8 + 8, {block * 8 + 3});
    if (block < 3) continue;
    // Of one that was shown: nobody can know what it is.
    const uint64_t late = (block - 2) * 8 + 3;
    write(b, late);
    EXPECT_EQ(b.ledger.arrive(late), Arrival::late);
    (void)b.take();
  }
  EXPECT_EQ(b.ledger.counts().overrun, 0U);
  EXPECT_EQ(b.ledger.counts().late, 61U);
}

TEST(Ledger, ASenderThatNobodyAnnouncedFindsAllThatIsFree) {
  Bench b{{.hold = 1, .guard = 2}, true};
  b.ledger.in_place = header_of;
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 40);
  b.ledger.finish(40);
  const std::set<uint64_t> before = b.take();
  b.ledger.settle();
  for (uint64_t block = 0; block < kBlocks; ++block) EXPECT_TRUE(b.store.is_led_here(block));
  b.ledger.begin(8000 + 24, std::nullopt);
  b.arrive(8000 + 24, 8000 + 32);
  EXPECT_EQ(b.take(), range(8024, 8032));
}

TEST(Ledger, ForgedNumbersBindNobody) {
  Bench b{{.hold = 1}};
  b.ledger.begin(uint64_t{1} << 61, std::nullopt);
  b.ledger.finish(std::nullopt);
  EXPECT_EQ(b.ledger.may_begin(800), 800U);
  b.ledger.begin(800, std::nullopt);
  b.arrive(800, 804);
  EXPECT_TRUE(b.ledger.may_end(804));
  EXPECT_TRUE(b.ledger.may_end(1 << 20));
  EXPECT_FALSE(b.ledger.may_end(799));
  EXPECT_FALSE(b.ledger.may_end(uint64_t{1} << 60));
}

TEST(Ledger, IsNotThroughWhileAnOvertakenPacketIsMissing) {
  Bench b{{.hold = 1}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 12, {9});
  EXPECT_FALSE(b.ledger.all_here(12));
  b.arrive(9, 10);
  EXPECT_TRUE(b.ledger.all_here(12));
  EXPECT_FALSE(b.ledger.all_here(13));
}

TEST(Ledger, TheSameNumbersAgainWithinTheRingAreNotTakenTwice) {
  Bench b{{.hold = 1}};
  b.ledger.begin(100, std::nullopt);
  b.arrive(100, 120);
  b.ledger.finish(120);
  EXPECT_EQ(b.ledger.may_begin(100), 120U);
}

// The block with 803 is closed as a whole, so the ring reaches back from 808.
TEST(Ledger, ASenderThatBeginsWithinTheRingLosesNoMoreThanTheRing) {
  Bench b{{.hold = 1}};
  b.ledger.begin(800, std::nullopt);
  b.arrive(800, 804);
  b.ledger.finish(804);
  EXPECT_EQ(b.ledger.may_begin(808 - 64), 808U);
  EXPECT_EQ(b.ledger.may_begin(808 - 64 - 1), 743U);
  EXPECT_EQ(b.take(), range(800, 804));
  b.ledger.begin(743, std::nullopt);
  b.arrive(743, 752);
  EXPECT_EQ(b.ledger.counts().late, 0U);
  b.ledger.finish(752);
  EXPECT_EQ(b.take(), range(743, 752));
}

TEST(Ledger, NumbersAreCompletedFromTheirLowBits) {
  Bench b{{}};
  const uint64_t base = (uint64_t{7} << 32) - 3;
  b.ledger.begin(base, std::nullopt);
  EXPECT_EQ(b.ledger.complete_number(base & 0xffffff, 24), base);
  EXPECT_EQ(b.ledger.complete_number(2, 24), base + 5);
  EXPECT_EQ(b.ledger.complete_number((base - 10) & 0xffffff, 24), base - 10);
  b.arrive(base, base + 6);
  EXPECT_EQ(b.ledger.complete_number((base + 1) & 0xffffff, 24), base + 1);
}

TEST(Ledger, CreditReachesAsFarAsMemoryIsFree) {
  Bench b{{.hold = 0, .guard = 2, .credit = true}, true};
  b.ledger.begin(0, std::nullopt);
  EXPECT_EQ(b.ledger.extend(), 64U);
  b.arrive(0, 24);
  EXPECT_EQ(b.ledger.extend(), 64U);
  b.store.release();
  EXPECT_EQ(b.ledger.extend(), 72U);
  b.take();
  EXPECT_EQ(b.ledger.extend(), 88U);
}

TEST(Ledger, HasNoRoomForABlockThatIsHeld) {
  Bench b{{.hold = 0}};
  b.ledger.begin(0, std::nullopt);
  b.arrive(0, 64);
  EXPECT_FALSE(b.ledger.has_room(64));
  EXPECT_TRUE(b.ledger.has_room(63));
  b.store.release();
  EXPECT_TRUE(b.ledger.has_room(71));
  EXPECT_FALSE(b.ledger.has_room(72));
}

}  // namespace
}  // namespace weft::stream
