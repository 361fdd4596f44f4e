#include "wdp/channel_calls.h"

#include <gtest/gtest.h>

#include <list>

#include "tests/support/host.h"
#include "wdp/cubic.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;

// A port that has channels and nothing else.
class ChannelEnd final : public WdpSocketOwner, public RdChannelOwner {
 public:
  ChannelEnd(uint8_t number, Time now) : random(number), gate(random, now) {
    address = {Gid::from_ipv4(0x0a000000U + number), 40000};
    calls.channels().enable({.own_port = address.port, .window = 1 << 20});
  }
  RdChannel& make() {
    return made.emplace_back(calls.channels(), *this, random, size_t{1} << 20, false,
                             std::make_unique<Cubic>());
  }
  RdChannel* channel_called() override { return has_room ? &make() : nullptr; }
  std::optional<RejReason> requested(const RequestKey&, const Handshake&) override { return {}; }
  Result<Callee, RejReason> called(const WdpCtl&, const Endpoint&) override {
    return fail(RejReason::qpn_unknown);
  }
  void answered(SessionToken, const Handshake&) override {}
  void reached() override {}

  Path path_to(const ChannelEnd& other) const {
    return {.to = other.address, .from = address.address};
  }
  void connect(const ChannelEnd& other, Time now) {
    calls.connect(make(), path_to(other), make_qpn(other.address.port, wire::kPortIndex), now);
  }
  // All that it says now.
  std::vector<Buffer> said(Time now) {
    std::vector<Buffer> all;
    const auto take = [&](const Train& t) {
      t.each_datagram([&](std::span<const IoVec> pieces) {
        Buffer& d = all.emplace_back();
        for (const IoVec& v : pieces) {
          const auto* p = static_cast<const std::byte*>(v.iov_base);
          d.insert(d.end(), p, p + v.iov_len);
        }
      });
    };
    while (answers.ready()) {
      Train t;
      answers.fill(t);
      take(t);
    }
    for (RdChannel& channel : made) {
      while (channel.ready(now)) {
        Train t;
        channel.fill(t, now);
        take(t);
      }
    }
    return all;
  }
  void hear(const Buffer& d, const Endpoint& from, Time now) {
    const UdReception how{.from = from, .to = address.address};
    const auto common = *wire::WdpCommon::parse(d);
    const auto c = WdpCtl::parse(common, d);
    if (c.ok() && c->type == CtlType::req) return calls.called(*c, d.size(), how, now, *this);
    RdChannel* const channel = calls.channels().find(common.token);
    ASSERT_NE(channel, nullptr);
    channel->received(common, d, how, now);
  }

  SeededRandom random;
  Endpoint address;
  Demux demux;
  RequestGate gate;
  PortAnswers answers;
  ChannelCalls calls{random, demux, gate, answers};
  std::list<RdChannel> made;
  bool has_room = true;
};

struct ChannelCallsTest : ::testing::Test {
  // What anybody may send.
  static Buffer request(uint32_t token, uint32_t xid, const HandshakeCookie& cookie = {}) {
    const WdpCtl c{.type = CtlType::req,
                   .source_token = SessionToken{token},
                   .source = make_qpn(40000, 0),
                   .destination = make_qpn(40000, 0),
                   .xid = Xid{xid},
                   .service = wire::CtlService::rd_channel,
                   .ib_style = true,
                   .max_payload = 1472,
                   .first_psn = Psn{7},
                   .cookie = cookie};
    Buffer d(c.size());
    c.encode(d.data());
    return d;
  }
  static std::vector<CtlType> types(const std::vector<Buffer>& said) {
    std::vector<CtlType> all;
    for (const Buffer& d : said) all.push_back(WdpCtl::parse(d)->type);
    return all;
  }
  void talk() {
    for (bool any = true; any;) {
      any = false;
      for (const Buffer& d : a.said(now)) any = true, b.hear(d, a.address, now);
      for (const Buffer& d : b.said(now)) any = true, a.hear(d, b.address, now);
    }
  }

