// Writes, and what is true of every data datagram: spec/wdp-uc 3.1, 3.2, 3.4, 3.5, 3.9.

#include "wdp/uc_receive_path.h"

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

TEST_F(UcReceiveTest, AWriteIsPlacedSegmentBySegmentInAnyOrder) {
  const Message m = write(1, 350, 40);
  const auto d = cut(m);
  ASSERT_EQ(d.size(), 4U);
  for (const size_t i : {2U, 0U, 3U, 1U}) give(d[i]);
  EXPECT_TRUE(placed(m));
  std::copy(m.content.begin(), m.content.end(), before.begin() + 40);
  EXPECT_EQ(target, before);
  EXPECT_TRUE(host->host.received.empty());
  EXPECT_EQ(counters().drops.total(), 0U);
  EXPECT_EQ(counters().bytes_placed, 350U);
}

TEST_F(UcReceiveTest, AnIncompleteWriteLeavesItsBytesAndNothingElse) {
  const Message m = write(1, 350, 40);
  const auto d = cut(m);
  give(d[0]);
  give(d[2]);
  std::copy_n(m.content.begin(), 100, before.begin() + 40);
  std::copy_n(m.content.begin() + 200, 100, before.begin() + 240);
  EXPECT_EQ(target, before);
  EXPECT_TRUE(host->host.received.empty());
  EXPECT_FALSE(host->host.end);
}

TEST_F(UcReceiveTest, ALateCopyDoesNotOverwriteNewerData) {
  const auto first = cut(write(1, 100, 0));
  const Message newer = write(2, 100, 0);
  give(first);
  give(cut(newer));
  give(first);
  EXPECT_TRUE(placed(newer));
  EXPECT_EQ(drops(WdpDrop::duplicate), 1U);
}

TEST_F(UcReceiveTest, NorDoesOneThatIsOlderThanTheWindow) {
  const auto old = cut(write(1, 100, 0));
  const Message newer = write(2, 100, 0);
  give(cut(newer));
  psn += kPsnWindow - 1;
  give(cut(write(3, 100, 200)));
  give(old);
  EXPECT_TRUE(placed(newer));
  EXPECT_EQ(drops(WdpDrop::stale_psn), 1U);
}

TEST_F(UcReceiveTest, NorAMessageThatIsOlderThan1024Messages) {
  const auto old = cut(write(1, 100, 0));
  const Message newer = write(1025, 100, 0);
  give(cut(newer));
  give(old);
  EXPECT_TRUE(placed(newer));
  EXPECT_EQ(drops(WdpDrop::stale_msn), 1U);
}

TEST_F(UcReceiveTest, EveryWriteStaysInsideItsRegion) {
  const uint64_t base = test::address_of(target).value();
  Message m = write(1, 100, 0);
  m.to = base + target.size() - 50;
  give(cut(m));
  m.to = base - 1;
  give(cut(m));
  m.to = UINT64_MAX - 50;
  give(cut(m));
  m.to = base;
  m.stag = Stag{0xdead};
  give(cut(m));
  EXPECT_EQ(target, before);
  EXPECT_EQ(drops(WdpDrop::protection), 4U);
  EXPECT_FALSE(host->host.end);
}

// "and that MLEN fits from TO-MO": the first segment fits, the message does not.
TEST_F(UcReceiveTest, AMessageThatDoesNotFitIsNotBegun) {
  give(cut(write(1, 300, target.size() - 200)));
  EXPECT_EQ(target, before);
  EXPECT_EQ(drops(WdpDrop::protection), 3U);
}

TEST_F(UcReceiveTest, ASegmentWhoseMessageBeginsBelowZeroIsDropped) {
  WdpData d{.psn = Psn{psn++},
            .msn = Msn{1},
            .mo = MessageOffset{200},
            .mlen = 300,
            .last = true,
            .opcode = Opcode::write,
            .stride = 100,
            .stag = stag,
            .to = TaggedOffset{150}};
  give(encode(d, pattern_bytes(100, 1)));
  EXPECT_EQ(drops(WdpDrop::protection), 1U);
  const auto c = said();
  ASSERT_EQ(c.size(), 1U);
  EXPECT_EQ(c[0].error(), wire::term::kTaggedToWrap);
}

