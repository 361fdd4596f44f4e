// The start of a connection through a channel (spec/wdp-rd 7.5): a Request for a queue pair that
// has no connection, its Reply, and what follows either of them at once.

#include <cerrno>

#include "tests/unit/wdp/rd_stream_fixture.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using wire::RdStreamWord;

using End = RdStreamEnd;

struct RdStreamStart : RdStreamTest {
  RdStreamStart() {
    for (test::RdNode* n : {&a, &b}) {
      n->socket.channels().enable(
          {.own_port = test::RdNode::kPort, .window = 1 << 20, .starts = true});
    }
  }
  // p asks for a connection with q.
  void ask() {
    p.stream.call({.to = b.address, .from = a.address.address});
    ASSERT_TRUE(p.stream.needs_channel());
    a.open(p.stream.path(), now);
    ASSERT_TRUE(p.stream.has_channel());
    talk();
    ASSERT_TRUE(p.stream.channel()->has_starts());
    ASSERT_TRUE(p.stream.request(q.offer.qpn, request));
    talk();
  }
  // What b has heard.
  RdStart start() {
    auto s = b.socket.channels().take_start();
    EXPECT_TRUE(s);
    return s.value_or(RdStart{});
  }
  RdChannel& channel_of(const RdStart& s) { return *b.socket.channels().find(s.channel); }
  void accept() { q.stream.begin(p.offer, channel_of(start()), kMost); }

  const Buffer request = pattern_bytes(200, 7);
  const Buffer answer = pattern_bytes(300, 9);
};

TEST_F(RdStreamStart, ARequestComesWithTheOffer) {
  ask();
  const RdStart s = start();
  EXPECT_EQ(s.word, RdStreamWord::request);
  EXPECT_EQ(s.index, index_of(q.offer.qpn));
  EXPECT_EQ(s.offer, p.offer);
  EXPECT_TRUE(std::equal(request.begin(), request.end(), s.frame.begin(), s.frame.end()));
  EXPECT_FALSE(b.socket.channels().take_start());
}

// The Responder's first bytes are right behind its Reply, and the Initiator's user has not looked.
TEST_F(RdStreamStart, BytesBehindTheReplyAreKept) {
  ask();
  accept();
  q.stream.reply(answer);
  const Buffer first = pattern_bytes(3000, 11);
  EXPECT_EQ(q.send(first), first.size());
  p.on_reply = [this] { p.stream.begin(q.offer, *p.stream.channel(), kMost); };
  talk();
  EXPECT_EQ(p.reply, answer);
  EXPECT_EQ(p.read(), first);
  const Buffer back = pattern_bytes(5000, 13);
  EXPECT_EQ(p.send(back), back.size());
  talk();
  EXPECT_EQ(q.read(), back);
  EXPECT_EQ(p.stream.error(), 0);
  EXPECT_EQ(q.stream.error(), 0);
}

TEST_F(RdStreamStart, OneThatIsTakenBackEndsWhatItHasBegun) {
  ask();
  accept();
  p.stream.cancel_request();
  talk();
  const RdStart s = start();
  EXPECT_EQ(s.word, RdStreamWord::cancel);
  EXPECT_EQ(s.offer, p.offer);
  b.socket.channels().cancelled(s);
  EXPECT_EQ(q.stream.error(), ECONNRESET);
}

// As where this side was stopped, and its peer has asked again meanwhile.
TEST_F(RdStreamStart, OneThatIsTakenBackUnseenIsNotTold) {
  ask();
  p.stream.cancel_request();
  ASSERT_TRUE(p.stream.request(q.offer.qpn, answer));
  talk();
  EXPECT_EQ(start().frame, answer);
  EXPECT_FALSE(b.socket.channels().take_start());
}

TEST_F(RdStreamStart, OneThatIsForsakenIsTakenBack) {
  ask();
  accept();
  p.stream.forsake();
  talk();
  b.socket.channels().cancelled(start());
  EXPECT_EQ(q.stream.error(), ECONNRESET);
}

TEST_F(RdStreamStart, OneThatIsRefusedIsNotTakenBack) {
  ask();
  (void)start();
  p.stream.refused();
  p.stream.forsake();
  talk();
  EXPECT_FALSE(b.socket.channels().take_start());
}

// Who cannot say so ends the channel, or the peer would wait for its bytes for ever.
TEST_F(RdStreamStart, WithoutMemoryForThatTheChannelEnds) {
  ask();
  accept();
  q.stream.reply(answer);
  talk();
  test::WantOfMemory::after(0, 1000);
  EXPECT_TRUE(test::WantOfMemory::during([&] { p.stream.forsake(); }));
  test::WantOfMemory::end();
  EXPECT_EQ(p.stream.channel(), nullptr);
  later(30s);
  EXPECT_NE(q.stream.error(), 0);
}

// A later connection between the same queue pairs goes on.
TEST_F(RdStreamStart, OneThatIsNoLongerThereEndsNothing) {
  ask();
  const RdStart s = start();
  wire::RdOffer later = p.offer;
  later.session = 0x9999;
  q.stream.begin(later, channel_of(s), kMost);
  p.stream.cancel_request();
  talk();
  b.socket.channels().cancelled(start());
  EXPECT_EQ(q.stream.error(), 0);
}

