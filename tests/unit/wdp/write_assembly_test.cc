// Writes with immediate: spec/wdp-uc 3.6.

#include "wdp/write_assembly.h"

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

struct WriteAssemblyTest : UcReceiveTest {};

TEST_F(WriteAssemblyTest, TheImmediateAppearsWhenEveryByteIsPlaced) {
  post_receive(10);
  const Buffer room = *receives[0];
  Message m = write_imm(1, 450, 30);
  m.write_se = true;
  const auto d = cut(m);
  for (const size_t i : {4U, 0U, 2U, 1U}) {
    give(d[i]);
    EXPECT_TRUE(host->host.received.empty());
  }
  give(d[3]);
  EXPECT_TRUE(placed(m));
  ASSERT_EQ(host->host.received.size(), 1U);
  const auto& a = host->host.received[0].arrival;
  EXPECT_TRUE(a.write_with_immediate && a.has_immediate && a.solicited);
  EXPECT_EQ(a.immediate, 1U);
  EXPECT_EQ(a.length, 450U);
  EXPECT_EQ(*receives[0], room);
}

TEST_F(WriteAssemblyTest, OneThatIsLostInPartIsNeverHeardOf) {
  post_receive(10);
  post_receive(10);
  const auto d = cut(write_imm(1, 450, 30));
  for (const size_t i : {0U, 1U, 3U, 4U}) give(d[i]);
  later(1s);
  give(cut(write_imm(2, 250, 0)));
  later(kHoldFor);
  EXPECT_EQ(delivered(), (Msns{2}));
  EXPECT_EQ(host->host.received[0].wr_id, 0U);
}

TEST_F(WriteAssemblyTest, InOneDatagramItNeedsNoContext) {
  for (int i = 0; i < 40; ++i) post_receive(0);
  Msns expected;
  for (uint32_t msn = 1; msn <= 40; ++msn) {
    give(cut(write_imm(msn, 100, 0)));
    expected.push_back(msn);
  }
  EXPECT_EQ(delivered(), expected);
}

TEST_F(WriteAssemblyTest, OfNothingItIsAnImmediateAlone) {
  post_receive(10);
  Message m = write_imm(1, 0, 0);
  m.stag = Stag{};
  give(cut(m));
  ASSERT_EQ(delivered(), (Msns{1}));
  EXPECT_EQ(host->host.received[0].arrival.length, 0U);
}

// Forged or not, the second one of an MSN is none.
TEST_F(WriteAssemblyTest, NothingIsDeliveredTwice) {
  for (int i = 0; i < 4; ++i) post_receive(10);
  const Message one = write_imm(1, 50, 0);
  give(cut(one));
  give(cut(one));
  const Message two = write_imm(2, 250, 0);
  give(cut(two));
  give(cut(two));
  EXPECT_EQ(delivered(), (Msns{1, 2}));
  EXPECT_EQ(drops(WdpDrop::superseded), 1U + 3U);
}

TEST_F(WriteAssemblyTest, SegmentsThatDisagreeAreDroppedAndNotPlaced) {
  post_receive(10);
  const Message m = write_imm(1, 300, 0);
  give(cut(m)[0]);
  const Buffer now_there = target;
  std::vector<Message> others(6, m);
  others[0].immediate = 9;
  others[1].to += 8;
  others[2].stride = 110;
  others[3].content.push_back(std::byte{1});
  others[4].write_se = true;
  others[5].stag = host->host.add_region(target);
  for (const Message& o : others) give(cut(o)[1]);
  EXPECT_EQ(drops(WdpDrop::context_mismatch), 6U);
  EXPECT_EQ(target, now_there);
}

TEST_F(WriteAssemblyTest, SixteenMayBeOpenAndOneMoreGivesUpTheOldest) {
  for (int i = 0; i < 20; ++i) post_receive(0);
  std::vector<std::vector<Buffer>> all;
  for (uint32_t msn = 1; msn <= 17; ++msn) all.push_back(cut(write_imm(msn, 200, msn * 200)));
  for (const auto& d : all) give(d[0]);
  EXPECT_EQ(counters().messages_incomplete, 1U);
  for (const auto& d : all) give(d[1]);
  Msns expected;
  for (uint32_t msn = 2; msn <= 17; ++msn) expected.push_back(msn);
  later(kHoldFor);
  EXPECT_EQ(delivered(), expected);
  EXPECT_EQ(drops(WdpDrop::superseded), 1U);
}

