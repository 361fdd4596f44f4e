// Questions about UD queue pairs to a listener of this process, which answers as the test wants.

#include "cm/inquiries.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <map>
#include <vector>

#include "cm/core.h"
#include "cm/datagram_listener.h"
#include "engine/engine.h"
#include "port/udp_bind.h"
#include "tests/abi/in_child.h"
#include "tests/support/closed_port.h"

namespace weft::cm {
namespace {

using engine::Token;

constexpr Gid kHere = Gid::from_ipv4(0x7f000001);

struct Listener final : DatagramListenerHandler {
  std::optional<wire::RejReason> datagram_requested(Token&, const DatagramCall& call,
                                                    const wdp::Handshake& handshake) override {
    from = handshake.path().to;
    calls.push_back(call);
    return {};
  }
  std::vector<DatagramCall> calls;
  wdp::Endpoint from;
};

struct Asks final : Inquirer {
  void answered(Token&, const wdp::Handshake& handshake) override {
    ++answers;
    state = handshake.state();
    qpn = handshake.peer().source;
    reason = handshake.peer().reason;
    failure = handshake.failure();
  }
  int answers = 0;
  wdp::Handshake::State state{};
  wdp::Handshake::Failure failure{};
  Qpn qpn;
  uint32_t reason = 0;
};

class InquiriesTest : public testing::Test {
 protected:
  InquiriesTest() {
    auto h = engine_.hold();
    auto udp = port::bind_udp(port::Address::from_gid(kHere, 0));
    EXPECT_TRUE(udp.ok());
    to_ = {.address = kHere, .port = port::Address::of_socket(udp->get()).port()};
    listener_ = &DatagramListener::start(h.token(), here_, wire::CtlService::ud_resolution,
                                         std::move(*udp));
  }
  ~InquiriesTest() override {
    auto h = engine_.hold();
    listener_->stop(h.token());
  }
  SessionToken ask(Asks& who) { return ask(who, to_.port); }
  SessionToken ask(Asks& who, uint16_t port) {
    auto h = engine_.hold();
    const auto question = Inquiries::on(h.token()).ask(
        h.token(), who, {.service = wire::CtlService::ud_resolution, .own_qpn = Qpn{0x101}},
        {.to = {.address = kHere, .port = port}, .from = kHere}, 0);
    EXPECT_TRUE(question.ok());
    return *question;
  }
  // The listener has been asked so often.
  void await_calls(size_t n) {
    EXPECT_TRUE(soon([&] { return here_.calls.size() >= n; }));
    ASSERT_EQ(here_.calls.size(), n);
  }
  void tell(const DatagramCall& call, Qpn qpn) {
    auto h = engine_.hold();
    call.tell(h.token(), {.service = wire::CtlService::ud_resolution, .own_qpn = qpn});
  }
  template <class Condition>
  bool soon(Condition&& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    const auto asked = [&] {
      const auto h = engine_.hold();
      return holds();
    };
    bool held = asked();
    for (; !held && std::chrono::steady_clock::now() < end; held = asked()) engine_.progress();
    return held;
  }

