#include "wdp/rd_opening.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/pattern.h"

namespace weft::wdp {
namespace {

using News = RdOpening::News;
using test::Buffer;
using wire::CtlType;
using wire::WdpCtl;
using wire::WdpDrop;

const Endpoint kA{Gid::from_ipv4(0x0a000001), 40000};
const Endpoint kB{Gid::from_ipv4(0x0a000002), 40000};

struct Said {
  Buffer bytes;
  WdpCtl ctl;
};

struct RdOpeningTest : ::testing::Test {
  static Offer offer(uint32_t token, bool responses = true) {
    return {.service = wire::CtlService::rd_channel,
            .own_qpn = make_qpn(40000, 0),
            .token = SessionToken{token},
            .first_psn = Psn{token * 100},
            .features = {.immediate = true, .responses = responses}};
  }
  void a_calls() { a.call(offer(1), {.to = kB}, make_qpn(40000, 0), now); }
  void b_answers(const Said& req) {
    b.answer(req.ctl, {.to = kA}, req.bytes.size(), false, offer(2, false), now);
  }
  std::vector<Said> said(RdOpening& o) {
    std::vector<Said> all;
    while (o.ready()) {
      Train t;
      o.fill(t);
      const auto* p = static_cast<const std::byte*>(t.pieces()[0].iov_base);
      all.push_back({Buffer(p, p + t.bytes()), {}});
    }
    for (Said& s : all) s.ctl = *WdpCtl::parse(s.bytes);
    return all;
  }
  Said one(RdOpening& o, CtlType type) {
    auto all = said(o);
    EXPECT_EQ(all.size(), 1U);
    if (all.empty()) return {};
    EXPECT_EQ(all[0].ctl.type, type);
    return std::move(all[0]);
  }
  News hear(RdOpening& o, const Said& s) {
    EXPECT_TRUE(o.received(s.ctl, s.bytes.size(), now).ok());
    return o.look();
  }
  // Both: the token may be another one's by then.
  std::optional<RdOpening::Verdict> hear_request(RdOpening& o, const Said& req,
                                                 bool validated = false) {
    return o.requested_again(req.ctl, req.bytes.size(), validated, now);
  }

  SeededRandom random{3};
  Time now = Time::from_ns(1'000'000'000);
  RdOpening a{random};
  RdOpening b{random};
};

TEST_F(RdOpeningTest, OneCallsAndOneAnswers) {
  a_calls();
  EXPECT_EQ(a.look(), News::none);
  b_answers(one(a, CtlType::req));
  EXPECT_EQ(b.look(), News::peer_known);
  EXPECT_EQ(b.look(), News::none) << "told once";
  EXPECT_EQ(b.peer().token, SessionToken{1});
  EXPECT_EQ(b.peer().first, Csn{100});
  EXPECT_TRUE(b.peer().terms.responses) << "what the peer takes, not what it is offered";
  EXPECT_EQ(hear(a, one(b, CtlType::rep)), News::opens);
  EXPECT_EQ(a.look(), News::none);
  EXPECT_EQ(a.peer().token, SessionToken{2});
  EXPECT_EQ(a.peer().first, Csn{200});
  EXPECT_FALSE(a.peer().terms.responses);
  EXPECT_EQ(a.peer().port, make_qpn(40000, 0));
  EXPECT_EQ(hear(b, one(a, CtlType::rtu)), News::opens);
}

TEST_F(RdOpeningTest, DataOpensAsWellAsRtu) {
  a_calls();
  b_answers(one(a, CtlType::req));
  EXPECT_EQ(b.look(), News::peer_known);
  b.let_go();
  EXPECT_NE(b.handshake(), nullptr) << "it is not over";
  b.confirmed(now);
  EXPECT_EQ(b.look(), News::opens);
  b.let_go();
  EXPECT_EQ(b.handshake(), nullptr);
  EXPECT_TRUE(b.deadline().is_never());
  EXPECT_FALSE(b.ready());
  const Said rtu{{}, {.type = CtlType::rtu}};
  EXPECT_EQ(b.received(rtu.ctl, 256, now).error(), WdpDrop::stale_handshake);
  EXPECT_EQ(b.look(), News::none);
  EXPECT_EQ(b.peer().token, SessionToken{1});
}

TEST_F(RdOpeningTest, WhoHasAnsweredMayCallAsWell) {
  a_calls();
  const Said req = one(a, CtlType::req);
  b_answers(req);
  EXPECT_EQ(b.look(), News::peer_known);
  (void)said(b);  // is lost
  b.call_too(now);
  const Said own = one(b, CtlType::req);
  EXPECT_EQ(own.ctl.source_token, SessionToken{2});
  ASSERT_TRUE(hear_request(a, own));
  EXPECT_EQ(a.look(), News::peer_known);
}

TEST_F(RdOpeningTest, ARequestOfAnotherTokenIsNotThePeers) {
  a_calls();
  Said req = one(a, CtlType::req);
  b_answers(req);
  EXPECT_EQ(b.look(), News::peer_known);
  EXPECT_TRUE(hear_request(b, req)) << "the same again";
  req.ctl.source_token = SessionToken{77};
  EXPECT_FALSE(hear_request(b, req));
}

TEST_F(RdOpeningTest, APeerWithoutChannelsRefuses) {
  a_calls();
  const Said req = one(a, CtlType::req);
  const Said rej{{},
                 {.type = CtlType::rej,
                  .token = SessionToken{1},
                  .xid = req.ctl.xid,
                  .service = wire::CtlService::rd_channel,
                  .reason = static_cast<uint32_t>(wire::RejReason::no_listener)}};
  EXPECT_TRUE(a.received(rej.ctl, 64, now).ok());
  EXPECT_EQ(a.look(), News::refused);
  EXPECT_EQ(a.look(), News::none);
}

TEST_F(RdOpeningTest, NobodyAnswers) {
  a_calls();
  while (!a.deadline().is_never()) {
    (void)said(a);
    now = a.deadline();
    a.tick(now);
    if (a.look() != News::none) break;
  }
  EXPECT_EQ(now, Time::from_ns(1'000'000'000) + kHandshakeFails);
  EXPECT_EQ(a.look(), News::none) << "it has failed once";
}

TEST_F(RdOpeningTest, OneThatIsNotWantedHasNoNews) {
  a_calls();
  a.withdraw();
  EXPECT_EQ(a.look(), News::none);
  EXPECT_FALSE(a.ready());
}

}  // namespace
}  // namespace weft::wdp
