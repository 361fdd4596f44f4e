// Requests that come to a listener's UDP socket through channels (spec/wdp-rd 7.6), on a simulated
// path.

#include "cm/channel_listener.h"

#include <gtest/gtest.h>

#include "tests/support/channel_node.h"
#include "wdp/rd_stream.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using test::ChannelNode;
using test::kHostA;
using test::kHostB;
using test::path_to;

constexpr uint8_t kAnyIndex = 7;
constexpr uint16_t kIdPort = 4711;

struct ListeningNode final : ChannelNode, ChannelListenerHandler, ChannelRequestHandler {
  ListeningNode(sim::Scheduler& scheduler, sim::DatagramEnd& end)
      : ChannelNode(scheduler, end, kHostB, kHostA, true), listener(*driver, *this) {}
  ~ListeningNode() override {
    runtime.run([&](Token& t) { listener.leave(t); });
  }
  void start_came(Token& token, drive::DatagramDriver&, const wdp::RdStart& start) override {
    listener.start_came(token, start);
  }
  bool crowded() const override { return is_crowded; }
  void channel_requested(Token&, ChannelRequest& request, const mpa::Responder::Request&) override {
    waiting.push_back(&request);
    request.hand_over(*this);
  }
  void request_gone(Token&, ChannelRequest& request) override {
    std::erase(waiting, &request);
    ++gone;
  }
  // Says yes to the oldest.
  drive::GivenUp accept() {
    auto given_up = std::make_shared<std::atomic<bool>>(false);
    runtime.run([&](Token& t) {
      ChannelRequest* const r = waiting.front();
      waiting.erase(waiting.begin());
      EXPECT_TRUE(r->accept_there(
          t, {.extension = true}, {},
          {.qpn = make_qpn(kHostB.port() + 1, 9), .session = 5, .room = 1472}, given_up));
    });
    return given_up;
  }

  ChannelListener listener;
  std::vector<ChannelRequest*> waiting;
  bool is_crowded = false;
  int gone = 0;
};

// One that asks.
struct ListenerCaller final : wdp::RdStreamOwner {
  ListenerCaller(ChannelNode& a, uint8_t own)
      : node(a),
        stream(a.all(), *this,
               {.qpn = make_qpn(kHostA.port(), own), .session = 0x1000U + own, .room = 1472}) {
    stream.call_listener(path_to(kHostB, kHostA), kIdPort);
  }
  ~ListenerCaller() override { take_back(); }
  void stream_changed() override {}
  void replied(Bytes frame) override { outcome = initiator.received(frame); }
  void ask(uint8_t index = wdp::kListenerIndex) {
    node.runtime.run([&](Token& t) {
      ASSERT_TRUE(stream.has_channel());
      EXPECT_TRUE(
          stream.request(make_qpn(kHostB.port(), index), initiator.request({}, false, true)));
      node.driver->settle(t);
    });
  }
  void take_back() {
    node.runtime.run([&](Token& t) {
      stream.forsake();
      node.driver->settle(t);
    });
  }
  ChannelNode& node;
  wdp::RdStream stream;
  mpa::Initiator initiator{mpa::Offer{.extension = true}};
  std::optional<mpa::Initiator::Outcome> outcome;
};

class ChannelListenerTest : public testing::Test {
 protected:
  ChannelListenerTest() {
    a.open(path_to(kHostB, kHostA));
    EXPECT_TRUE(until([&] { return b.channels() == 1; }));
    scheduler.run_for(10ms);
  }
  template <class F>
  bool until(F&& f) {
    return scheduler.run_until(f, 1s);
  }
  bool ask_by(ListenerCaller& c) {
    const size_t before = b.waiting.size();
    c.ask();
    return until([&] { return b.waiting.size() > before; });
  }

  sim::Scheduler scheduler;
  sim::DatagramLink link{scheduler, 1};
  ChannelNode a{scheduler, link.a(), kHostA, kHostB, true};
  ListeningNode b{scheduler, link.b()};
};