TEST_F(WriteAssemblyTest, ANewcomerThatIsTheOldestIsGivenUpItself) {
  for (int i = 0; i < 20; ++i) post_receive(0);
  const auto old = cut(write_imm(1, 200, 0));
  std::vector<std::vector<Buffer>> all;
  for (uint32_t msn = 2; msn <= 17; ++msn) all.push_back(cut(write_imm(msn, 200, msn * 200)));
  for (const auto& d : all) give(d[0]);
  give(old);
  EXPECT_EQ(counters().messages_incomplete, 1U);
  for (const auto& d : all) give(d[1]);
  later(kHoldFor);
  EXPECT_EQ(delivered().size(), 16U);
}

TEST_F(WriteAssemblyTest, OneThatFallsOutOfTheWindowIsGivenUp) {
  post_receive(0);
  const auto d = cut(write_imm(1, 200, 0));
  give(d[0]);
  give(cut(write(1025, 10, 0)));
  EXPECT_EQ(counters().messages_incomplete, 1U);
  give(d[1]);
  EXPECT_EQ(drops(WdpDrop::stale_msn), 1U);
  EXPECT_TRUE(delivered().empty());
}

// Whether the peer says so or says nothing any more.
TEST_F(WriteAssemblyTest, WhatLacksBytesWhenThePeerHasGoneIsGivenUp) {
  for (const bool goodbye : {true, false}) {
    configure({});
    post_receive(300);
    give(cut(write_imm(1, 250, 0))[0]);
    give(cut(write_imm(2, 250, 300))[2]);
    give(cut(send(3, 250))[1]);
    later(kHoldFor);
    EXPECT_EQ(counters().messages_incomplete, 0U) << "may still come";
    const Time end = now + 20s;
    if (goodbye) {
      session->received({.type = wire::CtlType::dreq, .highest_psn = Psn{psn - 1}}, now);
    }
    while (!host->host.end && now < end) later(100ms);
    ASSERT_TRUE(host->host.end);
    EXPECT_EQ(counters().messages_incomplete, 3U);
    EXPECT_TRUE(delivered().empty());
    session->give_back_receive();
    EXPECT_EQ(host->host.receives.size(), 1U) << "the Send's";
    EXPECT_EQ(counters().messages_incomplete, 3U);
  }
}

TEST_F(WriteAssemblyTest, WithoutAReceiveItIsLostInSilence) {
  const Message m = write_imm(1, 250, 0);
  give(cut(m));
  EXPECT_TRUE(placed(m));
  EXPECT_EQ(counters().messages_without_receive, 1U);
  EXPECT_EQ(drops(WdpDrop::no_receive), 1U);
  post_receive(0);
  give(cut(write_imm(2, 250, 0)));
  EXPECT_EQ(delivered(), (Msns{2}));
}

TEST_F(WriteAssemblyTest, NoneIsOpenedForMemoryThatIsNotThePeers) {
  for (int i = 0; i < 3; ++i) post_receive(0);
  Message m = write_imm(1, 250, 0);
  m.stag = Stag{0xdead};
  give(cut(m));
  EXPECT_EQ(counters().messages_incomplete, 0U);
  EXPECT_EQ(drops(WdpDrop::protection), 3U);
  EXPECT_TRUE(delivered().empty());
}

// --- with Sends

// "an immediate takes the WQE of an older incomplete Send, which is thereby abandoned"
TEST_F(WriteAssemblyTest, AnImmediateTakesTheReceiveOfAnIncompleteSend) {
  post_receive(300);
  post_receive(300);
  const auto broken = cut(send(1, 250));
  give(broken[0]);
  give(broken[1]);
  give(cut(write_imm(2, 100, 0)));
  EXPECT_TRUE(delivered().empty());
  later(kHoldFor);
  ASSERT_EQ(delivered(), (Msns{2}));
  EXPECT_EQ(host->host.received[0].wr_id, 0U);
  EXPECT_EQ(counters().messages_incomplete, 1U);
  give(broken[2]);
  EXPECT_EQ(delivered(), (Msns{2}));
  give(cut(send(3, 250)));
  EXPECT_EQ(delivered(), (Msns{2, 3}));
}