  Time now = Time::from_ns(1'000'000'000);
  ChannelEnd a{1, now};
  ChannelEnd b{2, now};
};

TEST_F(ChannelCallsTest, ACallBecomesOneChannelAtBothEnds) {
  a.connect(b, now);
  RdChannel& caller = a.made.front();
  EXPECT_EQ(a.calls.channels().find(a.path_to(b)), &caller);
  EXPECT_EQ(a.calls.channels().find(caller.token()), &caller);
  EXPECT_EQ(caller.state(), RdChannel::State::setting_up);
  talk();
  ASSERT_EQ(b.made.size(), 1U);
  RdChannel& callee = b.made.front();
  EXPECT_EQ(b.calls.channels().find(b.path_to(a)), &callee);
  EXPECT_EQ(caller.state(), RdChannel::State::open);
  EXPECT_EQ(callee.state(), RdChannel::State::open);
  EXPECT_EQ(caller.peer().token, callee.token());
  EXPECT_NE(caller.token(), callee.token());
}

TEST_F(ChannelCallsTest, ACopyOfARequestMakesNoOtherChannel) {
  b.hear(request(5, 77), a.address, now);
  EXPECT_EQ(types(b.said(now)), std::vector{CtlType::rep});
  b.hear(request(5, 77), a.address, now);
  EXPECT_EQ(types(b.said(now)), std::vector{CtlType::rep}) << "the same answer";
  EXPECT_EQ(b.made.size(), 1U);
}

TEST_F(ChannelCallsTest, WithoutRoomTheCallIsRefusedAndItsCopiesAreKnown) {
  b.has_room = false;
  b.hear(request(5, 77), a.address, now);
  const auto said = b.said(now);
  ASSERT_EQ(types(said), std::vector{CtlType::rej});
  EXPECT_EQ(static_cast<RejReason>(WdpCtl::parse(said[0])->reason), RejReason::no_resources);
  EXPECT_EQ(b.calls.channels().find(b.path_to(a)), nullptr);
  const auto key = key_of(*WdpCtl::parse(request(5, 77)), a.address);
  EXPECT_TRUE(b.answers.repeat(key, 1000, {.from = a.address, .to = b.address.address}));
}

// spec/wdp 4.4, of all that wait at the port.
TEST_F(ChannelCallsTest, WhoCallsACrowdedPortHasToShowThatItIsThere) {
  for (uint32_t i = 0; i < RequestGate::kMostHalfOpen; ++i) {
    b.hear(request(5 + i, i), {Gid::from_ipv4(0x0b000000U + i), 40000}, now);
  }
  EXPECT_EQ(b.made.size(), RequestGate::kMostHalfOpen);
  (void)b.said(now);
  b.hear(request(5, 77), a.address, now);
  EXPECT_EQ(b.made.size(), RequestGate::kMostHalfOpen);
  const auto said = b.said(now);
  ASSERT_EQ(types(said), std::vector{CtlType::cookie});
  b.hear(request(5, 77, WdpCtl::parse(said[0])->cookie), a.address, now);
  EXPECT_EQ(b.made.size(), RequestGate::kMostHalfOpen + 1);
  EXPECT_EQ(types(b.said(now)), std::vector{CtlType::rep});
}

// spec/wdp-rd 2.2: anybody could send it.
TEST_F(ChannelCallsTest, WhoBeginsAnewHasToShowThatItIsThere) {
  a.connect(b, now);
  talk();
  RdChannel& before = b.made.front();
  b.hear(request(5, 77), a.address, now);
  const auto said = b.said(now);
  ASSERT_EQ(types(said), std::vector{CtlType::cookie});
  EXPECT_EQ(b.calls.channels().find(b.path_to(a)), &before);
  b.hear(request(5, 77, WdpCtl::parse(said[0])->cookie), a.address, now);
  EXPECT_EQ(before.state(), RdChannel::State::gone);
  ASSERT_EQ(b.made.size(), 2U);
  EXPECT_EQ(b.calls.channels().find(b.path_to(a)), &b.made.back());
}

// spec/wdp-rd 2.5.
TEST_F(ChannelCallsTest, AChannelAtRestGoesOnWithItsToken) {
  a.connect(b, now);
  talk();
  const SessionToken token = b.made.front().token();
  const auto ends = ChannelEnds::of(b.path_to(a));
  ASSERT_TRUE(b.calls.channels().rest(b.made.front(), now));
  ASSERT_TRUE(b.calls.channels().resting().has(ends));
  b.has_room = false;
  EXPECT_EQ(b.calls.wake(ends, now, b), nullptr);
  EXPECT_TRUE(b.calls.channels().resting().has(ends));
  b.has_room = true;
  RdChannel* const woken = b.calls.wake(ends, now, b);
  ASSERT_EQ(woken, &b.made.back());
  EXPECT_EQ(woken->token(), token);
  EXPECT_EQ(woken->state(), RdChannel::State::open);
  EXPECT_EQ(b.calls.channels().find(token), woken);
  EXPECT_FALSE(b.calls.channels().resting().has(ends));
}

TEST_F(ChannelCallsTest, AChannelThatHasRestedLongCallsBeforeItSpeaks) {
  a.connect(b, now);
  talk();
  const auto ends = ChannelEnds::of(b.path_to(a));
  ASSERT_TRUE(b.calls.channels().rest(b.made.front(), now));
  now = now + kShortRest - Duration{1};
  b.calls.resume(ends, b.make(), now);
  EXPECT_TRUE(b.said(now).empty()) << "it has nothing to say";
  EXPECT_LT(now, b.made.back().rests_at());
  ASSERT_TRUE(b.calls.channels().rest(b.made.back(), now));
  now = now + kShortRest;
  b.calls.resume(ends, b.make(), now);
  EXPECT_EQ(types(b.said(now)), std::vector{CtlType::req});
}

}  // namespace
}  // namespace weft::wdp
