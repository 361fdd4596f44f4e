// Channels of reliable datagrams through the driver of production, RdLink, when their process ends.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/channel_node.h"
#include "wire/wdp_messages.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using engine::Token;

class RdLinks : public ::testing::Test {
 protected:
  RdLinks() {
    a.open(path_to(kHostB, kHostA));
    scheduler.run_for(10ms);
    EXPECT_EQ(b.channels(), 1U);
  }
  // A message to a queue pair that B does not have: its socket acknowledges it.
  void send() {
    a.runtime.run([&](Token& t) {
      wdp::RdChannel& channel = *a.driver->wdp_socket().channels().find(path_to(kHostB, kHostA));
      std::byte* const at = channel.out().send({.sidx = 3, .didx = 5, .length = 100}, 1, 1);
      std::fill_n(at, 100, std::byte{7});
      a.driver->settle(t);
    });
  }

  sim::Scheduler scheduler;
  sim::DatagramLink link{scheduler, 1};

 public:
  ChannelNode a{scheduler, link.a(), kHostA, kHostB};
  ChannelNode b{scheduler, link.b(), kHostB, kHostA};
};

// Nobody knows the round trip of a first message: it would be asked for after 300 ms.
TEST_F(RdLinks, AnEndWaitsForNoAnswerThatHasCome) {
  send();
  scheduler.run_for(1ms);
  EXPECT_LE(a.runtime.ends_at() - a.runtime.now(), 2ms) << "the peer has acknowledged it";
}

TEST_F(RdLinks, AnEndWaitsForWhatIsUnderWay) {
  bool lost = true;
  link.b().watch([&](Bytes) { return !lost; });
  send();
  scheduler.run_for(100ms);
  EXPECT_GT(a.runtime.ends_at(), a.runtime.now());
  lost = false;
  const Time end = a.ends(scheduler);
  EXPECT_GT(end, Time{} + 300ms) << "it was asked for again";
  EXPECT_LT(end, Time{} + 700ms) << "and not longer than that took";
}

TEST_F(RdLinks, AnEndWaitsForTheAnswerToItsGoodbye) {
  const Time begun = a.runtime.now();
  a.close();
  EXPECT_GT(a.runtime.ends_at(), begun);
  const Time end = a.ends(scheduler);
  EXPECT_EQ(a.channels(), 0U);
  EXPECT_LE(end - begun, 1ms) << "a round trip is 50 us";
}

TEST_F(RdLinks, AnEndWaitsForAGoodbyeThatIsSaidAgain) {
  send();
  scheduler.run_for(10ms);
  int goodbyes = 0;
  link.a().watch([&](Bytes d) {
    const auto common = wire::WdpCommon::parse(d);
    return common->wdp_class != wire::WdpClass::ctl || ++goodbyes == 4;
  });
  const Time begun = a.runtime.now();
  a.close();
  const Time end = a.ends(scheduler);
  EXPECT_EQ(goodbyes, 4);
  EXPECT_EQ(a.channels(), 0U);
  EXPECT_EQ(b.channels(), 0U);
  EXPECT_LE(end - begun, 30ms);
}

// spec/wdp-rd 2.5.
TEST_F(RdLinks, AChannelAtRestGoesOn) {
  send();
  scheduler.run_for(3s);
  EXPECT_EQ(a.at_rest(), 1U);
  EXPECT_EQ(b.at_rest(), 1U);
  int datagrams = 0;
  link.a().watch([&](Bytes d) {
    ++datagrams;
    EXPECT_EQ(wire::WdpCommon::parse(d)->wdp_class, wire::WdpClass::rd);
    return true;
  });
  a.runtime.run([&](Token& t) { a.driver->open_channel(t, path_to(kHostB, kHostA)); });
  send();
  scheduler.run_for(1ms);
  EXPECT_EQ(datagrams, 1);
  EXPECT_EQ(b.at_rest(), 0U);
  EXPECT_TRUE(a.driver->wdp_socket().channels().find(path_to(kHostB, kHostA))->sender().idle());
  scheduler.run_for(3s);
  EXPECT_EQ(a.at_rest(), 1U);
  EXPECT_EQ(b.at_rest(), 1U);
}

TEST_F(RdLinks, AnEndTellsThePeerOfAChannelThatRests) {
  send();
  scheduler.run_for(5s);
  ASSERT_EQ(a.at_rest(), 1U);
  a.close();
  a.ends(scheduler);
  EXPECT_EQ(b.channels(), 0U);
}

// Its peer asks before it speaks.
TEST_F(RdLinks, AnEndTellsNobodyOfAChannelThatHasRestedForLong) {
  send();
  scheduler.run_for(1min);
  ASSERT_EQ(a.at_rest(), 1U);
  link.a().watch([](Bytes) {
    ADD_FAILURE() << "nothing is said";
    return true;
  });
  const Time begun = a.runtime.now();
  a.close();
  EXPECT_EQ(a.ends(scheduler), begun);
}

TEST_F(RdLinks, AnEndWaitsForNobodyForEver) {
  link.b().watch([](Bytes) { return false; });
  const Time begun = a.runtime.now();
  a.close();
  const Time end = a.ends(scheduler);
  EXPECT_EQ(a.channels(), 0U);
  EXPECT_LE(end - begun, 2s);
}

}  // namespace
}  // namespace weft::test
