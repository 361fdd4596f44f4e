// Requests that come through a channel (spec/wdp-rd 7.5), and the channel that they came by.

#include "cm/channel_request.h"

#include <gtest/gtest.h>

#include "tests/support/channel_node.h"
#include "tests/support/pattern.h"
#include "wdp/rd_stream.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using stats::StartRefusal;
using test::ChannelNode;
using test::kHostA;
using test::kHostB;
using test::path_to;

constexpr uint8_t kCaller = 3;
constexpr uint8_t kCallee = 5;
// A channel rests a second after its last message.
constexpr Duration kLong = 3s;

// A socket whose queue pairs take Requests.
struct Callee final : ChannelNode, ChannelRequestHandler {
  using ChannelNode::ChannelNode;
  void start_came(Token& token, drive::DatagramDriver& d, const wdp::RdStart& start) override {
    if (start.word != wire::RdStreamWord::request) return;
    ++came;
    waiting = ChannelRequest::start(token, *this, d, start).request;
  }
  void request_overdue(Token&, ChannelRequest&) override {}
  uint64_t refused(StartRefusal why) {
    return runtime.counters().start_refused[static_cast<size_t>(why)].value();
  }
  int came = 0;
  ChannelRequest* waiting = nullptr;
};

class ChannelRequestTest : public testing::Test, wdp::RdStreamOwner {
 protected:
  ChannelRequestTest() { a.open(path_to(kHostB, kHostA)); }
  void stream_changed() override {}

  // As a peer that makes no use of the channel afterwards, whatever it is answered.
  void request(Bytes frame) {
    wdp::RdStream stream{
        a.all(), *this, {.qpn = make_qpn(kHostA.port(), kCaller), .session = 0x1001, .room = 1472}};
    stream.call(path_to(kHostB, kHostA));
    ASSERT_TRUE(scheduler.run_until([&] { return stream.has_channel(); }, 1s));
    a.runtime.run([&](Token& t) {
      EXPECT_TRUE(stream.request(make_qpn(kHostB.port(), kCallee), frame));
      a.driver->settle(t);
    });
    ASSERT_TRUE(scheduler.run_until([&] { return b.came == 1; }, 1s));
    a.runtime.run([&](Token& t) {
      stream.refused();
      stream.leave(false);
      a.driver->settle(t);
    });
  }

  sim::Scheduler scheduler;
  sim::DatagramLink link{scheduler, 1};
  ChannelNode a{scheduler, link.a(), kHostA, kHostB, true};
  Callee b{scheduler, link.b(), kHostB, kHostA, true};
};

TEST_F(ChannelRequestTest, OneThatIsRefusedLeavesTheChannelToRest) {
  const auto good = mpa::Initiator{mpa::Offer{.peer_to_peer = true}}.request({}, false, true);
  const Bytes whole{good};
  request(whole.first(whole.size() - 1));
  EXPECT_EQ(b.waiting, nullptr);
  EXPECT_EQ(b.refused(StartRefusal::bytes_behind_request), 1U);
  scheduler.run_for(kLong);
  EXPECT_EQ(b.at_rest(), 1U);
}

TEST_F(ChannelRequestTest, SoDoesOneThatIsNoRequest) {
  request(test::pattern_bytes<std::byte>(200, 3));
  EXPECT_EQ(b.waiting, nullptr);
  EXPECT_EQ(b.refused(StartRefusal::bad_key), 1U);
  scheduler.run_for(kLong);
  EXPECT_EQ(b.at_rest(), 1U);
}

TEST_F(ChannelRequestTest, OneThatWaitsForAnAnswerKeepsTheChannelAwake) {
  const auto good = mpa::Initiator{mpa::Offer{.peer_to_peer = true}}.request({}, false, true);
  request(Bytes{good});
  ASSERT_NE(b.waiting, nullptr);
  scheduler.run_for(kLong);
  EXPECT_EQ(b.at_rest(), 0U);
  b.runtime.run([&](Token& t) { b.waiting->drop(t); });
  scheduler.run_for(kLong);
  EXPECT_EQ(b.at_rest(), 1U);
}

}  // namespace
}  // namespace weft::cm
