// Numbers that jump: PSNs and MSNs of a peer that starts over, of forgeries and of what comes late
// (spec/wdp-uc 3.2, 3.4).

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

TEST_F(UcReceiveTest, AJumpThatPersistsIsFollowed) {
  post_receive(100);
  give(cut(send(1, 50)));
  psn += (1 << 20) + 5000;
  for (uint32_t i = 0; i < 15; ++i) give(cut(write(500'000'000 + i, 10, 0)));
  EXPECT_EQ(drops(WdpDrop::psn_jump), 15U);
  EXPECT_EQ(target, before);
  // Messages begin anew with it.
  const Message m = write(500'000'100, 100, 0);
  give(cut(m));
  EXPECT_TRUE(placed(m));
  post_receive(100);
  give(cut(send(500'000'101, 60)));
  EXPECT_EQ(host->host.received.size(), 2U);
}

// A circuit that goes on with its PSN may count messages anew.
TEST_F(UcReceiveTest, MessagesThatAreCountedAnewAreFollowed) {
  post_receive(100);
  post_receive(100);
  give(cut(send(5000, 50)));
  uint32_t msn = 1;
  for (; msn <= 15; ++msn) give(cut(write(msn, 10, 0)));
  EXPECT_EQ(drops(WdpDrop::stale_msn), 15U);
  EXPECT_EQ(target, before);
  const Message m = write(msn++, 100, 0);
  give(cut(m));
  EXPECT_TRUE(placed(m));
  give(cut(send(msn, 60)));
  EXPECT_EQ(host->host.received.size(), 2U);
  EXPECT_EQ(counters().drops.total(), 15U);
}

// A train that the network has held back for long brings old numbers with old PSNs. They begin
// nothing, however many they are: what they say has been overwritten.
TEST_F(UcReceiveTest, LateMessagesAreNotTakenForNewOnes) {
  std::vector<Buffer> late;
  for (uint32_t msn = 1; msn <= 64; ++msn) late.push_back(cut(write(msn, 10, 0)).at(0));
  for (uint32_t msn = 65; msn <= 1200; ++msn) give(cut(write(msn, 10, 2000)));
  const Message newer = write(1201, 10, 0);
  give(cut(newer));
  give(late);
  EXPECT_TRUE(placed(newer));
  EXPECT_EQ(drops(WdpDrop::stale_msn), 64U);
}

// What is under way when the numbers begin anew is over, and a straggler of before changes nothing.
TEST_F(UcReceiveTest, ASendThatBeginsWithTheNewNumbersIsWhole) {
  for (int i = 0; i < 3; ++i) post_receive(300);
  give(cut(send(5'000'000, 250)).at(0));
  ++psn;  // a gap, behind which a Send waits
  give(cut(send(5'000'002, 40)));
  uint32_t msn = 1;
  for (; msn <= 15; ++msn) give(cut(write(msn, 10, 0)));
  const auto two = cut(send(msn, 150));
  const auto straggler = cut(write(5'000'001, 10, 0));
  give(two[0]);
  give(straggler);
  give(two[1]);
  give(cut(send(msn + 1, 60)));
  later(1ms);
  ASSERT_EQ(host->host.received.size(), 3U);
  EXPECT_EQ(host->host.received[0].arrival.length, 40U);
  EXPECT_EQ(host->host.received[1].arrival.length, 150U);
  EXPECT_EQ(host->host.received[2].arrival.length, 60U);
}

TEST_F(UcReceiveTest, OneForgedMessageNumberMovesNothing) {
  give(cut(write(1, 10, 0)));
  give(cut(write(0x7000'0000, 10, 0)));
  EXPECT_EQ(drops(WdpDrop::msn_jump), 1U);
  const Message m = write(2, 100, 0);
  give(cut(m));
  EXPECT_TRUE(placed(m));
}

// MSNs come round again. A Send stays the newest one for as long as no other comes, however many
// Writes do.
TEST_F(UcReceiveTest, ASendAfterTwoBillionWritesIsANewerOne) {
  post_receive(100);
  post_receive(100);
  give(cut(send(1, 50)));
  ASSERT_EQ(host->host.received.size(), 1U);
  uint32_t msn = 1;
  for (int i = 0; i < 530'000; ++i) give(cut(write(msn += kPsnWindow, 1, 0)));
  ASSERT_GT(msn, uint32_t{1} << 31);
  ASSERT_EQ(counters().drops.total(), 0U);
  give(cut(send(msn + 1, 60)));
  EXPECT_EQ(host->host.received.size(), 2U);
}

}  // namespace
}  // namespace weft::wdp
