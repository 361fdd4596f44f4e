// Channels at rest (spec/wdp-rd 2.5): what is kept of them, and what brings them back.
#include <gtest/gtest.h>

#include "tests/unit/wdp/rd_channel_fixture.h"
#include "tests/unit/wdp/rd_queue_fixture.h"
#include "wdp/ecn.h"
#include "wdp/request_gate.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern_bytes;
using test::WantOfMemory;
using wire::CtlType;
using wire::WdpDrop;
using work::Status;

size_t at_rest(test::RdNode& n) {
  return n.socket.channels().resting().size();
}

struct RdRest : RdChannelTest {
  void SetUp() override {
    a.rests = b.rests = true;
    q.post_receives(20);
    p.post_receives(20);
    p.send(kB, 5, text);
    talk();
    later(1ms);
    ASSERT_EQ(q.received.size(), 1U);
    q.received.clear();
  }
  void rest() {
    later(kMemoryRests + 1ms, [](bool, const Buffer&) {
      ADD_FAILURE() << "nobody says anything";
      return true;
    });
    ASSERT_TRUE(a.links.empty());
    ASSERT_TRUE(b.links.empty());
    ASSERT_EQ(at_rest(a), 1U);
    ASSERT_EQ(at_rest(b), 1U);
  }
  void expect_success(const test::RdNode::Pair& of) {
    ASSERT_EQ(of.host.sent.size(), of.posted);
    for (const auto& d : of.host.sent) EXPECT_EQ(d.status, Status::success) << d.wr_id;
  }
};

TEST_F(RdRest, ASecondAfterItsLastMessage) {
  later(kMemoryRests - 10ms);
  EXPECT_EQ(a.links.size(), 1U);
  rest();
  EXPECT_EQ(a.socket.channels().size(), 1U);
}

// Both ways, and more than once: the numbers of datagrams and of messages go on.
TEST_F(RdRest, WhatIsSentNextIsTheFirstThatIsSaid) {
  for (uint8_t round = 0; round < 3; ++round) {
    rest();
    const bool from_a = round != 1;
    auto& from = from_a ? p : q;
    auto& to = from_a ? q : p;
    size_t said = 0;
    from.send(from_a ? kB : kA, from_a ? 5 : 3, pattern_bytes(700, round));
    talk([&](bool, const Buffer& d) {
      EXPECT_FALSE(class_of(d) == wire::WdpClass::ctl);
      if (said++ == 0) {
        EXPECT_TRUE(is_data(d));
      }
      return true;
    });
    later(1ms);
    ASSERT_EQ(to.received.size(), 1U);
    EXPECT_EQ(to.received[0].bytes, pattern_bytes(700, round));
    to.received.clear();
  }
  expect_success(p);
  expect_success(q);
}

TEST_F(RdRest, WhatIsLostComesAgain) {
  rest();
  for (uint8_t i = 0; i < 3; ++i) p.send(kB, 5, pattern_bytes(900, i));
  size_t said = 0;
  talk([&](bool, const Buffer&) { return said++ != 0; });
  later(500ms);
  ASSERT_EQ(q.received.size(), 3U);
  for (uint8_t i = 0; i < 3; ++i) EXPECT_EQ(q.received[i].bytes, pattern_bytes(900, i));
  expect_success(p);
}

// A copy that comes late is one still.
TEST_F(RdRest, ACopyIsToldFromWhatIsNew) {
  p.send(kB, 5, pattern_bytes(500, 1));
  Buffer copy;
  talk([&](bool from_a, const Buffer& d) {
    if (from_a && is_data(d)) copy = d;
    return true;
  });
  ASSERT_FALSE(copy.empty());
  later(1ms);
  q.received.clear();
  rest();
  const uint64_t before = drops(b, WdpDrop::duplicate);
  b.hear(copy, a.address, now);
  EXPECT_EQ(drops(b, WdpDrop::duplicate), before + 1);
  EXPECT_TRUE(q.received.empty());
  EXPECT_EQ(b.links.size(), 1U) << "it says again what has come";
  later(kMemoryRests + 1ms);
  EXPECT_EQ(at_rest(b), 1U);
}