TEST_F(RdStreamStart, OneInTheNameOfAnotherQueuePairIsDropped) {
  ask();
  wire::RdOffer other = p.offer;
  other.qpn = make_qpn(test::RdNode::kPort, 77);
  Buffer payload(wire::RdOffer::kSize);
  other.encode(payload.data());
  const RdMessage m = start_message(p.offer.qpn, q.offer.qpn, 0, RdStreamWord::request,
                                    static_cast<uint32_t>(payload.size()));
  std::copy(payload.begin(), payload.end(), p.stream.channel()->out().send(m, kNoClient, 0));
  (void)start();
  talk();
  EXPECT_FALSE(b.socket.channels().take_start());
  EXPECT_EQ(drops(b, wire::WdpDrop::wrong_address), 1U);
}

TEST_F(RdStreamStart, WhoLeavesBeforeTheReplyHasNoStreamToEnd) {
  ask();
  accept();
  q.stream.reply(answer);
  p.stream.leave(true);
  talk();
  EXPECT_TRUE(p.reply.empty());
  EXPECT_EQ(q.stream.error(), 0) << "cancel_request() ends it";
}

// A message of a peer's that was not asked for is none.
TEST_F(RdStreamStart, AReplyWithoutARequestIsDropped) {
  ask();
  const RdStart s = start();
  End r{a, 9, 0x3333};
  RdChannel& channel = channel_of(s);
  const RdMessage m = start_message(q.offer.qpn, r.offer.qpn, r.offer.session, RdStreamWord::reply,
                                    static_cast<uint32_t>(answer.size()));
  std::copy(answer.begin(), answer.end(), channel.out().send(m, kNoClient, 0));
  talk();
  EXPECT_TRUE(r.reply.empty());
  EXPECT_EQ(drops(a, wire::WdpDrop::wrong_q_key), 1U);
}

// The channel that had the Request has ended since, and there is another one.
TEST_F(RdStreamStart, AReplyByAnotherChannelIsDropped) {
  ask();
  (void)start();
  p.stream.channel()->abort();
  talk();
  ASSERT_EQ(p.stream.channel(), nullptr);
  RdChannel& other = b.open({.to = a.address, .from = b.address.address}, now);
  talk();
  ASSERT_EQ(other.state(), RdChannel::State::open);
  const RdMessage m = start_message(q.offer.qpn, p.offer.qpn, p.offer.session, RdStreamWord::reply,
                                    static_cast<uint32_t>(answer.size()));
  std::copy(answer.begin(), answer.end(), other.out().send(m, kNoClient, 0));
  talk();
  EXPECT_TRUE(p.reply.empty());
  EXPECT_EQ(drops(a, wire::WdpDrop::wrong_address), 1U);
}

// Q_Key 0 and immediate data 5 are a program's as well.
TEST_F(RdStreamStart, AMessageForAQueuePairOfUdIsItsOwn) {
  auto& from = a.add_pair(20);
  auto& to = b.add_pair(21);
  to.post_receives(1);
  from.q_key = QKey{};
  to.queue->set_q_key(QKey{});
  const Buffer bytes = pattern_bytes(100, 5);
  from.send(kB, 21, bytes, {.operation = work::Operation::send_immediate, .immediate = 5});
  talk();
  ASSERT_EQ(to.received.size(), 1U);
  EXPECT_EQ(to.received[0].bytes, bytes);
  EXPECT_FALSE(b.socket.channels().take_start());
}

// Whoever has none says so, and is not asked.
TEST_F(RdStreamStart, ASocketWithoutThemSaysSo) {
  b.socket.channels().enable({.own_port = test::RdNode::kPort, .window = 1 << 20});
  p.stream.call({.to = b.address, .from = a.address.address});
  a.open(p.stream.path(), now);
  ASSERT_TRUE(p.stream.has_channel());
  talk();
  EXPECT_FALSE(p.stream.channel()->has_starts());
  ASSERT_TRUE(p.stream.request(q.offer.qpn, request));
  talk();
  EXPECT_FALSE(b.socket.channels().take_start());
}

// A peer that takes no answers has its Requests wait, and no more of them than there is room for;
// those of others go on.
TEST_F(RdStreamStart, WhoTakesNoAnswersHoldsUpNobody) {
  ask();
  RdChannel& deaf = channel_of(start());
  // It acknowledges nothing from now on, and has had so much that no answer finds room.
  for (uint32_t n = 0; deaf.out().has_room(kMostOfStart); ++n) {
    (void)deaf.out().send({.sidx = 5, .didx = 200, .length = 1000}, kNoClient, 0);
    if (n % 64 == 0) (void)b.said(now);
  }
  ASSERT_TRUE(p.stream.request(q.offer.qpn, request));
  for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  EXPECT_FALSE(b.socket.channels().take_start());
  test::RdNode c{3, 3, now};
  End r{c, 4, 0x4444};
  r.stream.call({.to = b.address, .from = c.address.address});
  c.open(r.stream.path(), now);
  ASSERT_TRUE(r.stream.has_channel());
  for (bool any = true; any;) {
    any = false;
    for (const auto& d : c.said(now)) any = true, b.hear(d.bytes, c.address, now);
    for (const auto& d : b.said(now)) {
      if (d.to == c.address) any = true, c.hear(d.bytes, b.address, now);
    }
  }
  ASSERT_TRUE(r.stream.request(q.offer.qpn, request));
  for (const auto& d : c.said(now)) b.hear(d.bytes, c.address, now);
  const RdStart s = start();
  EXPECT_EQ(s.offer, r.offer);
  EXPECT_FALSE(b.socket.channels().take_start());
}

}  // namespace
}  // namespace weft::wdp
