// Work requests as datagrams, and when they complete.

#include "tests/unit/wdp/uc_send_fixture.h"

namespace weft::wdp {
namespace {

TEST_F(UcSendPathTest, AMessageIsCutByTheStride) {
  post({.operation = Operation::write, .remote_stag = Stag{3}, .remote_to = TaggedOffset{1000}},
       large);
  const auto d = say();
  ASSERT_EQ(d.size(), 3U);
  Buffer all;
  for (size_t i = 0; i < 3; ++i) {
    const WdpData& h = d[i].header;
    EXPECT_EQ(h.opcode, Opcode::write);
    EXPECT_EQ(h.token, SessionToken{7});
    EXPECT_EQ(h.didx, 5);
    EXPECT_EQ(h.sidx, 9);
    EXPECT_EQ(h.psn, Psn{0xfffffffeU} + static_cast<uint32_t>(i));
    EXPECT_EQ(h.msn, Msn{1});
    EXPECT_EQ(h.mo.value(), i * 192);
    EXPECT_EQ(h.mlen, 500U);
    EXPECT_EQ(h.stride, 192);
    EXPECT_EQ(h.last, i == 2);
    EXPECT_EQ(h.stag, Stag{3});
    EXPECT_EQ(h.to.value(), 1000 + i * 192);
    EXPECT_FALSE(h.flags.immediate || h.flags.crc);
    all.insert(all.end(), d[i].payload.begin(), d[i].payload.end());
  }
  EXPECT_EQ(all, large);
}

TEST_F(UcSendPathTest, EachKindHasItsOpcodeAndFlags) {
  struct Row {
    Operation operation;
    bool solicited;
    Opcode opcode;
    bool immediate;
    bool se;
    bool stag;
  };
  const Row rows[] = {
      {Operation::send, false, Opcode::send, false, false, false},
      {Operation::send, true, Opcode::send_se, false, false, false},
      {Operation::send_immediate, false, Opcode::send, true, false, false},
      {Operation::send_immediate, true, Opcode::send_se, true, false, false},
      {Operation::send_invalidate, false, Opcode::send_inv, false, false, true},
      {Operation::send_invalidate, true, Opcode::send_se_inv, false, false, true},
      {Operation::write, false, Opcode::write, false, false, true},
      {Operation::write, true, Opcode::write, false, false, true},
      {Operation::write_immediate, false, Opcode::write, true, false, true},
      {Operation::write_immediate, true, Opcode::write, true, true, true},
  };
  for (const Row& r : rows) {
    post({.operation = r.operation,
          .solicited = r.solicited,
          .remote_stag = Stag{0x55},
          .immediate = 0xcafef00d},
         large);
    const auto d = say();
    ASSERT_EQ(d.size(), 3U);
    for (const auto& s : d) {
      EXPECT_EQ(s.header.opcode, r.opcode);
      EXPECT_EQ(s.header.flags.immediate, r.immediate);
      EXPECT_EQ(s.header.imm_or_read, r.immediate ? 0xcafef00d : 0);
      EXPECT_EQ(s.header.write_se, r.se);
      EXPECT_EQ(s.header.stag, r.stag ? Stag{0x55} : Stag{});
    }
  }
}

TEST_F(UcSendPathTest, CompleteWhenTheKernelHasIt) {
  post({.operation = Operation::send}, large);
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 3U);
  EXPECT_TRUE(completed().empty());
  session->llp_took_all(now);
  EXPECT_EQ(completed(), (Ids{1}));
  EXPECT_EQ(train().size(), 1U);
  session->llp_took_all(now);
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

// spec/wdp 2.7: whole messages or runs of equal-size segments of several messages.
TEST_F(UcSendPathTest, MessagesOfOneSizeShareATrain) {
  for (int i = 0; i < 70; ++i) post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 64U);
  session->llp_took_all(now);
  EXPECT_EQ(train().size(), 6U);
  session->llp_took_all(now);
  // Cut evenly: the last segment is no shorter.
  for (int i = 0; i < 2; ++i) post({.operation = Operation::send}, large);
  const auto both = train();
  ASSERT_EQ(both.size(), 8U);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(both[i].header.stride, 125);
    EXPECT_EQ(both[i].header.mo.value(), i % 4 * 125);
    EXPECT_EQ(both[i].payload.size(), 125U);
    EXPECT_EQ(both[i].header.last, i % 4 == 3);
  }
  session->llp_took_all(now);
  // There is no even cut of a prime number.
  Buffer prime = pattern_bytes(499, 3);
  for (int i = 0; i < 2; ++i) post({.operation = Operation::send}, prime);
  EXPECT_EQ(train().size(), 3U);
  session->llp_took_all(now);
  EXPECT_EQ(train().size(), 3U);
}

TEST_F(UcSendPathTest, AMessageOfNothingIsADatagram) {
  Buffer nothing;
  post({.operation = Operation::send_immediate, .immediate = 6}, nothing);
  const auto d = say();
  ASSERT_EQ(d.size(), 1U);
  EXPECT_EQ(d[0].bytes.size(), WdpData::kSize);
  EXPECT_TRUE(d[0].header.last);
  EXPECT_EQ(d[0].header.mlen, 0U);
}