TEST_F(RdRest, AStrangerWakesNobody) {
  p.send(kB, 5, pattern_bytes(500, 1));
  Buffer datagram;
  talk([&](bool from_a, const Buffer& d) {
    if (from_a && is_data(d)) datagram = d;
    return true;
  });
  later(1ms);
  rest();
  Endpoint elsewhere = a.address;
  ++elsewhere.port;
  const uint64_t before = b.socket.drops().of(WdpDrop::wrong_address);
  b.hear(datagram, elsewhere, now);
  EXPECT_EQ(b.socket.drops().of(WdpDrop::wrong_address), before + 1);
  EXPECT_EQ(at_rest(b), 1U);
}

// Nobody hears of it.
TEST_F(RdRest, IsForgottenInTheEnd) {
  rest();
  const auto silence = [](bool, const Buffer&) {
    ADD_FAILURE() << "nobody says anything";
    return true;
  };
  later(kRestingChannel - 3s, silence);
  EXPECT_EQ(at_rest(a), 1U);
  later(5s, silence);
  EXPECT_EQ(a.socket.channels().size(), 0U);
  EXPECT_EQ(b.socket.channels().size(), 0U);
  p.send(kB, 5, pattern_bytes(300, 9));
  talk();
  later(1ms);
  ASSERT_EQ(q.received.size(), 1U);
  expect_success(p);
}

// A peer that is there takes what comes behind the REQ, which it does not answer.
TEST_F(RdRest, AfterALongOneARequestGoesBeforeTheFirstMessage) {
  rest();
  later(kShortRest);
  p.send(kB, 5, pattern_bytes(700, 1));
  p.send(kB, 5, pattern_bytes(800, 2));
  const auto flight = a.said(now);
  ASSERT_GE(flight.size(), 3U);
  EXPECT_TRUE(is_ctl(flight[0].bytes, CtlType::req));
  for (size_t i = 1; i < flight.size(); ++i) EXPECT_TRUE(is_data(flight[i].bytes));
  for (const auto& d : flight) b.hear(d.bytes, a.address, now);
  ASSERT_EQ(q.received.size(), 2U);
  talk([&](bool, const Buffer& d) {
    EXPECT_FALSE(class_of(d) == wire::WdpClass::ctl);
    return true;
  });
  later(1s, [&](bool, const Buffer& d) {
    EXPECT_FALSE(is_ctl(d, CtlType::req));
    return true;
  });
  expect_success(p);
}

// Whatever of the first flight is lost.
TEST_F(RdRest, AFirstFlightThatIsLostComesAgain) {
  for (size_t lost = 1; lost <= 8; ++lost) {
    rest();
    later(kShortRest);
    const bool both = lost % 2 == 0;
    q.received.clear();
    p.received.clear();
    q.post_receives(1);
    p.post_receives(1);
    p.send(kB, 5, pattern_bytes(700, lost));
    if (both) q.send(kA, 3, pattern_bytes(600, lost));
    size_t said = 0;
    const auto first_are_lost = [&](bool, const Buffer&) { return ++said > lost; };
    talk(first_are_lost);
    later(3s, first_are_lost);
    ASSERT_EQ(q.received.size(), 1U) << lost;
    EXPECT_EQ(q.received[0].bytes, pattern_bytes(700, lost));
    if (both) {
      ASSERT_EQ(p.received.size(), 1U) << lost;
      EXPECT_EQ(p.received[0].bytes, pattern_bytes(600, lost));
    }
    expect_success(p);
    expect_success(q);
    EXPECT_EQ(a.socket.channels().size(), 1U);
  }
}

// It answers the REQ, has dropped what came behind it, and gets that in a channel of its own.
TEST_F(RdRest, APeerThatHasForgottenGetsTheSameMessages) {
  rest();
  later(kShortRest);
  test::RdNode again{kB, 77, now};
  auto& r = again.add_pair(5);
  r.post_receives(5);
  for (uint8_t i = 0; i < 5; ++i) p.send(kB, 5, pattern_bytes(400, i));
  const auto meet = [&] {
    for (int i = 0; i < 10; ++i) {
      for (const auto& d : a.said(now)) again.hear(d.bytes, a.address, now);
      for (const auto& d : again.said(now)) a.hear(d.bytes, b.address, now);
    }
  };
  meet();
  now = now + 1ms;
  a.tick(now);
  again.tick(now);
  meet();
  ASSERT_EQ(r.received.size(), 5U);
  for (uint8_t i = 0; i < 5; ++i) EXPECT_EQ(r.received[i].bytes, pattern_bytes(400, i));
  expect_success(p);
  r.send(kA, 3, pattern_bytes(300, 9));
  meet();
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(300, 9));
}

