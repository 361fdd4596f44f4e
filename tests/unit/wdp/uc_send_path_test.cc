// Work requests as datagrams, and when they complete.

#include "wdp/uc_send_path.h"

#include <gtest/gtest.h>

#include "tests/support/uc_host.h"
#include "wdp/uc_session.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {
namespace {

using rdmap::Operation;
using rdmap::SendWqe;
using rdmap::Status;
using test::Buffer;
using test::pattern_bytes;
using wire::Opcode;
using wire::WdpData;

struct UcSendPathTest : ::testing::Test {
  UcSendPathTest() { configure({.max_payload = 248}); }  // STRIDE 192

  void configure(UcParameters p) {
    p.path.to = {Gid::from_ipv4(0x0a000002), 40000};
    p.peer_token = SessionToken{7};
    p.own_token = SessionToken{8};
    p.own_qpn = make_qpn(50000, 9);
    p.peer_qpn = make_qpn(40000, 5);
    p.first_psn = Psn{0xfffffffeU};
    p.peer_first_psn = Psn{1};
    host = std::make_unique<test::UcHost>();
    session = std::make_unique<UcSession>(*host, p, random, now);
    session->open();
  }
  SendWqe& post(SendWqe w, Buffer& memory) {
    w.wr_id = ++posted;
    w.signaled = true;
    return host->host.post(w, {test::segment(host->host, memory)});
  }
  struct Datagram {
    Buffer bytes;
    WdpData header;
    Buffer payload;
  };
  // One train, if there is one.
  std::vector<Datagram> train() {
    Train t;
    std::vector<Datagram> all;
    if (!session->ready(now)) return all;
    session->fill(t, now);
    t.each_datagram([&](std::span<const IoVec> pieces) {
      Datagram& d = all.emplace_back();
      for (const IoVec& v : pieces) {
        const auto* p = static_cast<const std::byte*>(v.iov_base);
        d.bytes.insert(d.bytes.end(), p, p + v.iov_len);
      }
      if (const auto h = WdpData::parse(d.bytes); h.ok()) d.header = *h;
      if (d.bytes.size() >= WdpData::kSize) {
        d.payload.assign(d.bytes.begin() + WdpData::kSize, d.bytes.end());
      }
    });
    return all;
  }
  // Everything, and the kernel takes it.
  std::vector<Datagram> say() {
    std::vector<Datagram> all;
    for (;;) {
      const auto some = train();
      if (some.empty()) return all;
      all.insert(all.end(), some.begin(), some.end());
      session->llp_took_all(now);
    }
  }
  // A request that is at fault itself ends the session: nothing but DREQ goes out.
  void expect_dreq_alone() {
    const auto d = say();
    ASSERT_EQ(d.size(), 1U);
    const auto c = wire::WdpCtl::parse(d[0].bytes);
    ASSERT_TRUE(c.ok());
    EXPECT_EQ(c->type, wire::CtlType::dreq);
  }
  std::vector<uint64_t> completed() const {
    std::vector<uint64_t> ids;
    for (const auto& d : host->host.sent) {
      EXPECT_EQ(d.status, Status::success) << d.wr_id;
      ids.push_back(d.wr_id);
    }
    return ids;
  }
  using Ids = std::vector<uint64_t>;

  SeededRandom random{5};
  Time now = Time::from_ns(1'000'000'000);
  std::unique_ptr<test::UcHost> host;
  std::unique_ptr<UcSession> session;
  uint64_t posted = 0;
  Buffer small = pattern_bytes(50, 1);
  Buffer large = pattern_bytes(500, 2);
};

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

// wire.md 8.2: "whole messages or runs of equal-size segments of several messages".
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
  std::vector<rdmap::LocalSegment> pieces;
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
  session = std::make_unique<UcSession>(*host, p, random, now);
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

// --- failures

TEST_F(UcSendPathTest, ARequestAtFaultFailsBehindThoseBeforeIt) {
  post({.operation = Operation::send}, small);
  SendWqe& bad = post({.operation = Operation::send}, small);
  bad.segment()[0].lkey = Stag{0xdead};
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  EXPECT_FALSE(host->host.end);
  session->llp_took_all(now);
  ASSERT_TRUE(host->host.end.has_value());
  EXPECT_EQ(host->host.end->kind, rdmap::StreamEnd::Kind::local_error);
  ASSERT_EQ(host->host.sent.size(), 3U);
  EXPECT_EQ(host->host.sent[0].status, Status::success);
  EXPECT_EQ(host->host.sent[1].status, Status::local_protection);
  EXPECT_EQ(host->host.sent[2].status, Status::flushed);
  // The peer hears that it is over.
  Train t;
  session->fill(t, now);
  ASSERT_EQ(t.datagrams(), 1U);
}

TEST_F(UcSendPathTest, MemoryThatGoesAwayInTheMiddleFailsTheRequest) {
  configure({.max_payload = 1472});
  Buffer big = pattern_bytes(100'000, 4);
  post({.operation = Operation::write}, big);
  EXPECT_EQ(train().size(), 44U);
  host->host.regions.clear();
  session->llp_took_all(now);
  expect_dreq_alone();
  ASSERT_TRUE(host->host.end.has_value());
  EXPECT_EQ(host->host.sent[0].status, Status::local_protection);
}

TEST_F(UcSendPathTest, UcHasNoAtomics) {
  post({.operation = Operation::fetch_add}, small);
  expect_dreq_alone();
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::local_qp_operation);
}

TEST_F(UcSendPathTest, WhatThePeerDidNotAgreeToFails) {
  for (const Operation op :
       {Operation::read, Operation::send_immediate, Operation::write_immediate}) {
    configure({.immediate = false, .reads = false, .ord = 4, .max_payload = 248});
    post({.operation = op}, small);
    expect_dreq_alone();
    ASSERT_EQ(host->host.sent.size(), 1U);
    EXPECT_EQ(host->host.sent[0].status, Status::local_qp_operation);
  }
}

TEST_F(UcSendPathTest, AMessageOfTooManySegmentsIsRefused) {
  configure({.max_payload = 64});  // STRIDE 16
  Buffer huge(16 * (kMostSegmentsOfMessage + 1));
  post({.operation = Operation::send}, huge);
  expect_dreq_alone();
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::local_length);
}

TEST_F(UcSendPathTest, TheKernelMissesMemoryOfTheRequestThatItWasGiven) {
  post({.operation = Operation::send}, small);
  say();
  post({.operation = Operation::send}, small);
  EXPECT_EQ(train().size(), 1U);
  session->own_memory_lost(now);
  ASSERT_EQ(host->host.sent.size(), 2U);
  EXPECT_EQ(host->host.sent[1].status, Status::local_protection);
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
