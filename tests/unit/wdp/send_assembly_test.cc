// Sends: spec/wdp-uc 3.3, 3.7, 3.8.

#include "wdp/send_assembly.h"

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

using work::Status;

struct SendAssemblyTest : UcReceiveTest {};

TEST_F(SendAssemblyTest, ASendIsDeliveredWhenItsLastByteIsPlaced) {
  post_receive(400);
  const Message m = send(1, 333);
  const auto d = cut(m);
  const Buffer room = *receives[0];
  for (const size_t i : {0U, 3U, 2U}) give(d[i]);
  EXPECT_TRUE(host->host.received.empty());
  give(d[1]);
  ASSERT_EQ(delivered(), (Msns{1}));
  EXPECT_EQ(host->host.received[0].arrival.length, 333U);
  // Bytes beyond stay as they were.
  EXPECT_TRUE(std::equal(room.begin() + 333, room.end(), receives[0]->begin() + 333));
}

TEST_F(SendAssemblyTest, ASendOfNothingTakesAReceive) {
  post_receive(0);
  give(cut(send(1, 0)));
  ASSERT_EQ(host->host.received.size(), 1U);
  EXPECT_EQ(host->host.received[0].arrival.length, 0U);
}

TEST_F(SendAssemblyTest, ImmediatesAndSolicitedEventsAreToldOf) {
  for (int i = 0; i < 3; ++i) post_receive(100);
  Message m = send(1, 10);
  m.immediate = 0x11223344;
  give(cut(m));
  m = send(2, 10);
  m.opcode = Opcode::send_se;
  give(cut(m));
  give(cut(send(3, 10)));
  ASSERT_EQ(host->host.received.size(), 3U);
  const auto& r = host->host.received;
  EXPECT_TRUE(r[0].arrival.has_immediate && !r[0].arrival.solicited);
  EXPECT_EQ(r[0].arrival.immediate, 0x11223344U);
  EXPECT_TRUE(!r[1].arrival.has_immediate && r[1].arrival.solicited);
  EXPECT_TRUE(!r[2].arrival.has_immediate && !r[2].arrival.solicited);
}

// Rule 7: "or re-uses the WQE of the incomplete older message".
TEST_F(SendAssemblyTest, ANewerSendTakesTheReceiveOfAnIncompleteOne) {
  post_receive(300);
  post_receive(300);
  const auto broken = cut(send(1, 300));
  give(broken[0]);
  give(broken[2]);
  const Message m = send(2, 250);
  give(cut(m));
  later(kHoldFor);
  ASSERT_EQ(delivered(), (Msns{2}));
  EXPECT_EQ(host->host.received[0].wr_id, 0U);
  EXPECT_EQ(host->host.receives.size(), 1U);
  EXPECT_EQ(counters().messages_incomplete, 1U);
  // What comes of it later is nobody's.
  give(broken[1]);
  EXPECT_EQ(drops(WdpDrop::superseded), 1U);
  EXPECT_TRUE(is_content(0, m.content));
}

// "older MSNs are then ignored", whole ones too, when they come too late.
TEST_F(SendAssemblyTest, ASendThatComesTooLateIsIgnored) {
  post_receive(100);
  post_receive(100);
  const auto late = cut(send(1, 100));
  give(cut(send(2, 100)));
  later(kHoldFor);
  give(late);
  EXPECT_EQ(delivered(), (Msns{2}));
  EXPECT_EQ(drops(WdpDrop::superseded), 1U);
  EXPECT_EQ(counters().late, 1U);
}

TEST_F(SendAssemblyTest, SendsThatOvertakeEachOtherArriveInOrder) {
  for (int i = 0; i < 4; ++i) post_receive(200);
  std::vector<Buffer> all;
  for (uint32_t msn = 1; msn <= 4; ++msn) {
    for (auto& d : cut(send(msn, 150))) all.push_back(d);
  }
  for (const size_t i : {6U, 0U, 3U, 2U, 7U, 5U, 1U, 4U}) give(all[i]);
  EXPECT_EQ(delivered(), (Msns{1, 2, 3, 4}));
  EXPECT_EQ(counters().drops.total(), 0U);
}

// "drop the whole message (WQE kept for the next), counter; no error completion"
TEST_F(SendAssemblyTest, ASendThatIsTooLongIsDroppedAndTheReceiveKept) {
  post_receive(150);
  give(cut(send(1, 151)));
  EXPECT_TRUE(host->host.received.empty());
  EXPECT_EQ(drops(WdpDrop::receive_too_small), 2U);
  EXPECT_EQ(counters().messages_too_long, 1U);
  EXPECT_EQ(host->host.receives.size(), 1U) << "for whoever takes from the same queue";
  give(cut(send(2, 150)));
  ASSERT_EQ(delivered(), (Msns{2}));
  EXPECT_EQ(host->host.received[0].wr_id, 0U);
  EXPECT_EQ(host->host.received[0].status, Status::success);
}