// The same without a REQ, which is not said behind a short rest: it disowns the channel when it is
// asked.
TEST_F(RdRest, APeerThatHasBegunAnewWithinAShortRestGetsThemToo) {
  rest();
  test::RdNode again{kB, 77, now};
  auto& r = again.add_pair(5);
  r.post_receives(2);
  p.send(kB, 5, pattern_bytes(400, 1));
  p.send(kB, 5, pattern_bytes(500, 2));
  for (const Time until = now + 3s; now < until; now = now + 1ms) {
    a.tick(now);
    again.tick(now);
    for (const auto& d : a.said(now)) again.hear(d.bytes, a.address, now);
    for (const auto& d : again.said(now)) a.hear(d.bytes, b.address, now);
  }
  ASSERT_EQ(r.received.size(), 2U);
  EXPECT_EQ(r.received[0].bytes, pattern_bytes(400, 1));
  EXPECT_EQ(r.received[1].bytes, pattern_bytes(500, 2));
  expect_success(p);
}

// One that has no channels any more.
TEST_F(RdRest, APeerThatHasNoChannelsAnyMoreGetsThemPlain) {
  rest();
  later(kShortRest);
  p.send(kB, 5, pattern_bytes(400, 1));
  wire::WdpCtl rej{.type = CtlType::rej, .service = wire::CtlService::rd_channel};
  for (const auto& d : a.said(now)) {
    if (!is_ctl(d.bytes, CtlType::req)) continue;
    const auto req = wire::WdpCtl::parse(d.bytes);
    rej = RequestGate::rejection(*req, wire::RejReason::service_mismatch);
  }
  Buffer answer(rej.size());
  rej.encode(answer.data());
  a.hear(answer, b.address, now);
  const auto plain = a.said(now);
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(class_of(plain[0].bytes), wire::WdpClass::ud);
  expect_success(p);
}

// A network that translates addresses gives it another port after a while.
TEST_F(RdRest, FromAnotherPortItIsAnotherChannel) {
  rest();
  later(kShortRest);
  Endpoint translated = a.address;
  translated.port += 7;
  p.send(kB, 5, pattern_bytes(400, 1));
  for (int i = 0; i < 10; ++i) {
    for (const auto& d : a.said(now)) b.hear(d.bytes, translated, now);
    for (const auto& d : b.said(now)) {
      ASSERT_EQ(d.to, translated);
      a.hear(d.bytes, b.address, now);
    }
    now = now + 100us;
    a.tick(now);
    b.tick(now);
  }
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, pattern_bytes(400, 1));
  expect_success(p);
}

// A process that has taken the peer's place knows nothing of the channel, and calls at the same
// time.
TEST_F(RdRest, AnotherProcessThatCallsMeanwhile) {
  rest();
  later(kShortRest);
  test::RdNode again{kB, 78, now};
  auto& r = again.add_pair(5);
  r.post_receives(1);
  p.send(kB, 5, pattern_bytes(400, 1));
  r.send(kA, 3, pattern_bytes(300, 2));
  for (int i = 0; i < 20; ++i) {
    const auto here = a.said(now);
    const auto there = again.said(now);
    for (const auto& d : here) again.hear(d.bytes, a.address, now);
    for (const auto& d : there) a.hear(d.bytes, b.address, now);
    if (!here.empty() || !there.empty()) continue;
    now = now + 150ms;
    a.tick(now);
    again.tick(now);
  }
  ASSERT_EQ(r.received.size(), 1U);
  EXPECT_EQ(r.received[0].bytes, pattern_bytes(400, 1));
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(300, 2));
  expect_success(p);
}

// spec/wdp-rd 2.2: the peer has begun anew, which knows nothing of the channel.
TEST_F(RdRest, APeerThatBeginsAnewHasAnotherChannel) {
  rest();
  test::RdNode again{kB, 77, now};
  auto& r = again.add_pair(5);
  r.send(kA, 3, pattern_bytes(400, 3));
  for (int i = 0; i < 20; ++i) {
    for (const auto& d : again.said(now)) a.hear(d.bytes, b.address, now);
    for (const auto& d : a.said(now)) again.hear(d.bytes, a.address, now);
  }
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(400, 3));
  EXPECT_EQ(at_rest(a), 0U);
}

