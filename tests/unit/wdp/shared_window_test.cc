// Sessions from one socket to one socket share what may be under way (send_window.h).

#include "tests/unit/wdp/wdp_socket_fixture.h"

namespace weft::wdp {
namespace {

constexpr uint64_t kWindow = 64 << 10;
constexpr size_t kMessages = 60;  // of each, about three windows

struct SharedWindow : PortTest {
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      Offer offer = offer_of_a();
      offer.own_qpn = make_qpn(kA.port, 9 + i);
      offer.window = kWindow;
      auto& p = senders.emplace_back(a.add_peer());
      a.port.connect(p.get().connection, offer, {.to = kB}, Qpn{}, false, now);
      talk();
      receivers.emplace_back(accept());
      talk();
      ASSERT_EQ(p.get().connection.state(), UcConnection::State::open);
    }
  }
  WdpNode::Peer& sender(size_t i) { return senders[i]; }
  WdpNode::Peer& receiver(size_t i) { return receivers[i]; }
  auto& received(size_t i) { return receiver(i).host.host.received; }
  void post(size_t i) {
    for (size_t m = 0; m < kMessages; ++m) {
      auto& from = sender(i).host.host;
      auto& to = receiver(i).host.host;
      to.post_receive(m, {test::segment(to, room)});
      from.post({.operation = Operation::send}, {test::segment(from, text)});
    }
  }
  static size_t questions(const std::vector<WdpNode::Datagram>& all) {
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const auto& d) {
      const auto c = WdpCtl::parse(d.bytes);
      return c.ok() && c->type == CtlType::ka;
    }));
  }
  static size_t bytes(const std::vector<WdpNode::Datagram>& all) {
    size_t n = 0;
    for (const auto& d : all) n += d.bytes.size();
    return n;
  }
  void bring(const std::vector<WdpNode::Datagram>& all) {
    for (const auto& d : all) b.hear(d.bytes, kA, now);
  }
  void bring_answers() {
    for (const auto& d : b.said(now)) a.hear(d.bytes, kB, now);
  }

  std::vector<std::reference_wrapper<WdpNode::Peer>> senders;
  std::vector<std::reference_wrapper<WdpNode::Peer>> receivers;
};

TEST_F(SharedWindow, WhatIsUnderWayOfAllFitsIntoOne) {
  post(0);
  post(1);
  auto said = a.said(now);
  EXPECT_EQ(questions(said), 1U);
  size_t rounds = 0;
  for (; !said.empty(); said = a.said(now)) {
    ASSERT_LT(++rounds, 100U);
    EXPECT_LE(bytes(said), kWindow);
    bring(said);
    bring_answers();
  }
  EXPECT_EQ(received(0).size(), kMessages);
  EXPECT_EQ(received(1).size(), kMessages);
  EXPECT_GE(rounds, 2 * kMessages * text.size() / kWindow);
  // The one that found it closed was told.
  EXPECT_GE(sender(1).host.windows_opened, 1);
}

TEST_F(SharedWindow, WhoNeverWaitedIsNotCalled) {
  post(0);
  bring(a.said(now));
  bring_answers();
  EXPECT_EQ(sender(0).host.windows_opened, 1);
  EXPECT_EQ(sender(1).host.windows_opened, 0);
}

// An answer to the one brings the other on: both speak through the same buffer.
TEST_F(SharedWindow, TheAnswerToOneIsForAll) {
  post(0);
  bring(a.said(now));
  post(1);
  EXPECT_EQ(bytes(a.said(now)), 0U);
  bring_answers();
  EXPECT_EQ(sender(1).host.windows_opened, 1);
  EXPECT_TRUE(sender(1).connection.ready(now));
}

TEST_F(SharedWindow, WhoAskedAndIsGoneLeavesNobodyWaiting) {
  post(0);
  EXPECT_EQ(questions(a.said(now)), 1U);  // all of it is lost
  post(1);
  EXPECT_EQ(bytes(a.said(now)), 0U);
  sender(0).connection.abort(0, now);
  later(50ms);
  EXPECT_EQ(received(1).size(), kMessages);
}