TEST_F(ChannelListenerTest, SeesThePortOfTheIdAndIsHeardBeforeTheConnectionComes) {
  ListenerCaller c{a, 3};
  ASSERT_TRUE(ask_by(c));
  EXPECT_EQ(b.waiting.front()->caller(), kIdPort);
  EXPECT_TRUE(b.listener.waited_for());
  const auto given_up = b.accept();
  EXPECT_FALSE(b.listener.waited_for());
  ASSERT_TRUE(until([&] { return c.outcome.has_value(); }));
  ASSERT_TRUE(c.outcome->rd.has_value());
  EXPECT_EQ(c.outcome->rd->qpn, make_qpn(kHostB.port() + 1, 9));
  EXPECT_FALSE(*given_up);
}

TEST_F(ChannelListenerTest, ARequestForAQueuePairIsRejected) {
  ListenerCaller c{a, 3};
  c.ask(kAnyIndex);
  ASSERT_TRUE(until([&] { return c.outcome.has_value(); }));
  EXPECT_TRUE(c.outcome->rejected.has_value());
  EXPECT_TRUE(b.waiting.empty());
}

TEST_F(ChannelListenerTest, OneThatIsTakenBackIsGone) {
  ListenerCaller first{a, 3};
  ListenerCaller second{a, 4};
  ASSERT_TRUE(ask_by(first));
  ASSERT_TRUE(ask_by(second));
  first.take_back();
  ASSERT_TRUE(until([&] { return b.gone == 1; }));
  EXPECT_EQ(b.waiting.size(), 1U);
  EXPECT_EQ(b.waiting.front()->source(), make_qpn(kHostA.port(), 4));
}

// As one whose process has ended.
TEST_F(ChannelListenerTest, WithTheirChannelAllAreGone) {
  ListenerCaller first{a, 3};
  ListenerCaller second{a, 4};
  ASSERT_TRUE(ask_by(first));
  ASSERT_TRUE(ask_by(second));
  a.close();
  EXPECT_TRUE(until([&] { return b.gone == 2; }));
}

TEST_F(ChannelListenerTest, WhoTakesItBackBehindTheAnswerHasGivenUp) {
  ListenerCaller c{a, 3};
  ListenerCaller other{a, 4};
  ASSERT_TRUE(ask_by(c));
  ASSERT_TRUE(ask_by(other));
  const auto given_up = b.accept();
  const auto stays = b.accept();
  c.take_back();
  EXPECT_TRUE(until([&] { return given_up->load(); }));
  EXPECT_FALSE(*stays);
}

TEST_F(ChannelListenerTest, ACrowdWaitsAndKeepsItsOrder) {
  b.is_crowded = true;
  ListenerCaller first{a, 3};
  ListenerCaller second{a, 4};
  ListenerCaller third{a, 5};
  for (ListenerCaller* c : {&first, &second, &third}) c->ask();
  scheduler.run_for(100ms);
  EXPECT_TRUE(b.waiting.empty());
  second.take_back();
  scheduler.run_for(10ms);
  b.is_crowded = false;
  b.runtime.run([&](Token& t) { b.listener.resume(t); });
  ASSERT_EQ(b.waiting.size(), 2U);
  EXPECT_EQ(b.waiting.front()->source(), make_qpn(kHostA.port(), 3));
  EXPECT_EQ(b.waiting.back()->source(), make_qpn(kHostA.port(), 5));
}

TEST_F(ChannelListenerTest, WhereItIsStoppedACrowdIsRejectedAndTheOthersWait) {
  ListenerCaller waits{a, 3};
  ASSERT_TRUE(ask_by(waits));
  b.is_crowded = true;
  ListenerCaller late{a, 4};
  late.ask();
  scheduler.run_for(100ms);
  b.runtime.run([&](Token& t) { b.listener.stop(t); });
  ASSERT_TRUE(until([&] { return late.outcome.has_value(); }));
  EXPECT_TRUE(late.outcome->rejected.has_value());
  EXPECT_TRUE(b.listener.waited_for());
  (void)b.accept();
  EXPECT_TRUE(until([&] { return waits.outcome.has_value(); }));
}

}  // namespace
}  // namespace weft::cm
