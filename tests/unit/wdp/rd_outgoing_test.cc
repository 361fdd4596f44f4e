// What a channel has to say, without the channel.

#include "wdp/rd_outgoing.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "wdp/cubic.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using End = RdClient::End;
using wire::WdpAck;
using wire::WdpResponse;

struct RdOutgoingTest : ::testing::Test {
  struct Client final : RdClient {
    void message_ended(uint64_t request, End end) override { ended.emplace_back(request, end); }
    void has_room() override { ++rooms; }
    void look_for_rest(Time) override { ++rests; }
    std::vector<std::pair<uint64_t, End>> ended;
    int rooms = 0;
    int rests = 0;
  };
  struct Shared final : RdShared {
    bool take(RdChannel&, const RdArrival&, Bytes) override { return true; }
    void answered(RdChannel&, const WdpResponse&) override {}
    RdClient* client(ClientId id) override { return id == kClient ? &the_client : nullptr; }
    void waits(RdChannel&, uint8_t) override {}
    void refused(const Path&, Time) override {}
    const std::shared_ptr<RdBudget>& budget() override { return none; }
    void dropped(wire::WdpDrop) override {}
    void ended(RdChannel&) override {}
    Client the_client;
    std::shared_ptr<RdBudget> none;
  };
  struct Owner final : RdChannelOwner {
    void reached() override { ++times; }
    int times = 0;
  };
  static constexpr ClientId kClient = 4;

  explicit RdOutgoingTest(bool responses = true) {
    opening.wake({.to = {Gid::from_ipv4(0x0a000002), 40000}}, SessionToken{1},
                 {.token = SessionToken{2}, .first = Csn{50}, .terms = {.responses = responses}});
  }
  void send(uint64_t request = 1, uint8_t sidx = 3) {
    ASSERT_TRUE(out.has_room(1));
    *out.send({.sidx = sidx, .didx = 5, .length = 1}, kClient, request) = std::byte{7};
  }
  // Bytes of all that goes.
  size_t fill(const WdpAck* ack = nullptr) {
    Train t;
    out.fill(t, now, ack);
    return t.bytes();
  }
  WdpAck all_came() {
    WdpAck ack;
    ack.cum = out.sender().next_csn();
    ack.window = 1024;
    return ack;
  }

