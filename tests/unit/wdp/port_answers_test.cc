#include "wdp/port_answers.h"

#include "tests/unit/wdp/handshake_fixture.h"
#include "wdp/request_gate.h"

namespace weft::wdp {
namespace {

struct PortAnswersTest : HandshakeTest {
  struct Sent {
    Path path;
    Buffer bytes;
  };
  std::vector<Sent> sent() {
    std::vector<Sent> all;
    while (answers.ready()) {
      Train t;
      answers.fill(t);
      EXPECT_EQ(t.datagrams(), 1U);
      Sent& s = all.emplace_back(Sent{.path = t.path(), .bytes = {}});
      for (const IoVec& v : t.pieces()) {
        const auto* p = static_cast<const std::byte*>(v.iov_base);
        s.bytes.insert(s.bytes.end(), p, p + v.iov_len);
      }
    }
    return all;
  }
  static WdpCtl req(uint32_t xid) {
    return {.type = CtlType::req,
            .source_token = SessionToken{5},
            .source = make_qpn(50000, 9),
            .xid = Xid{xid},
            .max_payload = 1472};
  }
  static RequestKey key(uint32_t xid) { return key_of(req(xid), kActive); }

  PortAnswers answers;
  const UdReception how{.from = kActive, .to = kPassive.address};
};

// spec/wdp 4.3: from the address that the question came to.
TEST_F(PortAnswersTest, AnAnswerGoesToWhoAskedFromWhereItWasAsked) {
  EXPECT_FALSE(answers.ready());
  answers.say(RequestGate::rejection(req(7), RejReason::no_listener), how);
  const auto all = sent();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].path, (Path{.to = kActive, .from = kPassive.address}));
  const auto c = WdpCtl::parse(all[0].bytes);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(c->type, CtlType::rej);
  EXPECT_EQ(c->xid, Xid{7});
  EXPECT_EQ(answers.rejections().of(RejReason::no_listener), 1U);
  EXPECT_FALSE(answers.repeat(key(7), 1000, how)) << "not kept";
}

TEST_F(PortAnswersTest, OneDatagramATimeInOrder) {
  answers.say(RequestGate::rejection(req(1), RejReason::no_listener), how);
  answers.say(RequestGate::rejection(req(2), RejReason::no_listener), how);
  Train busy;
  busy.begin(20, {.to = kActive});
  (void)busy.stage(20);
  answers.fill(busy);
  EXPECT_EQ(busy.datagrams(), 1U) << "somebody else's";
  const auto all = sent();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(WdpCtl::parse(all[0].bytes)->xid, Xid{1});
  EXPECT_EQ(WdpCtl::parse(all[1].bytes)->xid, Xid{2});
  Train none;
  answers.fill(none);
  EXPECT_TRUE(none.empty());
}

TEST_F(PortAnswersTest, WhatFindsNoRoomIsNotSaidAndNotCounted) {
  for (uint32_t i = 0; i < PortAnswers::kMost + 3; ++i) {
    answers.say(RequestGate::rejection(req(i), RejReason::no_listener), how);
  }
  EXPECT_EQ(answers.rejections().of(RejReason::no_listener), PortAnswers::kMost);
  EXPECT_EQ(sent().size(), PortAnswers::kMost);
}

TEST_F(PortAnswersTest, ACopyOfWhatWasRefusedGetsTheSame) {
  answers.refuse(req(7), RejReason::no_resources, how);
  const auto first = sent();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_FALSE(answers.repeat(key(8), 1000, how)) << "another one";
  EXPECT_TRUE(answers.repeat(key(7), first[0].bytes.size(), how));
  const auto again = sent();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].bytes, first[0].bytes);
  EXPECT_EQ(again[0].path, first[0].path);
  EXPECT_EQ(answers.rejections().of(RejReason::no_resources), 2U);
}

// spec/threats 4: three times what came at most, of each copy.
TEST_F(PortAnswersTest, ASmallCopyIsKnownAndGetsNothing) {
  answers.refuse(req(7), RejReason::no_resources, how);
  const size_t size = sent().at(0).bytes.size();
  EXPECT_TRUE(answers.repeat(key(7), (size - 1) / 3, how));
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(answers.rejections().of(RejReason::no_resources), 1U);
  EXPECT_TRUE(answers.repeat(key(7), (size + 2) / 3, how));
  EXPECT_EQ(sent().size(), 1U);
}

TEST_F(PortAnswersTest, AHandshakeSaysAllThatItHas) {
  connect();
  answers.say_of(a);
  EXPECT_FALSE(a.ready());
  const auto all = sent();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].path.to, kPassive);
  EXPECT_EQ(WdpCtl::parse(all[0].bytes)->type, CtlType::req);
  EXPECT_EQ(answers.rejections().total(), 0U);
}

TEST_F(PortAnswersTest, TheRejOfAHandshakeIsKeptForCopies) {
  connect();
  const Said request_of_a = one(a, CtlType::req);
  request(request_of_a);
  b.reject(RejReason::application, pattern_bytes(5, 3));
  answers.say_of(b);
  const auto first = sent();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(WdpCtl::parse(first[0].bytes)->type, CtlType::rej);
  EXPECT_EQ(answers.rejections().of(RejReason::application), 1U);
  const auto key_of_a = key_of(request_of_a.ctl, kActive);
  EXPECT_TRUE(answers.repeat(key_of_a, request_of_a.bytes.size(), how));
  EXPECT_EQ(sent().at(0).bytes, first[0].bytes);
  EXPECT_EQ(answers.rejections().of(RejReason::application), 2U);
}

}  // namespace
}  // namespace weft::wdp
