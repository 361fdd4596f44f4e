// The requester's side of UC Reads: spec/wdp-uc 5.4. What becomes of what is lost:
// read_requester_recovery_test.cc.

#include "tests/unit/wdp/read_requester_fixture.h"

namespace weft::wdp {
namespace {

TEST_F(ReadRequesterTest, ARequestNamesTheWholeReadAndTheRange) {
  post(1000);
  const auto r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].header.mlen, 1000U);
  EXPECT_EQ(r[0].header.mo.value(), 0U);
  EXPECT_EQ(r[0].header.stag, Stag{0x77});
  EXPECT_EQ(r[0].header.to.value(), 5000U);
  EXPECT_TRUE(r[0].header.last);
  EXPECT_EQ(r[0].range, (wire::WdpReadRange{1000, 0}));
}

TEST_F(ReadRequesterTest, CompletesWhenTheLastByteIsPlaced) {
  post(1000);
  const auto r = requests().at(0);
  for (const uint32_t i : {2U, 0U}) answer(r, i);
  EXPECT_TRUE(completed().empty());
  answer(r, 1);
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
  EXPECT_TRUE(std::equal(sink.begin(), sink.begin() + 1000, source.begin()));
  EXPECT_EQ(sink[1000], std::byte{0});
  EXPECT_EQ(counters().reads_complete, 1U);
}

TEST_F(ReadRequesterTest, TheRespondersStrideCounts) {
  post(1000);
  const auto r = requests().at(0);
  for (uint32_t i = 0; i < 4; ++i) answer(r, i, 0, 256);
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
  EXPECT_TRUE(std::equal(sink.begin(), sink.begin() + 1000, source.begin()));
}

// "STRIDE must not change within one RID."
TEST_F(ReadRequesterTest, ButItMustNotChange) {
  post(1000);
  const auto r = requests().at(0);
  answer(r, 0);
  answer(r, 1, 0, 256);
  EXPECT_EQ(drops(WdpDrop::context_mismatch), 1U);
}

TEST_F(ReadRequesterTest, CopiesAndStrangersAreDropped) {
  post(1000);
  const auto r = requests().at(0);
  answer(r, 0);
  answer(r, 0);
  EXPECT_EQ(drops(WdpDrop::duplicate_segment), 1U);
  Request other = r;
  ++other.header.imm_or_read;
  answer(other, 1);
  EXPECT_EQ(drops(WdpDrop::stale_read), 1U);
  other = r;
  other.header.mlen = 999;
  answer(other, 1);
  EXPECT_EQ(drops(WdpDrop::context_mismatch), 1U);
  answer(r, 1);
  answer(r, 2);
  answer(r, 2);
  EXPECT_EQ(drops(WdpDrop::stale_read), 2U);
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
}

TEST_F(ReadRequesterTest, AReadOfNothingIsAnsweredByNothing) {
  post(0);
  const auto r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].range.length, 0U);
  answer(r[0], 0);
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
}

// --- how much is asked for

TEST_F(ReadRequesterTest, AtMostOrdReadsAreUnderWay) {
  for (int i = 0; i < 6; ++i) post(400, static_cast<uint32_t>(i) * 400);
  auto r = requests();
  EXPECT_EQ(r.size(), 4U);  // ORD
  answer(r[1], 0, 400);
  EXPECT_EQ(requests().size(), 1U);
  // Requests complete in the order of posting.
  EXPECT_TRUE(completed().empty());
  answer(r[0], 0);
  EXPECT_EQ(completed(), (Done{{1, Status::success}, {2, Status::success}}));
}