// Nothing is lost: so nothing is given up.
TEST_F(WriteAssemblyTest, AnImmediateThatOvertakesASendWaitsForIt) {
  post_receive(300);
  post_receive(300);
  const auto s = cut(send(1, 250));
  const Message m = write_imm(2, 100, 0);
  const auto w = cut(m);
  give(s[0]);
  give(w);
  EXPECT_TRUE(placed(m));
  EXPECT_TRUE(delivered().empty());
  give(s[2]);
  give(s[1]);
  EXPECT_EQ(delivered(), (Msns{1, 2}));
}

TEST_F(WriteAssemblyTest, ASendThatOvertakesAWriteWithImmediateWaitsForIt) {
  post_receive(300);
  post_receive(300);
  const auto w = cut(write_imm(1, 250, 0));
  const auto s = cut(send(2, 100));
  give(w[0]);
  give(w[2]);
  give(s);
  EXPECT_TRUE(delivered().empty());
  give(w[1]);
  EXPECT_EQ(delivered(), (Msns{1, 2}));
  EXPECT_EQ(host->host.received[0].wr_id, 0U);
}

// --- in two steps: straight to its place, or else as any other

TEST_F(WriteAssemblyTest, InTwoStepsTheImmediateAppearsWhenEveryByteIsPlacedToo) {
  post_receive(10);
  const Message m = write_imm(1, 450, 30);
  const auto d = cut(m);
  give(d[3]);
  for (const size_t i : {4U, 0U, 2U}) EXPECT_TRUE(give_direct(d[i]));
  EXPECT_TRUE(host->host.received.empty());
  EXPECT_FALSE(direct(d[2]));  // seen
  EXPECT_TRUE(give_direct(d[1]));
  EXPECT_TRUE(placed(m));
  EXPECT_EQ(delivered(), (Msns{1}));
  EXPECT_EQ(counters().drops.total(), 0U);
}

TEST_F(WriteAssemblyTest, InTwoStepsAndOneDatagram) {
  post_receive(10);
  const Message m = write_imm(1, 80, 30);
  EXPECT_TRUE(give_direct(cut(m)[0]));
  EXPECT_TRUE(placed(m));
  EXPECT_EQ(delivered(), (Msns{1}));
  EXPECT_FALSE(direct(cut(m)[0]));  // another PSN, but the message is over
}

TEST_F(WriteAssemblyTest, WhatWasOver1024MessagesAgoIsNotTakenForANewOne) {
  for (uint32_t msn = 1; msn < 3; ++msn) {
    post_receive(10);
    give(cut(write_imm(msn, 80, 0)));
  }
  for (uint32_t msn = 3; msn <= kMsnWindow; ++msn) give(cut(write(msn, 10, 0)));
  EXPECT_TRUE(give_direct(cut(write_imm(kMsnWindow + 1, 250, 0))[0]));
}

TEST_F(WriteAssemblyTest, NotInTwoStepsWhereAnotherMessageWouldHaveToGo) {
  for (uint32_t msn = 1; msn <= kMostContexts; ++msn) give(cut(write_imm(msn, 250, 0))[0]);
  const auto d = cut(write_imm(kMostContexts + 1, 250, 0));
  EXPECT_FALSE(direct(d[0]));
  EXPECT_EQ(counters().messages_incomplete, 0U);
  give(d[0]);
  EXPECT_EQ(counters().messages_incomplete, 1U);
  EXPECT_TRUE(direct(d[1]));
}

TEST_F(WriteAssemblyTest, NorOneThatDoesNotAgree) {
  Message m = write_imm(1, 250, 0);
  give(cut(m)[0]);
  m.immediate = 99;
  EXPECT_FALSE(direct(cut(m)[1]));
}

}  // namespace
}  // namespace weft::wdp