  Time now = Time::from_ns(1'000'000'000);
  SeededRandom random{5};
  Shared shared;
  Owner owner;
  RdOpening opening{random};
  RdOutgoing out{shared, owner, opening, random, false, std::make_unique<Cubic>()};
  Client& client = shared.the_client;
};

TEST_F(RdOutgoingTest, AMessageGoesAndIsAcknowledged) {
  out.opens(now);
  send(9);
  EXPECT_EQ(owner.times, 1) << "there is something to say";
  EXPECT_FALSE(out.all_is_said());
  EXPECT_FALSE(out.is_at_rest());
  now = now + 3ms;
  ASSERT_TRUE(out.ready(now));
  EXPECT_GT(fill(), 0U);
  EXPECT_EQ(out.active_at(), now);
  now = now + 1ms;
  EXPECT_EQ(*out.take_ack(all_came(), now), true);
  EXPECT_EQ(out.active_at(), now);
  EXPECT_EQ(client.ended, (std::vector<std::pair<uint64_t, End>>{{9, End::delivered}}));
  EXPECT_TRUE(out.all_is_said());
  EXPECT_TRUE(out.is_at_rest());
  EXPECT_EQ(*out.take_ack(all_came(), now + 1ms), false) << "it names nothing new";
  EXPECT_EQ(out.active_at(), now);
}

TEST_F(RdOutgoingTest, EachMessageOfADatagramIsAcknowledged) {
  out.opens(now);
  for (const uint64_t request : {9, 10, 11}) {
    *out.send_shared({.sidx = 3, .didx = 5, .length = 1}, kClient, request) = std::byte{7};
  }
  (void)fill();
  EXPECT_EQ(*out.take_ack(all_came(), now), true);
  EXPECT_EQ(client.ended, (std::vector<std::pair<uint64_t, End>>{
                              {9, End::delivered}, {10, End::delivered}, {11, End::delivered}}));
}

TEST_F(RdOutgoingTest, EachMessageOfADatagramIsLostWithItsChannel) {
  out.opens(now);
  for (const uint64_t request : {9, 10}) {
    *out.send_shared({.sidx = 3, .didx = 5, .length = 1}, kClient, request) = std::byte{7};
  }
  out.end(End::lost);
  EXPECT_EQ(client.ended, (std::vector<std::pair<uint64_t, End>>{{9, End::lost}, {10, End::lost}}));
  EXPECT_EQ(out.messages_lost(), 2U);
}

TEST_F(RdOutgoingTest, NothingGoesBeforeItIsOpen) {
  send();
  EXPECT_FALSE(out.is_open());
  EXPECT_FALSE(out.ready(now));
  out.opens(now);
  EXPECT_TRUE(out.is_open());
  EXPECT_TRUE(out.ready(now));
}

TEST_F(RdOutgoingTest, WhatIsTakenBackDoesNotGo) {
  out.opens(now);
  send(1);
  out.take_back({.sidx = 3, .didx = 5, .length = 1});
  EXPECT_TRUE(out.all_is_said());
  EXPECT_FALSE(out.ready(now));
}

TEST_F(RdOutgoingTest, ClientsHearHowItsEndWasForTheirs) {
  for (const End end : {End::undelivered, End::returned, End::lost}) {
    client.ended.clear();
    out.opens(now);
    send(1);
    send(2);
    out.end(end);
    EXPECT_EQ(client.ended, (std::vector<std::pair<uint64_t, End>>{{1, end}, {2, end}}));
    EXPECT_FALSE(out.is_open());
    EXPECT_TRUE(out.all_is_said());
    EXPECT_EQ(out.messages_lost(), end == End::lost ? 2U : 0U);
  }
}

TEST_F(RdOutgoingTest, APeerThatBeginsAnewHasTakenNothing) {
  out.opens(now);
  send(1);
  fill();
  out.begin_anew();
  EXPECT_EQ(client.ended, (std::vector<std::pair<uint64_t, End>>{{1, End::undelivered}}));
  EXPECT_FALSE(out.is_open());
}

TEST_F(RdOutgoingTest, WhoWaitsHearsOfRoom) {
  out.want_room(kClient);
  EXPECT_TRUE(out.any_wants_room());
  EXPECT_FALSE(out.is_at_rest());
  out.opens(now);
  EXPECT_EQ(client.rooms, 1);
  EXPECT_FALSE(out.any_wants_room());
  out.want_room(kClient);
  (void)out.take_ack(all_came(), now);
  EXPECT_EQ(client.rooms, 2);
  out.want_room(kClient);
  out.end(End::lost);
  EXPECT_EQ(client.rooms, 3);
}

TEST_F(RdOutgoingTest, WhoWantsToRestIsAskedLater) {
  out.opens(now);
  out.is_active(now + 1s);
  out.want_rest(kClient);
  const Time then = now + 1s + kWindowRests;
  EXPECT_EQ(out.deadline(), then);
  EXPECT_TRUE(out.tick(then - 1ns));
  EXPECT_EQ(client.rests, 0);
  EXPECT_TRUE(out.tick(then));
  EXPECT_EQ(client.rests, 1);
}

TEST_F(RdOutgoingTest, AnswersWaitForCompanyOrAWord) {
  out.opens(now);
  out.respond({.qidx = 9, .ridx = 2, .code = WdpResponse::Code::length, .msn = Msn{1}});
  EXPECT_EQ(owner.times, 1);
  EXPECT_TRUE(out.answers_wait());
  EXPECT_TRUE(out.has_answers());
  EXPECT_FALSE(out.all_is_said());
  EXPECT_FALSE(out.is_at_rest());
  out.write_answers(false, now);
  EXPECT_TRUE(out.has_answers());
  out.say_answers();
  EXPECT_FALSE(out.answers_wait());
  out.write_answers(false, now);
  EXPECT_FALSE(out.has_answers());
  EXPECT_TRUE(out.ready(now));
  out.respond({.qidx = 9, .ridx = 2, .code = WdpResponse::Code::length, .msn = Msn{2}});
  EXPECT_TRUE(out.answers_wait());
  out.end(End::lost);
  EXPECT_FALSE(out.answers_wait()) << "nobody is told any more";
}

TEST_F(RdOutgoingTest, SoManyAnswersAreKept) {
  out.opens(now);
  uint32_t n = 0;
  while (out.may_answer() && n < 100'000) {
    out.reserve_answer();
    out.respond({.qidx = 9, .ridx = 2, .code = WdpResponse::Code::length, .msn = Msn{++n}});
  }
  EXPECT_GT(n, 1000U);
  EXPECT_FALSE(out.may_answer());
}

TEST_F(RdOutgoingTest, SegmentsAreSmallUntilThePathIsKnown) {
  out.opens(now);
  EXPECT_EQ(out.segment_room({8000, true}), 8000U);
  EXPECT_EQ(owner.times, 0);
  EXPECT_FALSE(out.finds_path());
  const size_t least = out.segment_room({8000, false});
  EXPECT_LT(least, 1500U);
  EXPECT_EQ(owner.times, 1) << "there is a probe to send";
  EXPECT_TRUE(out.finds_path());
  (void)out.segment_room({8000, false});
  EXPECT_EQ(owner.times, 1);
  out.want_room(kClient);
  EXPECT_TRUE(out.search().take(now).has_value());
  EXPECT_TRUE(out.tick(now + 1s));
  EXPECT_FALSE(out.finds_path());
  EXPECT_EQ(client.rooms, 1);
}

TEST_F(RdOutgoingTest, ThePathIsAskedForWhereMessagesLackRoom) {
  out.opens(now);
  RdMessage m{.sidx = 3, .didx = 5, .length = 400};
  EXPECT_FALSE(out.lacks_room(m, kClient, 1)) << "nothing waits";
  (void)out.send_shared(m, kClient, 1);
  m.length = 20;
  EXPECT_FALSE(out.lacks_room(m, kClient, 2)) << "each path carries both";
  m.length = 100;
  EXPECT_FALSE(out.lacks_room(m, kClient, 3)) << "they could not share anyway";
  EXPECT_TRUE(out.lacks_room(m, kClient, 2));
  (void)out.segment_room({8000, false});
  EXPECT_FALSE(out.lacks_room(m, kClient, 2));
}

TEST_F(RdOutgoingTest, ACertainPathIsKnownAtOnce) {
  out.opens(now);
  const RdMessage m{.sidx = 3, .didx = 5, .length = 400};
  (void)out.send_shared(m, kClient, 1);
  EXPECT_TRUE(out.lacks_room(m, kClient, 2));
  (void)out.segment_room({8000, true});
  EXPECT_FALSE(out.lacks_room(m, kClient, 2));
}

TEST_F(RdOutgoingTest, AnAcknowledgementGoesWithASmallMessage) {
  out.opens(now);
  send();
  ASSERT_TRUE(out.ready(now));
  EXPECT_TRUE(out.takes_ack());
  const WdpAck ack = all_came();
  EXPECT_GT(fill(&ack), WdpAck::kSize);
}

struct RdOutgoingToOlderTest : RdOutgoingTest {
  RdOutgoingToOlderTest() : RdOutgoingTest(false) {}
};

TEST_F(RdOutgoingToOlderTest, KnowsNoBundles) {
  out.opens(now);
  send();
  ASSERT_TRUE(out.ready(now));
  EXPECT_FALSE(out.takes_ack());
  for (const uint64_t request : {2, 3}) {
    (void)out.send_shared({.sidx = 3, .didx = 5, .length = 1}, kClient, request);
  }
  EXPECT_FALSE(out.lacks_room({.length = 1000}, kClient, 4));
  EXPECT_EQ(fill(), 3 * (wire::WdpData::kSize + 1));
}

// The next message has the number behind the last one's.
TEST_F(RdOutgoingTest, GoesOnWhereItRested) {
  out.opens(now);
  send(1);
  fill();
  (void)out.take_ack(all_came(), now);
  RestingChannel as;
  out.rest(as);
  EXPECT_EQ(as.active, out.active_at());
  const Csn next = out.sender().next_csn();
  RdOutgoing anew{shared, owner, opening, random, false, std::make_unique<Cubic>()};
  anew.wake(as);
  anew.opens(now + 1h);
  EXPECT_EQ(anew.sender().next_csn(), next);
  *anew.send({.sidx = 3, .didx = 5, .length = 1}, kClient, 2) = std::byte{8};
  RestingChannel then;
  anew.rest(then);
  EXPECT_EQ(then.flows_out.next_of(FlowTable::flow_of(3, 5)), Msn{3});
}

TEST_F(RdOutgoingTest, APathThatCarriesLessIsHeeded) {
  out.opens(now);
  (void)out.segment_room({8000, false});
  out.path_carries(1300);
  for (int i = 0; i < 20; ++i) {
    const auto probe = out.search().take(now);
    now = now + 1s;
    (void)out.tick(now);
    if (!probe) break;
    EXPECT_LE(probe->size, 1300U);
  }
  EXPECT_LE(out.segment_room({8000, false}), 1300U);
}

}  // namespace
}  // namespace weft::wdp