// It does not know that its peer is there no more, and would ask until its keepalives fail.
TEST_F(SharedWindow, WhoAsksNobodyDoesNotHoldUpTheOther) {
  b.port.remove(receiver(0).connection, now);
  post(0);
  EXPECT_EQ(questions(a.said(now)), 1U);
  post(1);
  for (int i = 0; i < 200 && received(1).size() < kMessages; ++i) {
    const auto more = a.said(now);
    bring(more);
    bring_answers();
    if (!more.empty()) continue;
    now = std::max(a.deadline(), now + 1us);
    a.tick(now);
  }
  EXPECT_EQ(received(1).size(), kMessages);
  EXPECT_LT(now, Time::from_ns(1'000'000'000) + 500ms) << "the question was given up";
}

// On a path without a window nobody waits, and nobody else would look at the time.
TEST_F(SharedWindow, WhoAskedOnAPathWithoutAWindowAndIsGoneLeavesNoQuestion) {
  SendWindows far;
  SeededRandom random{3};
  test::UcHost hosts[2];
  UcParameters p{.path = {.to = kB}, .window = kWindow, .close_by = false};
  UcSession one(hosts[0], p, random, far, now);
  UcSession two(hosts[1], p, random, far, now);
  const auto asks = [&](UcSession& session, test::UcHost& host) {
    size_t n = 0;
    session.open();
    for (size_t m = 0; m < kMessages; ++m) {
      host.host.post({.operation = Operation::send}, {test::segment(host.host, text)});
    }
    while (session.ready(now)) {
      Train t;
      session.fill(t, now);
      if (t.empty()) break;
      t.each_datagram([&](std::span<const IoVec> pieces) {
        const Bytes front{static_cast<const std::byte*>(pieces[0].iov_base), pieces[0].iov_len};
        const auto c = WdpCtl::parse(front);
        n += c.ok() && c->type == CtlType::ka ? 1 : 0;
      });
      session.llp_took_all(now);
    }
    return n;
  };
  EXPECT_EQ(asks(one, hosts[0]), 1U);
  EXPECT_EQ(asks(two, hosts[1]), 0U) << "one question at a time";
  one.abort(0, now);
  now = now + 100ms;
  EXPECT_EQ(asks(two, hosts[1]), 1U);
}

// The session is over as far as its queue pair is concerned, which may not be there any more.
TEST_F(SharedWindow, WhoWaitedAndIsGoneIsNotCalled) {
  post(0);
  const auto first = a.said(now);
  post(1);
  EXPECT_EQ(bytes(a.said(now)), 0U);
  sender(1).connection.abort(0, now);
  bring(first);
  bring_answers();
  EXPECT_EQ(sender(1).host.windows_opened, 0);
  EXPECT_EQ(sender(0).host.windows_opened, 1);
}

// Another socket has another buffer.
TEST_F(SharedWindow, AnotherSocketOfThePeerHasItsOwn) {
  SendWindows windows;
  const auto one = windows.to(kB, kWindow, true);
  EXPECT_EQ(windows.to(kB, kWindow, true), one);
  const Endpoint other_port{kB.address, 1234};
  EXPECT_NE(windows.to(other_port, kWindow, true), one);
  EXPECT_NE(windows.to({kA.address, kB.port}, kWindow, true), one);
  EXPECT_NE(windows.to(kB, 0, true), one);
}

TEST_F(SharedWindow, ItIsForgottenWithTheLastThatHasIt) {
  SendWindows windows;
  auto one = windows.to(kB, kWindow, true);
  one->sent(kWindow, 1);
  EXPECT_FALSE(windows.to(kB, kWindow, true)->open());
  one.reset();
  EXPECT_TRUE(windows.to(kB, kWindow, true)->open());
}

TEST_F(SharedWindow, AHandshakeThatFindsThePeerCloseByBringsItBack) {
  SendWindows windows;
  const auto one = windows.to(kB, kWindow, false);
  one->sent(kWindow, 1);
  EXPECT_TRUE(one->open());
  windows.to(kB, kWindow, false);
  EXPECT_TRUE(one->open());
  windows.to(kB, kWindow, true);
  EXPECT_FALSE(one->open());
}

}  // namespace
}  // namespace weft::wdp
