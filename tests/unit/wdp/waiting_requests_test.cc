#include "wdp/waiting_requests.h"

#include "tests/unit/wdp/handshake_fixture.h"

namespace weft::wdp {
namespace {

using State = Handshake::State;

struct WaitingRequestsTest : HandshakeTest {
  static WdpCtl req(uint32_t xid, wire::CtlService service) {
    return {.type = CtlType::req,
            .source_token = SessionToken{xid + 1},
            .source = make_qpn(50000, 9),
            .xid = Xid{xid},
            .service = service,
            .max_payload = 1472};
  }
  RequestKey add(uint32_t xid, wire::CtlService service = wire::CtlService::uc) {
    const WdpCtl c = req(xid, service);
    auto handshake = std::make_unique<Handshake>(random);
    handshake->requested(c, {.to = kActive}, c.size(), false);
    const RequestKey key = key_of(c, kActive);
    waiting.add(key, std::move(handshake));
    return key;
  }
  RequestKey add_question(uint32_t xid) { return add(xid, wire::CtlService::ud_resolution); }
  std::vector<CtlType> said_types() {
    std::vector<CtlType> all;
    while (answers.ready()) {
      Train t;
      answers.fill(t);
      const auto* p = static_cast<const std::byte*>(t.pieces()[0].iov_base);
      all.push_back(WdpCtl::parse({p, t.bytes()})->type);
    }
    return all;
  }

  Demux demux;
  PortAnswers answers;
  WaitingRequests waiting{demux, answers};
};

TEST_F(WaitingRequestsTest, WhatIsAcceptedWaitsNoMore) {
  const auto key = add(7);
  ASSERT_NE(demux.find(key), nullptr);
  EXPECT_EQ(demux.find(key)->waiting->state(), State::req_received);
  EXPECT_EQ(demux.half_open(), 1U);
  const auto handshake = waiting.take(key);
  ASSERT_NE(handshake, nullptr);
  EXPECT_EQ(handshake->peer().xid, Xid{7});
  EXPECT_EQ(demux.find(key), nullptr);
  EXPECT_EQ(demux.half_open(), 0U);
  EXPECT_EQ(waiting.take(key), nullptr);
  EXPECT_FALSE(waiting.reject(key, RejReason::application, {}));
  EXPECT_TRUE(said_types().empty());
}

TEST_F(WaitingRequestsTest, WhatIsRejectedHearsIt) {
  const auto key = add(7);
  EXPECT_TRUE(waiting.reject(key, RejReason::application, pattern_bytes(4, 1)));
  EXPECT_EQ(said_types(), std::vector{CtlType::rej});
  EXPECT_EQ(answers.rejections().of(RejReason::application), 1U);
  EXPECT_EQ(demux.find(key), nullptr);
  EXPECT_FALSE(waiting.reject(key, RejReason::application, {}));
}

// spec/wdp 4.8: its copies get the same answer for two seconds.
TEST_F(WaitingRequestsTest, AQuestionThatIsAnsweredIsKeptForItsCopies) {
  const auto key = add_question(7);
  EXPECT_TRUE(waiting.deadline().is_never());
  EXPECT_TRUE(waiting.tell(key, passive_offer(), now));
  EXPECT_EQ(said_types(), std::vector{CtlType::rep});
  EXPECT_EQ(demux.half_open(), 0U) << "it keeps nobody from asking";
  ASSERT_NE(demux.find(key), nullptr);
  EXPECT_FALSE(waiting.tell(key, passive_offer(), now)) << "once";
  EXPECT_FALSE(waiting.reject(key, RejReason::application, {}));
  EXPECT_EQ(waiting.deadline(), now + 2s);
  waiting.tick(now + 2s - Duration{1});
  EXPECT_NE(demux.find(key), nullptr);
  waiting.tick(now + 2s);
  EXPECT_EQ(demux.find(key), nullptr);
  EXPECT_TRUE(waiting.deadline().is_never());
}

TEST_F(WaitingRequestsTest, AQuestionIsNoCallAndACallNoQuestion) {
  const auto question = add_question(7);
  const auto call = add(8);
  EXPECT_EQ(waiting.take(question), nullptr);
  EXPECT_FALSE(waiting.tell(call, passive_offer(), now));
  EXPECT_TRUE(said_types().empty());
  EXPECT_TRUE(waiting.tell(question, passive_offer(), now));
  EXPECT_NE(waiting.take(call), nullptr);
}

// spec/threats 3: those that wait for a program are bounded; those that were answered count apart.
TEST_F(WaitingRequestsTest, ThereIsRoomForSoMany) {
  const auto answered = add_question(0);
  EXPECT_TRUE(waiting.tell(answered, passive_offer(), now));
  for (uint32_t i = 1; i < WaitingRequests::kMost; ++i) add(i);
  EXPECT_FALSE(waiting.full());
  const auto last = add(WaitingRequests::kMost);
  EXPECT_TRUE(waiting.full());
  EXPECT_NE(waiting.take(last), nullptr);
  EXPECT_FALSE(waiting.full());
}

TEST_F(WaitingRequestsTest, AnswersAreKeptForSoMany) {
  for (uint32_t i = 0; i < WaitingRequests::kMostTold; ++i) {
    ASSERT_FALSE(waiting.full());
    ASSERT_TRUE(waiting.tell(add_question(i), passive_offer(), now));
  }
  EXPECT_TRUE(waiting.full());
  waiting.tick(now + 2s);
  EXPECT_FALSE(waiting.full());
}

}  // namespace
}  // namespace weft::wdp
