// A listening Id's UDP socket, its callers, and the answers of a PendingRequest, over loopback.

#include "cm/datagram_listener.h"

#include <gtest/gtest.h>

#include <list>

#include "cm/pending_request.h"
#include "drive/uc_link.h"
#include "engine/engine.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "tests/support/uc_host.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using wire::RejReason;

constexpr Gid kHere = Gid::from_ipv4(0x7f000001);

struct Program final : DatagramListenerHandler {
  std::optional<RejReason> datagram_requested(Token&, const DatagramCall& call,
                                              const wdp::Handshake&) override {
    ++asked;
    if (refuses) return RejReason::no_resources;
    pending = PendingRequest{call};
    return {};
  }
  PendingRequest pending;
  int asked = 0;
  bool refuses = false;
};

// Who calls, by a socket of his own.
struct Caller final : drive::UcLinkOwner {
  void visited(Token&, drive::UcLink&) override {}
  void link_lost(Token&, drive::UcLink&) override { ADD_FAILURE() << "no memory"; }
  test::UcHost host;
  drive::UcLink* link = nullptr;
  const wdp::UcConnection& connection() const { return link->connection(); }
};

class DatagramListenerTest : public testing::Test {
 protected:
  DatagramListenerTest() {
    auto e = engine::Engine::create(0);
    EXPECT_TRUE(e.ok());
    engine_ = std::move(*e);
  }
  ~DatagramListenerTest() override { engine_.reset(); }

  static port::Fd bound() {
    auto fd = port::bind_udp(port::Address::from_gid(kHere, 0));
    EXPECT_TRUE(fd.ok());
    return std::move(*fd);
  }
  void listen(wire::CtlService service = wire::CtlService::uc) {
    auto h = engine_->hold();
    port::Fd fd = bound();
    at_ = {.address = kHere, .port = port::Address::of_socket(fd.get()).port()};
    listener_ = &DatagramListener::start(h.token(), program_, service, std::move(fd));
  }
  Caller& call() {
    Caller& c = callers_.emplace_back();
    auto h = engine_->hold();
    auto& driver = drive::DatagramDriver::start(
        h.token(), nobody_,
        std::make_unique<port::UdpSocket>(bound(), drive::DatagramDriver::kBuffer));
    c.link = &drive::UcLink::start(h.token(), driver, c, c.host);
    driver.wdp_socket().connect(c.link->connection(), {.own_qpn = make_qpn(1, 9)},
                                {.to = at_, .from = kHere}, Qpn{}, false, h.token().now());
    c.link->settle(h.token());
    return c;
  }
  template <class F>
  void await(F&& done) {
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         std::chrono::steady_clock::now() < end;) {
      engine_->progress();
      const auto h = engine_->hold();
      if (done()) return;
    }
    FAIL() << "it does not come about";
  }
  void expect_refused(const Caller& c, RejReason why) {
    await([&] { return c.connection().state() == wdp::UcConnection::State::failed; });
    const auto h = engine_->hold();
    ASSERT_EQ(c.connection().handshake()->failure(), wdp::Handshake::Failure::rejected);
    EXPECT_EQ(c.connection().handshake()->peer().reason, static_cast<uint32_t>(why));
  }
  uint64_t rejected(stats::CmRejection why) const {
    return engine_->counters().cm_rejected[static_cast<size_t>(why)].value();
  }

  std::unique_ptr<engine::Engine> engine_;
  Program program_;
  drive::DatagramOwner nobody_;
  std::list<Caller> callers_;
  DatagramListener* listener_ = nullptr;
  wdp::Endpoint at_;
};

TEST_F(DatagramListenerTest, TheProgramIsAskedAndMaySayNo) {
  listen();
  const Caller& c = call();
  await([&] { return program_.asked > 0; });
  {
    auto h = engine_->hold();
    EXPECT_TRUE(program_.pending.waits());
    EXPECT_TRUE(program_.pending.by_datagram());
    EXPECT_EQ(program_.pending.most_private_data(), std::nullopt) << "the peer sets no limit";
    program_.pending.reject(h.token(), stats::CmRejection::by_program, {});
    EXPECT_FALSE(program_.pending.waits());
    program_.pending.reject(h.token(), stats::CmRejection::by_program, {});
    EXPECT_EQ(rejected(stats::CmRejection::by_program), 1U) << "nobody waits any more";
  }
  expect_refused(c, RejReason::application);
  EXPECT_EQ(program_.asked, 1);
}

TEST_F(DatagramListenerTest, TheReasonIsTheHandlers) {
  program_.refuses = true;
  listen();
  expect_refused(call(), RejReason::no_resources);
}

TEST_F(DatagramListenerTest, AnotherServiceIsNotHere) {
  listen(wire::CtlService::ud_resolution);
  expect_refused(call(), RejReason::service_mismatch);
  EXPECT_EQ(program_.asked, 0);
}

// Its callers can still be answered, and new ones find nobody.
TEST_F(DatagramListenerTest, AStoppedListenerStaysForThoseWhoWait) {
  listen();
  const Caller& first = call();
  await([&] { return program_.asked > 0; });
  {
    auto h = engine_->hold();
    listener_->stop(h.token());
  }
  expect_refused(call(), RejReason::no_listener);
  {
    auto h = engine_->hold();
    EXPECT_EQ(first.connection().state(), wdp::UcConnection::State::setting_up);
    program_.pending.reject(h.token(), stats::CmRejection::by_program, {});
  }
  expect_refused(first, RejReason::application);
}

TEST_F(DatagramListenerTest, APeerThatIsGoneWaitsNoLonger) {
  listen();
  call();
  await([&] { return program_.asked > 0; });
  auto h = engine_->hold();
  program_.pending.gone();
  EXPECT_FALSE(program_.pending.waits());
  program_.pending.reject(h.token(), stats::CmRejection::by_program, {});
  EXPECT_EQ(rejected(stats::CmRejection::by_program), 0U);
}

}  // namespace
}  // namespace weft::cm