TEST_F(RdRest, NotWhileAMessageLacksItsReceive) {
  for (uint8_t i = 0; i < 20; ++i) p.send(kB, 5, pattern_bytes(100, i));
  talk();
  later(3s);
  EXPECT_EQ(b.links.size(), 1U);
  q.post_receives(1);
  talk();
  later(2s);
  EXPECT_EQ(q.received.size(), 20U);
  EXPECT_EQ(at_rest(b), 1U);
}

// spec/wdp-rd 4.4: they are given up, and those that come late are for what comes then.
TEST_F(RdRest, AfterItsMessagesWereGivenUpForWantOfReceives) {
  const auto& receiver = *of_b().receiver();
  while (receiver.waiting_bytes() <= receiver.most() / 2) {
    p.send(kB, 5, pattern_bytes(1000, static_cast<uint8_t>(p.posted)));
    talk();
  }
  later(2 * kPatience * kPatienceTick);
  ASSERT_EQ(at_rest(b), 1U);
  EXPECT_FALSE(b.socket.channels().waits_for(5));
  q.received.clear();
  q.post_receives(1);
  p.send(kB, 5, pattern_bytes(700, 9));
  talk();
  later(1ms);
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(q.received[0].bytes, pattern_bytes(700, 9));
}

TEST_F(RdRest, NotWhileSomethingIsNotAcknowledged) {
  p.send(kB, 5, pattern_bytes(100, 1));
  later(3s, [](bool from_a, const Buffer&) { return from_a; });
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(p.host.sent.size(), p.posted - 1);
  later(3s);
  EXPECT_EQ(at_rest(a), 1U);
  expect_success(p);
}

TEST_F(RdRest, NotWhileAConnectionIsThere) {
  of_a().enter();
  later(3s);
  EXPECT_EQ(a.links.size(), 1U);
  of_a().leave();
  later(2s);
  EXPECT_EQ(at_rest(a), 1U);
}

// RFC 9000 13.4.2.1: the count of marks goes on, at both ends.
TEST_F(RdRest, MarksAreCountedOn) {
  router = [](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
    return from_a && (traffic_class & kEcnBits) == kEct0 ? static_cast<uint8_t>(traffic_class | kCe)
                                                         : traffic_class;
  };
  p.send(kB, 5, pattern_bytes(100, 1));
  talk();
  later(1ms);
  ASSERT_GT(of_a().sender().counters().marked, 0U);
  rest();
  router = {};
  p.send(kB, 5, pattern_bytes(100, 2));
  talk();
  later(1ms);
  EXPECT_EQ(of_a().sender().counters().marked, 0U) << "those of before are known";
  router = [](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
    return from_a ? static_cast<uint8_t>(traffic_class | kCe) : traffic_class;
  };
  p.send(kB, 5, pattern_bytes(100, 3));
  talk();
  later(1ms);
  EXPECT_EQ(of_a().sender().counters().marked, 1U);
}

TEST_F(RdRest, WhatThePathCarriesIsKept) {
  of_a().path_carries(800);
  rest();
  for (const size_t size : {900, 500}) {
    p.send(kB, 5, pattern_bytes(size, 1));
    const auto flight = a.said(now);
    ASSERT_EQ(flight.size(), 1U) << size;
    EXPECT_EQ(flight[0].may_be_cut, size > 800) << size;
    b.hear(flight[0].bytes, a.address, now);
    talk();
  }
  later(1ms);
  expect_success(p);
}

TEST_F(RdRest, TheWindowOfTheReceiverIsKept) {
  constexpr uint32_t kKiB = 3;
  const wire::WdpAck ack{.token = of_a().token(),
                         .cum = of_a().sender().next_csn(),
                         .timestamp = 1'000'000'000,
                         .window = kKiB};
  Buffer bytes(ack.size());
  ack.encode(bytes.data());
  a.hear(bytes, b.address, now);
  rest();
  for (uint8_t i = 0; i < 10; ++i) p.send(kB, 5, pattern_bytes(900, i));
  size_t said = 0;
  for (const auto& d : a.said(now)) said += d.bytes.size();
  EXPECT_GE(said, 900U);
  EXPECT_LE(said, kKiB * 1024);
}

