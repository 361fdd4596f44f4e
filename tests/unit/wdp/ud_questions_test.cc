#include "wdp/ud_questions.h"

#include "tests/unit/wdp/handshake_fixture.h"

namespace weft::wdp {
namespace {

using State = Handshake::State;
using wire::WdpDrop;

struct UdQuestionsTest : HandshakeTest {
  Buffer said_next() {
    Train t;
    answers.fill(t);
    Buffer all;
    for (const IoVec& v : t.pieces()) {
      const auto* p = static_cast<const std::byte*>(v.iov_base);
      all.insert(all.end(), p, p + v.iov_len);
    }
    return all;
  }
  SessionToken ask() { return questions.ask(active_offer(), {.to = kPassive}, now); }
  // What the other side says to the question that was just asked.
  Buffer reply() {
    const Buffer req = said_next();
    b.requested(*WdpCtl::parse(req), {.to = kActive}, req.size(), false);
    b.accept(passive_offer(), now);
    return one(b, CtlType::rep).bytes;
  }
  Result<UdQuestions::Over, WdpDrop> hears(const Buffer& d, const Endpoint& from = kPassive) {
    return questions.received(*wire::WdpCommon::parse(d), d, from, now);
  }

  Demux demux;
  PortAnswers answers;
  UdQuestions questions{random, demux, answers};
};

TEST_F(UdQuestionsTest, AnAnswerEndsIt) {
  EXPECT_TRUE(questions.deadline().is_never());
  const SessionToken q = ask();
  EXPECT_NE(q, SessionToken{});
  EXPECT_TRUE(questions.knows(q));
  EXPECT_FALSE(questions.knows(SessionToken{q.value() + 1}));
  EXPECT_FALSE(questions.deadline().is_never());
  auto over = hears(reply());
  ASSERT_TRUE(over.ok());
  ASSERT_NE(*over, nullptr);
  EXPECT_EQ((*over)->state(), State::established);
  EXPECT_EQ((*over)->peer().source, passive_offer().own_qpn);
  EXPECT_FALSE(questions.knows(q));
  EXPECT_TRUE(questions.deadline().is_never());
  EXPECT_FALSE(answers.ready()) << "no RTU";
}

// While it is asked nobody else gets its token, nor right behind.
TEST_F(UdQuestionsTest, ItsTokenIsTheSocketsAsLongAsItIsAsked) {
  const SessionToken q = ask();
  const Buffer rep = reply();
  auto common = *wire::WdpCommon::parse(rep);
  ASSERT_EQ(common.token, q);
  common.didx = 0;  // of no queue pair
  const auto found = demux.find(common, kPassive);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, nullptr) << "no connection's";
  ASSERT_TRUE(hears(rep).ok());
  EXPECT_FALSE(demux.find(common, kPassive).ok());
}

TEST_F(UdQuestionsTest, OnlyWhoIsAskedMayAnswer) {
  const SessionToken q = ask();
  const Buffer rep = reply();
  const auto v = hears(rep, {kPassive.address, static_cast<uint16_t>(kPassive.port + 1)});
  ASSERT_FALSE(v.ok());
  EXPECT_EQ(v.error(), WdpDrop::wrong_address);
  Buffer cut{rep.begin(), rep.end() - 1};
  EXPECT_FALSE(hears(cut).ok());
  EXPECT_TRUE(questions.knows(q));
  EXPECT_TRUE(hears(rep).ok());
}

TEST_F(UdQuestionsTest, ItIsRepeatedAndGivenUp) {
  const SessionToken q = ask();
  const Buffer first = said_next();
  size_t repeated = 0;
  UdQuestions::Over over;
  for (int tries = 0; tries < 50 && over == nullptr; ++tries) {
    EXPECT_TRUE(questions.due(questions.deadline() - Duration{1}).empty());
    now = questions.deadline();
    ASSERT_EQ(questions.due(now), std::vector<SessionToken>{q});
    over = questions.tick(q, now);
    while (answers.ready()) {
      ++repeated;
      EXPECT_EQ(WdpCtl::parse(said_next())->xid, WdpCtl::parse(first)->xid);
    }
  }
  ASSERT_NE(over, nullptr);
  EXPECT_EQ(over->state(), State::failed);
  EXPECT_EQ(over->failure(), Failure::timeout);
  EXPECT_GE(repeated, 3U);
  EXPECT_FALSE(questions.knows(q));
}

TEST_F(UdQuestionsTest, AClosedPortIsAnAnswer) {
  const SessionToken q = ask();
  const auto over = questions.port_closed(q, now);
  ASSERT_NE(over, nullptr);
  EXPECT_EQ(over->failure(), Failure::rejected);
  EXPECT_EQ(static_cast<RejReason>(over->peer().reason), RejReason::no_listener);
  EXPECT_EQ(questions.port_closed(q, now), nullptr) << "once";
}

TEST_F(UdQuestionsTest, WhatIsForgottenIsNotAskedAnyMore) {
  const SessionToken one_of_two = ask();
  const SessionToken other = ask();
  EXPECT_NE(one_of_two, other);
  questions.forget(one_of_two, now);
  questions.forget(one_of_two, now);
  EXPECT_FALSE(questions.knows(one_of_two));
  EXPECT_TRUE(questions.knows(other));
  EXPECT_EQ(questions.due(questions.deadline()), std::vector<SessionToken>{other});
}

}  // namespace
}  // namespace weft::wdp