  engine::Engine& engine_ = (*adapter())->engine(0);
  Listener here_;
  DatagramListener* listener_ = nullptr;
  wdp::Endpoint to_;
};

TEST_F(InquiriesTest, AnAnswerFindsWhoAsked) {
  Asks first;
  Asks second;
  ask(first);
  await_calls(1);
  ask(second);
  await_calls(2);
  tell(here_.calls[1], Qpn{0x202});
  ASSERT_TRUE(soon([&] { return second.answers == 1; }));
  EXPECT_EQ(second.state, wdp::Handshake::State::established);
  EXPECT_EQ(second.qpn, Qpn{0x202});
  EXPECT_EQ(first.answers, 0);
  tell(here_.calls[0], Qpn{0x303});
  ASSERT_TRUE(soon([&] { return first.answers == 1; }));
  EXPECT_EQ(first.qpn, Qpn{0x303});
  EXPECT_EQ(second.answers, 1);
}

TEST_F(InquiriesTest, ARefusalIsAnAnswer) {
  Asks asks;
  ask(asks);
  await_calls(1);
  {
    auto h = engine_.hold();
    here_.calls[0].reject(h.token(), wire::RejReason::application, {});
  }
  ASSERT_TRUE(soon([&] { return asks.answers == 1; }));
  EXPECT_EQ(asks.state, wdp::Handshake::State::failed);
  EXPECT_EQ(asks.failure, wdp::Handshake::Failure::rejected);
}

// The one that asked first is gone by the time of the answer. The second one's answer comes later
// than the first one's would.
TEST_F(InquiriesTest, WhatIsForgottenIsNotAnswered) {
  Asks gone;
  Asks stays;
  const SessionToken question = ask(gone);
  await_calls(1);
  {
    auto h = engine_.hold();
    Inquiries& all = Inquiries::on(h.token());
    all.forget(h.token(), question);
    all.forget(h.token(), question);  // not known any more
  }
  ask(stays);
  await_calls(2);
  tell(here_.calls[0], Qpn{0x202});
  tell(here_.calls[1], Qpn{0x303});
  ASSERT_TRUE(soon([&] { return stays.answers == 1; }));
  EXPECT_EQ(stays.qpn, Qpn{0x303});
  EXPECT_EQ(gone.answers, 0);
}

TEST_F(InquiriesTest, AClosedPortIsAnAnswer) {
  const test::ClosedPort port;
  Asks asks;
  ask(asks, port.number());
  ASSERT_TRUE(soon([&] { return asks.answers == 1; }));
  EXPECT_EQ(asks.failure, wdp::Handshake::Failure::rejected);
  EXPECT_EQ(asks.reason, static_cast<uint32_t>(wire::RejReason::no_listener));
}

// Those that are forgotten leave room for others: few ports are looked after at a time.
TEST_F(InquiriesTest, APortIsLookedAfterUntilTheQuestionIsForgotten) {
  const test::SilentPort silent;
  uint16_t own = 0;
  {
    auto h = engine_.hold();
    own = Inquiries::on(h.token()).own_port(h.token());
  }
  std::vector<Asks> asks(20);
  std::vector<SessionToken> questions;
  for (Asks& a : asks) {
    questions.push_back(ask(a, silent.number()));
  }
  // Whoever looks after a port has a socket of its own.
  size_t looks = 0;
  ASSERT_TRUE(soon([&] {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    std::byte datagram[1500];
    while (::recvfrom(silent.fd(), datagram, sizeof datagram, MSG_DONTWAIT,
                      reinterpret_cast<sockaddr*>(&from), &size) > 0) {
      if (ntohs(from.sin_port) != own) ++looks;
    }
    return looks >= 8;
  }));
  {
    auto h = engine_.hold();
    for (const SessionToken q : questions) Inquiries::on(h.token()).forget(h.token(), q);
  }
  const test::ClosedPort closed;
  Asks other;
  ask(other, closed.number());
  ASSERT_TRUE(soon([&] { return other.answers == 1; }));
  EXPECT_EQ(other.failure, wdp::Handshake::Failure::rejected);
  for (const Asks& a : asks) EXPECT_EQ(a.answers, 0);
}

// All by one socket, whose port a program may ask for before there is a question.
TEST_F(InquiriesTest, AllQuestionsComeFromOnePort) {
  uint16_t port = 0;
  {
    auto h = engine_.hold();
    port = Inquiries::on(h.token()).own_port(h.token());
  }
  EXPECT_NE(port, 0);
  Asks first;
  Asks second;
  ask(first);
  await_calls(1);
  EXPECT_EQ(here_.from.port, port);
  ask(second);
  await_calls(2);
  EXPECT_EQ(here_.from.port, port);
  for (const DatagramCall& call : here_.calls) tell(call, Qpn{0x202});
  ASSERT_TRUE(soon([&] { return first.answers + second.answers == 2; }));
}

// In which another thread was, that is not there to come out.
TEST_F(InquiriesTest, AChildOfForkFindsItsOwn) {
  auto own = engine::Engine::create(0);
  ASSERT_TRUE(own.ok());
  auto h = (*own)->hold();
  Inquiries& mine = Inquiries::on(h.token());
  EXPECT_EQ(test::in_children_beside([&, this, owner = std::this_thread::get_id()] {
              if (std::this_thread::get_id() == owner) {
                EXPECT_EQ(&Inquiries::on(h.token()), &mine);
              } else {
                auto other = engine_.hold();
                (void)Inquiries::on(other.token());
              }
            }),
            0);
}

}  // namespace
}  // namespace weft::cm