TEST_F(ReadRequesterTest, ALongReadIsAskedForInPieces) {
  start({.max_payload = 448, .receive_buffer = 32'000, .rtt = 1ms});
  post(10'000);
  auto r = requests();
  // A quarter of the buffer under way, in four ranges of whole segments.
  ASSERT_EQ(r.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(r[i].header.mo.value(), i * 2000);
    EXPECT_EQ(r[i].range.length, 2000U);
  }
  for (uint32_t i = 0; i < 5; ++i) answer(r[0], i);
  r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].header.mo.value(), 8000U);
  EXPECT_EQ(r[0].range.length, 2000U);
}

TEST_F(ReadRequesterTest, NoRangeIsLongerThanOneMiB) {
  start({.max_payload = 448, .receive_buffer = 64 << 20, .rtt = 1ms});
  Buffer big(5 << 20);
  const auto all = test::segment(host->host, big);
  host->host.post({.wr_id = 1, .operation = Operation::read, .remote_stag = Stag{0x77}}, {all});
  for (const auto& r : requests()) {
    EXPECT_LE(r.range.length, wire::WdpReadRange::kMaxUcRange);
    EXPECT_EQ(r.range.length % 400, 0U);
  }
}

TEST_F(ReadRequesterTest, AFenceWaitsForReads) {
  post(400);
  host->host.post({.wr_id = 99, .operation = Operation::send, .fence = true});
  const auto r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(counters().messages_sent, 0U);
  answer(r[0], 0);
  (void)requests();
  EXPECT_EQ(counters().messages_sent, 1U);
}

TEST_F(ReadRequesterTest, ARefusalFailsTheReadItNames) {
  post(400);
  post(400, 400);
  const auto r = requests();
  Buffer header(WdpData::kSize);
  r[0].header.encode(header.data());
  session->received(wire::WdpCtl{.type = wire::CtlType::err, .offending = header}, now);
  answer(r[1], 0, 400);
  EXPECT_EQ(completed(), (Done{{1, Status::remote_access}, {2, Status::success}}));
  EXPECT_FALSE(host->host.end);
  EXPECT_TRUE(host->remote_errors.empty());
}

TEST_F(ReadRequesterTest, OwnMemoryThatGoesAwayIsTheQueuePairsError) {
  post(400);
  post(400);
  const auto r = requests();
  const auto region = host->host.regions.at(local.lkey);
  host->host.regions.erase(local.lkey);
  answer(r.at(0), 0);
  EXPECT_EQ(drops(WdpDrop::own_memory), 1U);
  EXPECT_EQ(host->send_failures, 1);
  EXPECT_EQ(completed(), (Done{{1, Status::local_protection}, {2, Status::flushed}}));
  // What still comes of the others has no place any more, and nobody waits for it.
  host->host.regions[local.lkey] = region;
  answer(r.at(1), 0);
  EXPECT_EQ(drops(WdpDrop::stale_read), 1U);
  EXPECT_FALSE(host->host.end);
  session->resume_requests();
  post(400);
  answer(requests().at(0), 0);
  EXPECT_EQ(completed().back(), (std::pair<uint64_t, Status>{3, Status::success}));
}

// spec/wdp-uc 5.2: STRIDE must not change within one RID. The end of this one came, for it is
// short; what is before it never will.
TEST_F(ReadRequesterTest, WhatIsTooLargeForThePathIsAskedForAnew) {
  post(900);
  const auto r = requests();
  EXPECT_EQ(r.at(0).header.stride, 400);
  answer(r[0], 2);
  session->path_carries(48 + 208);
  const auto again = requests();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].header.stride, 208);
  EXPECT_EQ(again[0].range.length, 900U);
  EXPECT_NE(again[0].header.imm_or_read, r[0].header.imm_or_read);
  // A late part of the first answer has no place any more.
  answer(r[0], 0);
  EXPECT_EQ(counters().drops.of(wire::WdpDrop::stale_read), 1U);
  for (uint32_t i = 0; i < 5; ++i) answer(again[0], i, 0, 208);
  EXPECT_EQ(completed(), (std::vector<std::pair<uint64_t, Status>>{{1, Status::success}}));
  EXPECT_TRUE(std::equal(sink.begin(), sink.begin() + 900, source.begin()));
}

TEST_F(ReadRequesterTest, WhatComesInSmallDatagramsGoesOn) {
  post(900);
  const auto r = requests();
  answer(r[0], 0, 0, 208);
  session->path_carries(48 + 304);
  EXPECT_TRUE(requests().empty());
  for (uint32_t i = 1; i < 5; ++i) answer(r[0], i, 0, 208);
  EXPECT_EQ(completed(), (std::vector<std::pair<uint64_t, Status>>{{1, Status::success}}));
}

}  // namespace
}  // namespace weft::wdp