TEST_F(SendAssemblyTest, WithoutAReceiveTheMessageIsDroppedWhole) {
  const auto d = cut(send(1, 250));
  give(d[0]);
  post_receive(300);
  give(d[1]);
  give(d[2]);
  EXPECT_EQ(drops(WdpDrop::no_receive), 3U);
  EXPECT_EQ(counters().messages_without_receive, 1U);
  EXPECT_EQ(host->host.receives.size(), 1U);
  give(cut(send(2, 30)));
  EXPECT_EQ(delivered(), (Msns{2}));
}

TEST_F(SendAssemblyTest, SegmentsThatDisagreeAreDropped) {
  post_receive(400);
  const Message m = send(1, 400);
  give(cut(m)[0]);
  Message other = m;
  other.stride = 80;
  give(cut(other)[1]);
  other = m;
  other.content.resize(390);
  give(cut(other)[1]);
  other = m;
  other.opcode = Opcode::send_se;
  give(cut(other)[1]);
  other = m;
  other.immediate = 3;
  give(cut(other)[1]);
  EXPECT_EQ(drops(WdpDrop::context_mismatch), 4U);
  // The same segment under another PSN is none either.
  give(cut(m)[0]);
  EXPECT_EQ(drops(WdpDrop::duplicate_segment), 1U);
}

TEST_F(SendAssemblyTest, NoMessageHasMoreThan2097152Segments) {
  post_receive(100);
  WdpData d{.psn = Psn{psn++},
            .msn = Msn{1},
            .mlen = kMostSegmentsOfMessage + 1,
            .opcode = Opcode::send,
            .stride = 1};
  give(encode(d, pattern_bytes(1, 1)));
  EXPECT_EQ(drops(WdpDrop::too_many_segments), 1U);
  EXPECT_EQ(host->host.receives.size(), 1U);
}

// Rule 8: "invalidate at completion only".
TEST_F(SendAssemblyTest, InvalidatesWhenItIsCompleteAndNotBefore) {
  post_receive(300);
  Buffer window(10);
  const Stag gone = host->host.add_region(window);
  Message m = send(1, 250);
  m.opcode = Opcode::send_se_inv;
  m.stag = gone;
  const auto d = cut(m);
  give(d[0]);
  give(d[1]);
  EXPECT_TRUE(host->host.invalidated.empty());
  give(d[2]);
  EXPECT_EQ(host->host.invalidated, std::vector<Stag>{gone});
  ASSERT_EQ(host->host.received.size(), 1U);
  EXPECT_TRUE(host->host.received[0].arrival.invalidated);
  EXPECT_EQ(host->host.received[0].arrival.invalidated_stag, gone);
}

TEST_F(SendAssemblyTest, WhatCannotBeInvalidatedIsNotDelivered) {
  post_receive(300);
  Message m = send(1, 50);
  m.opcode = Opcode::send_inv;
  m.stag = Stag{0xdead};
  give(cut(m));
  EXPECT_TRUE(host->host.received.empty());
  EXPECT_EQ(drops(WdpDrop::protection), 1U);
  const auto c = said();
  ASSERT_EQ(c.size(), 1U);
  EXPECT_EQ(c[0].type, wire::CtlType::err);
  // Its receive is the next one's.
  EXPECT_EQ(host->host.receives.size(), 1U);
  give(cut(send(2, 50)));
  EXPECT_EQ(delivered(), (Msns{2}));
  EXPECT_EQ(host->host.received[0].wr_id, 0U);
}

TEST_F(SendAssemblyTest, ASendTellsOfAnImmediateOrOfAnStag) {
  post_receive(100);
  Message m = send(1, 50);
  m.opcode = Opcode::send_inv;
  m.stag = stag;
  m.immediate = 4;
  give(cut(m));
  EXPECT_EQ(drops(WdpDrop::bad_opcode), 1U);
  EXPECT_TRUE(host->host.invalidated.empty());
}

TEST_F(SendAssemblyTest, AReceiveWhoseMemoryIsGoneFails) {
  post_receive(300);
  post_receive(300);
  const auto d = cut(send(1, 250));
  give(d[0]);
  host->host.regions.erase(host->host.regions.find(Stag{stag.value() + 0x101}));
  give(d[1]);
  give(d[2]);
  ASSERT_EQ(host->host.received.size(), 1U);
  EXPECT_EQ(host->host.received[0].status, Status::local_protection);
  EXPECT_EQ(drops(WdpDrop::own_memory), 2U);
  give(cut(send(2, 250)));
  EXPECT_EQ(host->host.received.size(), 2U);
  EXPECT_EQ(host->host.received[1].wr_id, 1U);
}

TEST_F(SendAssemblyTest, TheReceiveOfAnIncompleteSendGoesBack) {
  post_receive(300);
  post_receive(300);
  give(cut(send(1, 250))[0]);
  EXPECT_EQ(host->host.receives.size(), 1U);
  for (int i = 0; i < 2; ++i) {
    session->give_back_receive();
    ASSERT_EQ(host->host.receives.size(), 2U);
    EXPECT_EQ(host->host.receives.front().wr_id, 0U);
  }
  EXPECT_EQ(counters().messages_incomplete, 1U);
}

}  // namespace
}  // namespace weft::wdp
