// The requester's side of UC Reads, and their recovery: wire.md 9.3.

#include "wdp/read_requester.h"

#include <set>

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

using rdmap::Operation;
using rdmap::Status;

struct ReadRequesterTest : UcReceiveTest {
  ReadRequesterTest() { start({.max_payload = 448, .rtt = 1ms}); }  // STRIDE 400

  void start(const UcParameters& p) {
    configure(p);
    sink = Buffer(40'000);
    source = pattern_bytes(sink.size(), 8);
    local = test::segment(host->host, sink);
    ids = 0;
    msn = 0;
  }
  void post(uint32_t length, uint32_t at = 0, bool fence = false) {
    host->host.post({.wr_id = ++ids,
                     .operation = Operation::read,
                     .signaled = true,
                     .fence = fence,
                     .remote_stag = Stag{0x77},
                     .remote_to = TaggedOffset{5000}},
                    {{local.address + at, length, local.lkey}});
  }
  struct Request {
    WdpData header;
    wire::WdpReadRange range;
  };
  std::vector<Request> requests() {
    std::vector<Request> all;
    while (session->ready(now)) {
      Train t;
      session->fill(t, now);
      if (t.empty()) break;
      t.each_datagram([&](std::span<const IoVec> pieces) {
        Buffer d;
        for (const IoVec& v : pieces) {
          const auto* p = static_cast<const std::byte*>(v.iov_base);
          d.insert(d.end(), p, p + v.iov_len);
        }
        const auto h = WdpData::parse(d);
        if (h.ok() && h->opcode == Opcode::read_request) {
          all.push_back({*h, wire::WdpReadRange::parse(d.data() + WdpData::kSize)});
        }
      });
      session->llp_took_all(now);
    }
    return all;
  }
  // Segment `index` of the answer to `r`; the Read's bytes are source[at ..].
  void answer(const Request& r, uint32_t index, uint32_t at = 0, uint16_t stride = 400) {
    const uint32_t mo = index * stride;
    const uint32_t n = std::min<uint32_t>(stride, r.header.mlen - mo);
    give(encode({.psn = Psn{psn++},
                 .msn = Msn{++msn},
                 .mo = MessageOffset{mo},
                 .mlen = r.header.mlen,
                 .last = mo + n == r.header.mlen,
                 .opcode = Opcode::read_response,
                 .stride = stride,
                 .imm_or_read = r.header.imm_or_read,
                 .to = TaggedOffset{mo}},
                Bytes{source}.subspan(at + mo, n)));
  }
  void wait_for_deadline() {
    now = std::max(now, session->deadline());
    session->tick(now);
  }
  std::vector<std::pair<uint64_t, Status>> completed() const {
    std::vector<std::pair<uint64_t, Status>> all;
    for (const auto& d : host->host.sent) all.emplace_back(d.wr_id, d.status);
    return all;
  }

  Buffer sink;
  Buffer source;
  rdmap::LocalSegment local;
  uint64_t ids = 0;
  uint32_t msn = 0;
};
using Done = std::vector<std::pair<uint64_t, Status>>;

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

// --- recovery

TEST_F(ReadRequesterTest, WhatDoesNotComeIsAskedForAgain) {
  post(2000);
  const auto first = requests().at(0);
  for (const uint32_t i : {0U, 2U}) answer(first, i);
  const Time progress = now;
  // The hole is noticed 250 us after what came behind it, the end by the timer.
  wait_for_deadline();
  EXPECT_EQ(now - progress, kHoldFor);
  auto r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].header.mo.value(), 400U);
  EXPECT_EQ(r[0].range, (wire::WdpReadRange{400, 1}));
  EXPECT_EQ(r[0].header.read_id(), first.header.read_id());
  EXPECT_EQ(r[0].header.stride, 400);
  answer(first, 1);
  const Time again = now;
  wait_for_deadline();
  EXPECT_GE(now - again, kLeastReadTimeout);
  r = requests();
  ASSERT_EQ(r.size(), 1U);
  EXPECT_EQ(r[0].header.mo.value(), 1200U);
  EXPECT_EQ(r[0].range, (wire::WdpReadRange{800, 2}));
  answer(r[0], 4);
  answer(r[0], 3);
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
  EXPECT_TRUE(std::equal(sink.begin(), sink.begin() + 2000, source.begin()));
  EXPECT_EQ(counters().ranges_repeated, 2U);
}