TEST_F(UcSendPathTest, InlineDataAndManyPiecesAreGathered) {
  SendWqe& w =
      host->host.post({.wr_id = 1, .operation = Operation::send, .inlined = true, .length = 5});
  const Buffer hello = pattern_bytes(5, 9);
  std::memcpy(w.payload(), hello.data(), 5);
  std::vector<work::LocalSegment> pieces;
  const auto all = test::segment(host->host, large);
  for (uint32_t at = 0; at < 400; at += 40) pieces.push_back({all.address + at, 40, all.lkey});
  host->host.post({.wr_id = 2, .operation = Operation::send}, pieces);
  const auto d = say();
  ASSERT_EQ(d.size(), 4U);
  EXPECT_EQ(d[0].payload, hello);
  EXPECT_TRUE(std::equal(d[2].payload.begin(), d[2].payload.end(), large.begin() + 192));
}

TEST_F(UcSendPathTest, LargePayloadsAreReferredTo) {
  configure({.max_payload = 8972});
  Buffer huge = pattern_bytes(20'000, 3);
  post({.operation = Operation::send}, huge);
  Train t;
  session->fill(t, now);
  // Header and payload of two datagrams; the third payload is small.
  EXPECT_EQ(t.pieces().size(), 5U);
  EXPECT_EQ(t.pieces()[1].iov_base, huge.data());
}

TEST_F(UcSendPathTest, WithACrcEachDatagramBearsIt) {
  configure({.crc = true, .max_payload = 8972});
  Buffer huge = pattern_bytes(20'000, 3);
  post({.operation = Operation::write}, huge);
  post({.operation = Operation::write}, small);
  const auto d = say();
  ASSERT_EQ(d.size(), 4U);
  for (const auto& x : d) {
    EXPECT_TRUE(x.header.flags.crc);
    EXPECT_TRUE(wire::wdp_crc_matches(x.bytes));
  }
}

TEST_F(UcSendPathTest, NothingGoesOutBeforeTheSessionIsOpen) {
  const UcParameters p = session->parameters();
  host->host.ready = false;
  session = std::make_unique<UcSession>(*host, p, random, windows, now);
  post({.operation = Operation::send}, small);
  EXPECT_FALSE(session->ready(now));
  session->open();
  EXPECT_TRUE(host->host.ready);
  EXPECT_EQ(say().size(), 1U);
}

TEST_F(UcSendPathTest, LocalOperationsTakeTheirTurn) {
  post({.operation = Operation::send}, small);
  host->host.post({.wr_id = ++posted, .operation = Operation::local_invalidate, .signaled = true});
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 2U);
  EXPECT_TRUE(completed().empty());
  session->llp_took_all(now);
  EXPECT_EQ(completed(), (Ids{1, 2, 3}));
}

// As on a stream (SendPathTest).
TEST_F(UcSendPathTest, ALocalOperationWaitsForWhatTheTrainRefersTo) {
  configure({.max_payload = 8900});
  Buffer big = pattern_bytes(8'192, 4);
  post({.operation = Operation::send}, big);
  const SendWqe& local = host->host.post(
      {.wr_id = ++posted, .operation = Operation::local_invalidate, .signaled = true});
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  EXPECT_FALSE(local.answered);
  session->llp_took_all(now);
  EXPECT_EQ(train().size(), 1U);
  EXPECT_TRUE(local.answered);
  session->llp_took_all(now);
  EXPECT_EQ(completed(), (Ids{1, 2, 3}));
}

TEST_F(UcSendPathTest, HeldRequestsWait) {
  configure({.max_payload = 1472});
  Buffer big = pattern_bytes(100'000, 4);
  post({.operation = Operation::send}, big);
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 44U);
  session->hold_requests(true);
  session->llp_took_all(now);
  EXPECT_FALSE(session->requests_idle());
  // The message that is begun is finished.
  EXPECT_EQ(say().size(), 71U - 44);
  EXPECT_TRUE(session->requests_idle());
  EXPECT_EQ(completed(), (Ids{1}));
  session->hold_requests(false);
  EXPECT_EQ(say().size(), 1U);
}

TEST_F(UcSendPathTest, APathThatCarriesLessGetsSmallerSegments) {
  configure({.max_payload = 1472});
  Buffer big = pattern_bytes(100'000, 4);
  post({.operation = Operation::write}, big);
  EXPECT_EQ(train().size(), 44U);
  // The kernel says EMSGSIZE.
  session->path_carries(548);
  session->llp_took_all(now);
  // What was begun is lost, as on UC it may be.
  EXPECT_EQ(completed(), (Ids{1}));
  post({.operation = Operation::write}, large);
  const auto d = say();
  ASSERT_EQ(d.size(), 2U);
  EXPECT_EQ(d[0].header.stride, 496);
}

TEST_F(UcSendPathTest, ClosingSendsWhatIsPostedAndSaysHowFarItCame) {
  post({.operation = Operation::send}, large);
  session->close(now);
  post({.operation = Operation::send}, small);
  Buffer last;
  for (Train t; session->ready(now); t.clear()) {
    session->fill(t, now);
    if (t.empty()) break;
    last.assign(static_cast<const std::byte*>(t.pieces()[0].iov_base),
                static_cast<const std::byte*>(t.pieces()[0].iov_base) + t.pieces()[0].iov_len);
    session->llp_took_all(now);
  }
  EXPECT_EQ(completed(), (Ids{1}));
  const auto dreq = wire::WdpCtl::parse(last);
  ASSERT_TRUE(dreq.ok());
  EXPECT_EQ(dreq->type, wire::CtlType::dreq);
  EXPECT_EQ(dreq->highest_psn, Psn{0});  // 0xfffffffe and two more
}

}  // namespace
}  // namespace weft::wdp