// RFC 5681 4.1: what was free then may not be free now.
TEST_F(RdRest, TheRoundTripIsKeptAndTheCongestionWindowBeginsAnew) {
  for (uint8_t i = 0; i < 19; ++i) p.send(kB, 5, pattern_bytes(1000, i));
  now = now + 5ms;
  talk();
  now = now + 5ms;
  talk();
  later(1ms);
  const Duration least = of_a().sender().round_trip().least();
  const size_t first = Cubic{}.window();
  ASSERT_GT(least, Duration{0});
  rest();
  p.send(kB, 5, pattern_bytes(100, 1));
  ASSERT_FALSE(a.said(now).empty());
  EXPECT_EQ(of_a().sender().round_trip().least(), least);
  EXPECT_EQ(of_a().sender().congestion().window(), first);
}

// Wherever memory is missing, on the way to rest or back, nothing is lost.
TEST_F(RdRest, WithoutMemoryItGoesOnLater) {
  for (uint64_t n = 0; n < 12; ++n) {
    WantOfMemory::after(n, 1);
    later(kMemoryRests + 1ms);
    WantOfMemory::end();
    later(kMemoryRests + 1ms);
    ASSERT_EQ(at_rest(a), 1U) << n;
    ASSERT_EQ(at_rest(b), 1U) << n;
    p.send(kB, 5, pattern_bytes(100, n));
    auto& back = n % 2 == 0 ? q : p;
    if (n % 2 == 0) back.send(kA, 3, pattern_bytes(200, n));
    WantOfMemory::after(n, 1);
    talk();
    WantOfMemory::end();
    later(500ms);
    ASSERT_EQ(q.received.size(), 1U) << n;
    EXPECT_EQ(q.received[0].bytes, pattern_bytes(100, n));
    q.received.clear();
    q.post_receives(1);
  }
  expect_success(p);
  expect_success(q);
}

// Routers drop what says ECT from A to B.
struct RdRestWithoutEct : RdRest {
  void SetUp() override {
    router = [this](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
      if (from_a && (traffic_class & kEcnBits) != 0) {
        ++dropped;
        return {};
      }
      return traffic_class;
    };
    a.rests = b.rests = true;
    q.post_receives(20);
    p.send(kB, 5, text);
    talk();
    later(5s);
    ASSERT_EQ(q.received.size(), 1U);
    ASSERT_GT(dropped, 0U);
  }
  size_t dropped = 0;
};

TEST_F(RdRestWithoutEct, IsKnownAfterwards) {
  rest();
  dropped = 0;
  p.send(kB, 5, pattern_bytes(300, 1));
  talk();
  later(1ms);
  EXPECT_EQ(q.received.size(), 2U);
  EXPECT_EQ(dropped, 0U);
  ASSERT_EQ(b.links.size(), 1U);
  EXPECT_TRUE(of_b().sender().says_ect()) << "the other way was not tried";
}

// Nobody knows whether its peer has heard the RTU, nor has anything to send.
struct RdUnheard : RdChannelTest {};

TEST_F(RdUnheard, EndsAndDoesNotRest) {
  a.rests = true;
  a.open({.to = b.address, .from = a.address.address}, now);
  const auto reply_alone = [](bool from_a, const Buffer& d) {
    return from_a || is_ctl(d, CtlType::rep);
  };
  talk(reply_alone);
  ASSERT_EQ(of_a().state(), RdChannel::State::open);
  later(kIdleChannel - 1s, reply_alone);
  EXPECT_EQ(a.links.size(), 1U);
  later(30s, reply_alone);
  EXPECT_EQ(a.socket.channels().size(), 0U);
}

// Queue pairs of type RD keep pointers to it.
struct RdRestOfQueues : RdQueueTest {};

TEST_F(RdRestOfQueues, NeverOnceTheyHaveSpokenByIt) {
  a.rests = b.rests = true;
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(100, 1));
  talk();
  later(5s);
  ASSERT_EQ(q.received.size(), 1U);
  expect_all(p, Status::success);
  EXPECT_EQ(at_rest(a), 0U);
  EXPECT_EQ(at_rest(b), 0U);
  EXPECT_EQ(a.links.size(), 1U);
  EXPECT_EQ(b.links.size(), 1U);
}

}  // namespace
}  // namespace weft::wdp