TEST_F(ReadRequesterTest, ARequestThatIsLostWholeIsAskedAgainWhenALaterOneIsAnswered) {
  post(400);
  post(400, 400);
  const auto r = requests();
  ASSERT_EQ(r.size(), 2U);
  post(800, 800);
  const auto third = requests().at(0);
  answer(third, 0, 800);
  wait_for_deadline();
  const auto again = requests();
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].header.read_id(), r[0].header.read_id());
  EXPECT_EQ(again[1].header.read_id(), r[1].header.read_id());
}

TEST_F(ReadRequesterTest, AtMost64RangesAreAskedForAtOnce) {
  start({.max_payload = 448, .receive_buffer = 4 << 20, .rtt = 1ms});
  post(40'000);  // 100 segments
  sink.resize(sink.size());
  const auto first = requests();
  for (const auto& r : first) {
    for (uint32_t i = r.header.mo.value() / 400; i * 400 < r.header.mo.value() + r.range.length;
         ++i) {
      if (i % 2 == 0) answer(r, i);
    }
  }
  std::set<uint32_t> asked;
  for (int round = 0; round < 10 && asked.size() < 50; ++round) {
    wait_for_deadline();
    const auto r = requests();
    EXPECT_LE(r.size(), kMostReRequests);
    for (const auto& x : r) asked.insert(x.header.mo.value() / 400);
  }
  EXPECT_EQ(asked.size(), 50U);
  for (const uint32_t i : asked) EXPECT_EQ(i % 2, 1U);
}

// "RTO*2 after an expiry that brought nothing. After retry_cnt (7) expiries without any new
// segment: WC RETRY_EXC_ERR for that WR; QP stays RTS, later WRs continue".
TEST_F(ReadRequesterTest, AfterSevenExpiriesTheRequestFailsAndNothingElse) {
  post(400);
  const auto r = requests().at(0);
  std::vector<int64_t> waits;
  Time since = now;
  while (completed().empty()) {
    wait_for_deadline();
    waits.push_back((now - since).count() / 1'000'000);
    since = now;
    if (completed().empty()) {
      EXPECT_EQ(requests().size(), 1U);
    }
  }
  ASSERT_EQ(waits.size(), 7U);
  for (size_t i = 1; i < waits.size(); ++i) EXPECT_NEAR(waits[i], 2 * waits[i - 1], 2);
  EXPECT_EQ(completed(), (Done{{1, Status::retry_exceeded}}));
  EXPECT_FALSE(host->host.end);
  EXPECT_EQ(counters().reads_failed, 1U);
  // What still comes of it is nobody's; the queue pair goes on.
  answer(r, 0);
  EXPECT_EQ(drops(WdpDrop::stale_read), 1U);
  EXPECT_EQ(sink[0], std::byte{0});
  post(400, 400);
  answer(requests().at(0), 0);
  EXPECT_EQ(completed(), (Done{{1, Status::retry_exceeded}, {2, Status::success}}));
}

TEST_F(ReadRequesterTest, EveryNewSegmentGivesItNewPatience) {
  post(4000);
  auto r = requests().at(0);
  uint32_t next_segment = 0;
  for (int i = 0; i < 40 && completed().empty(); ++i) {
    for (int k = 0; k < 5; ++k) wait_for_deadline();
    (void)requests();
    answer(r, next_segment++);
  }
  EXPECT_EQ(completed(), (Done{{1, Status::success}}));
}

TEST_F(ReadRequesterTest, TheTimeoutFollowsTheRoundTripTime) {
  start({.max_payload = 448, .rtt = 100ms});
  post(400);
  (void)requests();
  EXPECT_GE(session->deadline(), now + 400ms);
  EXPECT_LT(session->deadline(), now + 500ms);
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

// wire.md 9.3: "STRIDE must not change within one RID". The end of this one came, for it is short;
// what is before it never will.
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