TEST_F(UcReceiveTest, RightsAreThoseOfRemoteWrite) {
  Buffer readable = pattern_bytes(200, 3);
  const Buffer same = readable;
  Message m = write(1, 100, 0);
  m.stag = host->host.add_region(readable, static_cast<uint8_t>(work::Access::remote_read));
  m.to = test::address_of(readable).value();
  give(cut(m));
  EXPECT_EQ(readable, same);
  EXPECT_EQ(drops(WdpDrop::protection), 1U);
}

// spec/rdmap 2.4: a message without payload never checks its STag.
TEST_F(UcReceiveTest, AWriteOfNothingNamesNoMemory) {
  Message m = write(1, 0, 0);
  m.stag = Stag{0xdead};
  give(cut(m));
  EXPECT_EQ(counters().drops.total(), 0U);
}

// spec/wdp 5.3: at most 10 ERR a second.
TEST_F(UcReceiveTest, ThePeerHearsOfItTenTimesASecond) {
  Message m = write(1, 100, 0);
  m.stag = Stag{0xdead};
  m.to = 0x1234;
  for (uint32_t i = 0; i < 25; ++i) {
    m.msn = 1 + i;
    give(cut(m));
  }
  const auto c = said();
  ASSERT_EQ(c.size(), 10U);
  for (const auto& e : c) {
    EXPECT_EQ(e.type, wire::CtlType::err);
    EXPECT_EQ(e.error(), wire::term::kTaggedInvalidStag);
    EXPECT_EQ(e.token, SessionToken{7});
    ASSERT_EQ(e.offending.size(), WdpData::kSize);
    EXPECT_EQ(load_be<uint32_t>(e.offending.data() + 32), 0xdeadU);
  }
  EXPECT_EQ(counters().errors_sent, 10U);
  later(1s);
  give(cut(m));
  EXPECT_EQ(said().size(), 1U);
}

TEST_F(UcReceiveTest, WhatWasNotNegotiatedIsDropped) {
  configure({.immediate = false, .reads = false});
  post_receive(100);
  give(cut(write_imm(1, 10, 0)));
  Message m = send(2, 10);
  m.immediate = 5;
  give(cut(m));
  give(encode({.psn = Psn{psn++},
               .msn = Msn{3},
               .mlen = 10,
               .last = true,
               .opcode = Opcode::read_request,
               .stag = stag,
               .to = test::address_of(target)},
              Buffer(8, std::byte{0})));
  EXPECT_EQ(target, before);
  EXPECT_EQ(drops(WdpDrop::read_range), 1U);  // the parser's: an empty range of ten bytes
  EXPECT_EQ(drops(WdpDrop::not_negotiated), 2U);
  EXPECT_TRUE(host->host.received.empty());
}

TEST_F(UcReceiveTest, WithACrcNothingUncheckedIsPlaced) {
  configure({.crc = true});
  Message m = write(1, 100, 0);
  const auto bare = cut(m);
  m.crc = true;
  auto good = cut(m);
  auto bad = cut(m);
  bad[0][60] ^= std::byte{1};
  give(bare);
  give(bad);
  EXPECT_EQ(target, before);
  EXPECT_EQ(drops(WdpDrop::crc_missing), 1U);
  EXPECT_EQ(drops(WdpDrop::bad_crc), 1U);
  give(good);
  EXPECT_TRUE(placed(m));
}

TEST_F(UcReceiveTest, ADamagedDatagramDoesNotTakeThePlaceOfTheGoodOne) {
  configure({.crc = true});
  Message m = write(1, 100, 0);
  m.crc = true;
  const auto d = cut(m);
  auto bad = d[0];
  bad[70] ^= std::byte{4};
  give(bad);
  give(d);
  EXPECT_TRUE(placed(m));
  EXPECT_EQ(drops(WdpDrop::duplicate), 0U);
}

TEST_F(UcReceiveTest, ACrcThatNobodyAskedForIsCheckedAllTheSame) {
  Message m = write(1, 100, 0);
  m.crc = true;
  auto d = cut(m);
  d[0][70] ^= std::byte{4};
  give(d);
  EXPECT_EQ(target, before);
  EXPECT_EQ(drops(WdpDrop::bad_crc), 1U);
}

TEST_F(UcReceiveTest, OtherClassesAndRubbishAreDropped) {
  Buffer d = cut(write(1, 10, 0))[0];
  Buffer rd = d;
  rd[1] = std::byte{0x30};
  give(rd);
  EXPECT_EQ(drops(WdpDrop::wrong_class), 1U);
  d.resize(47);
  give(d);
  EXPECT_EQ(drops(WdpDrop::too_short), 1U);
  EXPECT_EQ(counters().datagrams_received, 0U);
}

TEST_F(UcReceiveTest, LateIsWhatWasGivenUpAndNotWhatFillsAGap) {
  for (int i = 0; i < 4; ++i) post_receive(100);
  const auto one = cut(send(1, 10));
  const auto two = cut(send(2, 10));
  const auto three = cut(send(3, 10));
  const auto four = cut(send(4, 10));
  give(two);
  give(one);
  EXPECT_EQ(counters().reordered, 1U);
  EXPECT_EQ(counters().late, 0U);
  give(four);
  later(kHoldFor);
  give(three);
  EXPECT_EQ(counters().reordered, 2U);
  EXPECT_EQ(counters().late, 1U);
  EXPECT_EQ(delivered(), (Msns{1, 2, 4}));
}

// "At most 10 a second", also where nothing but data comes to tell the time.
TEST_F(UcReceiveTest, DataTellTheTimeOfErrors) {
  uint32_t msn = 1;
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 15; ++i) {
      Message m = write(msn++, 10, 0);
      m.stag = Stag{0xdead};
      give(cut(m));
    }
    EXPECT_EQ(said().size(), 10U);
    now = now + 1s;
  }
  EXPECT_EQ(counters().errors_sent, 30U);
}

TEST_F(UcReceiveTest, TheLostAreCountedWhenThePeerSaysHowFarItCame) {
  const auto d = cut(write(1, 1000, 0));
  for (const size_t i : {0U, 1U, 2U, 5U, 6U}) give(d[i]);
  EXPECT_EQ(session->lost(), 2U);
  EXPECT_EQ(session->unique(), 5U);
  session->received(wire::WdpCtl{.type = wire::CtlType::ka, .highest_psn = Psn{kFirstPsn + 9}},
                    now);
  EXPECT_EQ(session->lost(), 5U);
}

// --- in two steps

TEST_F(UcReceiveTest, InTwoStepsThePayloadGoesStraightToItsPlace) {
  const Message m = write(1, 300, 10);
  const auto d = cut(m);
  give(d[0]);
  for (const size_t i : {2U, 1U}) EXPECT_TRUE(give_direct(d[i]));
  EXPECT_TRUE(placed(m));
  EXPECT_EQ(counters().bytes_placed, 300U);
  // Seen, so not again.
  EXPECT_FALSE(direct(d[1]));
  EXPECT_TRUE(places.pieces().empty());
}

TEST_F(UcReceiveTest, WhatNeedsALookAtTheWholeIsNotTakenInTwoSteps) {
  post_receive(500);
  give(cut(write(1, 10, 0)));
  const auto s = cut(send(3, 300));
  EXPECT_FALSE(direct(s[1]));  // would open a message
  Message foreign = write(4, 10, 0);
  foreign.stag = Stag{0xdead};
  EXPECT_FALSE(direct(cut(foreign)[0]));
  Message told = send(3, 300);
  told.opcode = Opcode::send_inv;
  told.immediate = 3;  // one completion tells of one of them
  EXPECT_FALSE(direct(cut(told)[0]));
  Message checked = write(5, 10, 0);
  checked.crc = true;
  EXPECT_FALSE(direct(cut(checked)[0]));
  EXPECT_EQ(counters().drops.total(), 0U);
  EXPECT_EQ(host->host.receives.size(), 1U);
}

TEST_F(UcReceiveTest, NorAnImmediateThatWasNotNegotiated) {
  UcParameters p;
  p.immediate = false;
  configure(p);
  give(cut(write(1, 10, 0)));
  EXPECT_FALSE(direct(cut(write_imm(2, 250, 0))[0]));
  EXPECT_TRUE(direct(cut(write(3, 250, 0))[0]));
}

TEST_F(UcReceiveTest, SegmentsOfTheOpenSendGoStraightToTheReceive) {
  post_receive(500);
  Message m = send(1, 300);
  m.immediate = 1;
  const auto d = cut(m);
  give(d[0]);
  EXPECT_TRUE(give_direct(d[2]));
  give(d[1]);
  EXPECT_EQ(delivered(), (Msns{1}));
}

}  // namespace
}  // namespace weft::wdp
