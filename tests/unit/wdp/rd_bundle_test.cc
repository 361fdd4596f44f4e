// Messages of queue pairs of type RD that share datagrams (spec/wdp-rd 6.7), and answers that ride
// with those of the program (6.4).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "tests/unit/wdp/rd_queue_fixture.h"
#include "wire/wdp_ack.h"

namespace weft::wdp {
namespace {

using test::address_of;
using test::Buffer;
using test::has_message;
using test::messages_in;
using test::pattern_bytes;
using test::RdNode;
using test::WantOfMemory;
using wire::Opcode;
using wire::WdpBundle;
using wire::WdpClass;
using wire::WdpDrop;
using work::Status;

struct RdBundleTest : RdQueueTest {
  // The channel is there, both sides know what the path carries, and nothing is left to be said.
  void stand(const Watch& watch = {}) {
    for (auto [m, to, index] : {std::tuple{&p, kB, uint8_t{2}}, std::tuple{&q, kA, uint8_t{1}}}) {
      (m == &p ? q : p).post_receives(1);
      m->send(to, index, pattern_bytes(10, 1));
      talk(watch);
      later(1ms, watch);
    }
    ASSERT_EQ(p.host.sent.size(), 1U);
    ASSERT_EQ(q.host.sent.size(), 1U);
    ASSERT_EQ(b.links.size(), 1U);
    forget();
  }
  void forget() {
    for (RdNode::Member* m : {&p, &q}) {
      m->host.sent.clear();
      m->posted = 0;
      m->targets.clear();
      m->received.clear();
    }
  }
  // How many messages of A's each of its datagrams has.
  static Watch count_messages(std::vector<size_t>& counts, const Watch& watch = {}) {
    return [&counts, watch](bool from_a, const Buffer& d) {
      if (watch && !watch(from_a, d)) return false;
      if (from_a && !messages_in(d).empty()) counts.push_back(messages_in(d).size());
      return true;
    };
  }
  RdChannel& of_b() { return b.links.front().channel; }
  static bool is_bundle(const Buffer& d) {
    return wire::WdpCommon::parse(d)->wdp_class == WdpBundle::kClass;
  }
  // What A's datagrams have: how many messages, and which of them is an END.
  struct Seen {
    size_t messages = 0;
    size_t ends = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  static Watch look_at(std::vector<Seen>& datagrams) {
    return [&datagrams](bool from_a, const Buffer& d) {
      const auto messages = messages_in(d);
      if (!from_a || messages.empty()) return true;
      const auto ends = std::count_if(messages.begin(), messages.end(),
                                      [](const auto& m) { return m.header.is_end(); });
      datagrams.push_back({messages.size(), static_cast<size_t>(ends)});
      return true;
    };
  }
  // The records that B says.
  static Watch listen_to(std::vector<wire::WdpResponse>& records) {
    return [&records](bool from_a, const Buffer& d) {
      for (const auto& m : messages_in(d)) {
        if (from_a || m.header.opcode != Opcode::terminate) continue;
        for (size_t at = 0; at < m.payload.size(); at += wire::WdpResponse::kSize) {
          records.push_back(wire::WdpResponse::parse(m.payload.data() + at));
        }
      }
      return true;
    };
  }
  // The program takes back what it has registered last, from its byte `left` on.
  void cut_last_region(size_t left = 0) {
    const work::SendQueue& queue = p.host.send_queue();
    p.host.regions.at(p.host.send_queue().at(queue.tail() - 1).segment()->lkey).length = left;
  }
  static bool has_ack(const Buffer& d) {
    Bytes rest = Bytes{d}.subspan(WdpBundle::kSize);
    while (!rest.empty()) {
      if (wire::WdpAck::parse(*WdpBundle::take(rest)).ok()) return true;
    }
    return false;
  }
  void send_many(uint32_t count, uint32_t size) {
    q.post_receives(count);
    for (uint32_t i = 0; i < count; ++i) p.send(kB, 2, pattern_bytes(size, i));
  }
  void expect_received(uint32_t count, uint32_t size) {
    ASSERT_EQ(q.received.size(), count);
    for (uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(q.received[i].bytes, pattern_bytes(size, i)) << i;
    expect_all(p, Status::success);
  }
};

// 16 bytes for the bundle, 116 for each.
TEST_F(RdBundleTest, SmallMessagesShareDatagrams) {
  stand();
  send_many(24, 64);
  std::vector<size_t> counts;
  talk([&](bool from_a, const Buffer& d) {
    EXPECT_LE(d.size(), 1472U) << "what the path carries";
    return count_messages(counts)(from_a, d);
  });
  later(1ms);
  expect_received(24, 64);
  EXPECT_EQ(counts, (std::vector<size_t>{12, 12}));
}

// Somebody waits for those, and not for the segments of a large one.
TEST_F(RdBundleTest, TheDriverHearsOfSmallMessages) {
  stand();
  const size_t before = b.links.front().small;
  send_many(24, 64);
  talk();
  later(1ms);
  expect_received(24, 64);
  const size_t small = b.links.front().small - before;
  EXPECT_GE(small, 24U * 64);
  forget();
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(4000, 3));
  talk();
  later(1ms);
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(b.links.front().small - before, small);
}

// spec/wdp-rd 5.5: each path carries 548.
TEST_F(RdBundleTest, FewerUntilThePathIsKnown) {
  const Watch no_probes = [](bool, const Buffer& d) {
    const auto c = wire::WdpCtl::parse(d);
    return !c.ok() || c->type != wire::CtlType::probe;
  };
  stand(no_probes);
  send_many(8, 64);
  std::vector<size_t> counts;
  talk(count_messages(counts, no_probes));
  later(1ms, no_probes);
  expect_received(8, 64);
  EXPECT_EQ(counts, (std::vector<size_t>{4, 4}));
}

// spec/wdp-rd 5.4: whatever the receiver counts, the network has one datagram to carry.
TEST(RdSendPath, ABundleIsOneDatagramToTheNetwork) {
  struct Heard final : Congestion {
    explicit Heard(std::vector<size_t>& to) : all(to) {}
    void carried(size_t datagram) override { all.push_back(datagram); }
    void acknowledged(size_t, Time, bool, Duration, Duration, Time) override {}
    void congested(Time, Time) override {}
    void collapsed(Time) override {}
    size_t window() const override { return kFirst; }
    Duration pause(const Departure&, Duration) const override { return {}; }
    std::vector<size_t>& all;
  };
  std::vector<size_t> datagrams;
  RdSendPath path{Csn{7}, std::make_unique<Heard>(datagrams), false};
  const Time now = Time::from_ns(1'000'000'000);
  path.open(SessionToken{1}, false, now);
  for (int i = 0; i < 10; ++i) {
    wire::WdpData{.wdp_class = wire::WdpClass::rd}.encode(
        path.append_shared(wire::WdpData::kSize, 1472, kNoClient, 0));
  }
  Train train;
  path.fill(train, {}, now);
  ASSERT_TRUE(path.received({.cum = Csn{8}}, now + 1ms, [](const SentDatagram&) {}).ok());
  const size_t size = WdpBundle::kSize + 10 * (WdpBundle::kFrame + wire::WdpData::kSize);
  EXPECT_EQ(datagrams, (std::vector<size_t>{size + kDatagramOverhead}));
}

// What ends with its channel is counted in messages.
TEST_F(RdBundleTest, EachMessageOfALostOneIsLost) {
  stand();
  send_many(4, 64);
  talk([](bool, const Buffer&) { return false; });
  RdChannel& channel = a.links.front().channel;
  channel.abort();
  EXPECT_EQ(channel.out().messages_lost(), 4U);
  expect_all(p, Status::retry_exceeded);
}

// The kernel was told by a router.
TEST_F(RdBundleTest, TheyGrowNoLargerThanAPathThatNarrows) {
  stand();
  a.links.front().channel.path_carries(1000);
  send_many(24, 64);
  std::vector<size_t> counts;
  talk([&](bool from_a, const Buffer& d) {
    EXPECT_LE(d.size(), 1000U);
    return count_messages(counts)(from_a, d);
  });
  later(1ms);
  expect_received(24, 64);
  EXPECT_EQ(counts, (std::vector<size_t>{8, 8, 8}));
}

// Of several flows and kinds: all are one transmission.
TEST_F(RdBundleTest, FlowsShareThem) {
  stand();
  RdNode::Member& p2 = a.add_member(3);
  RdNode::Member& q2 = b.add_member(4);
  q.post_receives(1);
  q2.post_receives(1);
  p.send(kB, 4, pattern_bytes(20, 1));
  p2.send(kB, 2, pattern_bytes(30, 2));
  p.write(kB, 2, pattern_bytes(40, 3), q.rkey, address_of(q.board));
  const Buffer& read = p2.read(kB, 4, 50, q2.rkey, address_of(q2.board));
  q2.board[7] = std::byte{99};
  int datagrams = 0;
  talk([&](bool from_a, const Buffer& d) {
    if (from_a && has_message(d, Opcode::send)) ++datagrams;
    return true;
  });
  EXPECT_EQ(datagrams, 1);
  later(1ms);
  expect_all(p, Status::success);
  expect_all(p2, Status::success);
  EXPECT_EQ(Buffer(q.board.begin(), q.board.begin() + 40), pattern_bytes(40, 3));
  EXPECT_EQ(read[7], std::byte{99});
  ASSERT_EQ(q2.received.size(), 1U);
  EXPECT_EQ(q2.received[0].bytes, pattern_bytes(20, 1));
}

TEST_F(RdBundleTest, OneThatIsLostComesAgainWhole) {
  stand();
  send_many(8, 64);
  int lost = 0;
  const auto watch = [&](bool from_a, const Buffer& d) {
    return !from_a || !is_bundle(d) || ++lost != 1;
  };
  talk(watch);
  EXPECT_TRUE(q.received.empty()) << "the order of the flow";
  later(1s, watch);
  expect_received(8, 64);
}

TEST_F(RdBundleTest, ACopyOfOneIsDropped) {
  stand();
  send_many(4, 64);
  Buffer copy;
  talk([&](bool from_a, const Buffer& d) {
    if (from_a && is_bundle(d)) copy = d;
    return true;
  });
  later(1ms);
  b.hear(copy, a.address, now);
  talk();
  expect_received(4, 64);
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::duplicate), 1U);
}

// spec/wdp-rd 6.7: an RDACK is of its transmission alone, so nobody says it again.
TEST_F(RdBundleTest, TheRdackOfACopyIsHeard) {
  stand();
  a.polls = b.polls = false;
  p.post_receives(1);
  q.send(kA, 1, pattern_bytes(64, 9));
  talk();
  ASSERT_FALSE(of_b().sender().idle());
  send_many(2, 64);
  const auto said = a.said(now);
  ASSERT_EQ(said.size(), 1U);
  const Buffer& whole = said[0].bytes;
  ASSERT_TRUE(is_bundle(whole) && has_ack(whole));
  size_t without = WdpBundle::kSize;
  for (const auto& m : messages_in(whole)) {
    without += WdpBundle::kFrame + wire::WdpData::kSize + m.payload.size();
  }
  b.hear(Bytes{whole}.first(without), a.address, now);
  EXPECT_EQ(q.received.size(), 2U);
  EXPECT_FALSE(of_b().sender().idle());
  b.hear(whole, a.address, now);
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::duplicate), 1U);
  EXPECT_TRUE(of_b().sender().idle());
  a.polls = b.polls = true;
  later(1s);
  expect_received(2, 64);
  expect_all(q, Status::success);
}

// Each number has its bundle, and those that are lost come again, on either side of 0.
TEST_F(RdBundleTest, CsnsWrap) {
  constexpr uint32_t kRounds = 40;
  a.numbers.fixed = 0xffff'ffff - kRounds / 2;
  stand();
  a.numbers.fixed.reset();
  std::vector<uint32_t> csns;
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (!from_a || !is_bundle(d)) return true;
    const uint32_t csn = wire::WdpCommon::parse(d)->class_word;
    const bool again = std::count(csns.begin(), csns.end(), csn) > 0;
    csns.push_back(csn);
    return again || csn % 3 != 0;
  };
  for (uint32_t round = 0; round < kRounds; ++round) {
    q.post_receives(3);
    for (uint32_t i = 0; i < 3; ++i) p.send(kB, 2, pattern_bytes(64, 3 * round + i));
    talk(watch);
  }
  later(3s, watch);
  expect_received(3 * kRounds, 64);
  EXPECT_EQ(std::count(csns.begin(), csns.end(), 0xffff'ffff), 2) << "it is a multiple of 3";
  EXPECT_EQ(std::count(csns.begin(), csns.end(), 0), 2);
  EXPECT_EQ(std::count(csns.begin(), csns.end(), 1), 1);
}

// All of it comes again, and what was there is not taken twice.
TEST_F(RdBundleTest, WithoutMemoryInTheMiddleOfOneNothingIsDoneTwice) {
  stand();
  for (int n = 0; n < 12; ++n) {
    for (int i = 0; i < 4; ++i) p.add(kB, 2, 1, q.rkey, address_of(q.board, 8 * n));
    std::vector<Buffer> said;
    for (const auto& d : a.said(now)) said.push_back(d.bytes);
    ASSERT_EQ(said.size(), 1U);
    WantOfMemory::after(n, 1);
    b.hear(said[0], a.address, now);
    WantOfMemory::end();
    talk();
    later(1s);
    expect_all(p, Status::success);
    uint64_t sum = 0;
    std::memcpy(&sum, q.board.data() + 8 * n, sizeof sum);
    EXPECT_EQ(sum, 4U) << n;
    forget();
  }
}

// A message whose memory is gone leaves no part, wherever it would be.
TEST_F(RdBundleTest, APartThatIsTakenBackLeavesTheOthers) {
  stand();
  constexpr uint32_t kMessages = 4;
  for (uint32_t bad = 0; bad < kMessages; ++bad) {
    q.post_receives(kMessages - 1);
    for (uint32_t i = 0; i < kMessages; ++i) {
      p.send(kB, 2, pattern_bytes(64 + 8 * i, i));
      if (i == bad) cut_last_region();
    }
    std::vector<Seen> datagrams;
    talk(look_at(datagrams));
    later(1ms, look_at(datagrams));
    EXPECT_EQ(datagrams, (std::vector<Seen>{{.messages = kMessages - 1}})) << bad;
    ASSERT_EQ(q.received.size(), kMessages - 1) << bad;
    ASSERT_EQ(p.host.sent.size(), kMessages) << bad;
    for (uint32_t i = 0, at = 0; i < kMessages; ++i) {
      EXPECT_EQ(p.status_of(i), i == bad ? Status::local_protection : Status::success) << bad;
      if (i == bad) continue;
      EXPECT_EQ(q.received[at++].bytes, pattern_bytes(64 + 8 * i, i)) << bad;
    }
    forget();
  }
}

// Memory that goes behind the first segment: END takes the place of the next.
TEST_F(RdBundleTest, AnEndSharesADatagram) {
  stand();
  q.post_receives(2);
  p.send(kB, 2, pattern_bytes(4000, 1));
  cut_last_region(2000);
  for (uint32_t i = 0; i < 2; ++i) p.send(kB, 2, pattern_bytes(64, i));
  std::vector<Seen> datagrams;
  talk(look_at(datagrams));
  later(1ms, look_at(datagrams));
  EXPECT_EQ(datagrams, (std::vector<Seen>{{.messages = 1}, {.messages = 3, .ends = 1}}));
  ASSERT_EQ(p.host.sent.size(), 3U);
  EXPECT_EQ(p.status_of(0), Status::local_protection);
  EXPECT_EQ(p.status_of(1), Status::success);
  EXPECT_EQ(p.status_of(2), Status::success);
  ASSERT_EQ(q.received.size(), 2U) << "the receive that it held is the next message's";
  for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(q.received[i].bytes, pattern_bytes(64, i)) << i;
}

// spec/wdp-rd 6.5: those before it are delivered, it and all behind it come again.
TEST_F(RdBundleTest, ARefusalInTheMiddleIsThatOfItsMessage) {
  using Code = wire::WdpResponse::Code;
  stand();
  const auto record = [](Code code, uint32_t msn, uint8_t delay = 0) {
    return wire::WdpResponse{.qidx = 1, .ridx = 2, .code = code, .delay = delay, .msn = Msn{msn}};
  };
  q.post_receives(2);
  for (uint32_t i = 0; i < 5; ++i) p.send(kB, 2, pattern_bytes(64, i));
  std::vector<wire::WdpResponse> records;
  std::vector<size_t> counts;
  const auto watch = [&](bool from_a, const Buffer& d) {
    return count_messages(counts)(from_a, d) && listen_to(records)(from_a, d);
  };
  talk(watch);
  // Number 1 was stand()'s.
  EXPECT_EQ(records, (std::vector{record(Code::ack, 3), record(Code::rnr, 4, kRnrDelay)}));
  EXPECT_EQ(counts, std::vector<size_t>{5});
  EXPECT_EQ(q.received.size(), 2U);
  records.clear();
  counts.clear();
  q.post_receives(3);
  talk(watch);
  later(1ms, watch);
  ASSERT_FALSE(records.empty());
  records.front().msn = Msn{};  // READY is of no message
  // Those that come again have new numbers.
  EXPECT_EQ(records, (std::vector{record(Code::ready, 0), record(Code::ack, 9)}));
  EXPECT_EQ(counts, std::vector<size_t>{3});
  expect_received(5, 64);
}

TEST_F(RdBundleTest, OneWithAFaultIsNotLookedAt) {
  stand();
  send_many(2, 64);
  const auto said = a.said(now);
  ASSERT_EQ(said.size(), 1U);
  Buffer bad = said[0].bytes;
  bad[bad.size() - 64 - 48 + 28] ^= std::byte{1};  // DDP's version in the second message
  b.hear(bad, a.address, now);
  EXPECT_TRUE(q.received.empty());
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::ddp_version), 1U);
  // One that would be right for others: from a port, not a queue pair.
  bad = said[0].bytes;
  bad[bad.size() - 64 - 48 + 3] = std::byte{0};
  b.hear(bad, a.address, now);
  EXPECT_TRUE(q.received.empty());
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::index_mismatch), 1U);
  b.hear(said[0].bytes, a.address, now);
  later(1ms);
  expect_received(2, 64);
}

// spec/wdp-rd 6.7: the CRC is the bundle's, and covers the RDACK.
TEST_F(RdBundleTest, WithCrcs) {
  for (RdNode* n : {&a, &b}) {
    n->socket.channels().enable({.own_port = RdNode::kPort, .crc = true, .window = 1 << 20});
  }
  stand();
  p.post_receives(4);
  int bundles = 0;
  int acks = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    a.polls = b.polls = false;
    q.post_receives(1);
    p.send(kB, 2, pattern_bytes(64, i));
    talk();
    q.send(kA, 1, pattern_bytes(64, i));
    talk([&](bool from_a, const Buffer& d) {
      if (from_a || !is_bundle(d)) return true;
      ++bundles;
      if (has_ack(d)) ++acks;
      Buffer bad = d;
      bad[bad.size() - 1] ^= std::byte{1};
      if (i == 2) a.hear(bad, b.address, now);
      return true;
    });
  }
  EXPECT_EQ(bundles, 4);
  EXPECT_EQ(acks, 4);
  later(1ms);
  expect_received(4, 64);
  EXPECT_EQ(p.received.size(), 4U);
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::bad_crc), 0U);
  EXPECT_EQ(a.socket.channels().drops().of(WdpDrop::bad_crc), 1U);
}

TEST_F(RdBundleTest, TheProgramsAnswerBringsWhatBecameOfTheMessage) {
  stand();
  b.polls = false;
  p.post_receives(1);
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(64, 5));
  int said = 0;
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (from_a) return true;
    ++said;
    EXPECT_TRUE(has_message(d, Opcode::send));
    EXPECT_TRUE(has_message(d, Opcode::terminate)) << "RESP";
    EXPECT_TRUE(is_bundle(d) && has_ack(d));
    return true;
  };
  talk(watch);
  EXPECT_EQ(said, 0);
  EXPECT_TRUE(p.host.sent.empty());
  ASSERT_EQ(q.received.size(), 1U);
  q.send(kA, 1, pattern_bytes(64, 6));
  talk(watch);
  EXPECT_EQ(said, 1);
  expect_all(p, Status::success);
  ASSERT_EQ(p.received.size(), 1U);
  EXPECT_EQ(p.received[0].bytes, pattern_bytes(64, 6));
}

// No longer than an RDACK waits.
TEST_F(RdBundleTest, WithoutAnAnswerItIsSaidSoon) {
  stand();
  b.polls = false;
  q.post_receives(1);
  p.send(kB, 2, pattern_bytes(64, 5));
  talk();
  later(kAckDelay - 1us);
  EXPECT_TRUE(p.host.sent.empty());
  later(1us);
  expect_all(p, Status::success);
}

// Beside an RDACK that cannot wait it costs nothing.
TEST_F(RdBundleTest, AnRdackTakesItAlong) {
  stand();
  b.polls = false;
  q.post_receives(kAckEvery);
  for (uint32_t i = 0; i < kAckEvery; ++i) {
    p.send(kB, 2, pattern_bytes(64, i));
    for (const auto& d : a.said(now)) b.hear(d.bytes, a.address, now);
  }
  talk();
  expect_received(kAckEvery, 64);
}

// spec/wdp-rd 6.4: requests come again, the RDACK among them does not.
TEST_F(RdBundleTest, WhoTakesNoRequestsHearsTheRdackAmongThem) {
  stand();
  a.polls = b.polls = false;
  p.post_receives(1);
  q.post_receives(2);
  q.send(kA, 1, pattern_bytes(64, 9));
  talk();
  ASSERT_FALSE(of_b().sender().idle());
  for (uint32_t i = 0; i < kMostUnsaid; ++i) {
    of_b().out().respond(
        {.qidx = 9, .ridx = 2, .code = wire::WdpResponse::Code::length, .msn = Msn{i}});
  }
  for (uint32_t i = 0; i < 2; ++i) p.send(kB, 2, pattern_bytes(64, i));
  const auto said = a.said(now);
  ASSERT_EQ(said.size(), 1U);
  ASSERT_TRUE(is_bundle(said[0].bytes) && has_ack(said[0].bytes));
  b.hear(said[0].bytes, a.address, now);
  EXPECT_EQ(b.socket.channels().drops().of(WdpDrop::window_exceeded), 1U);
  EXPECT_TRUE(of_b().sender().idle());
  EXPECT_TRUE(q.received.empty());
  a.polls = b.polls = true;
  later(1s);
  expect_received(2, 64);
  expect_all(q, Status::success);
}

// spec/wdp-rd 6.4: else two ends that take no requests would wait for each other.
TEST_F(RdBundleTest, ManyAnswersShareNoDatagramWithRequests) {
  stand();
  p.post_receives(4);
  const auto ask = [&](uint32_t from) {
    for (uint32_t i = from; i < from + 2; ++i) q.send(kA, 1, pattern_bytes(64, i));
  };
  ask(0);
  (void)q.queue->ready(now);
  for (uint32_t i = 0; i < kMostResponses + 5; ++i) {
    of_b().out().respond(
        {.qidx = 9, .ridx = 2, .code = wire::WdpResponse::Code::length, .msn = Msn{i}});
  }
  std::vector<size_t> records;
  talk([&](bool from_a, const Buffer& d) {
    const auto messages = messages_in(d);
    if (from_a || !has_message(d, Opcode::terminate)) return true;
    for (const auto& m : messages) {
      if (m.header.opcode != Opcode::terminate) continue;
      records.push_back(m.payload.size() / wire::WdpResponse::kSize);
      EXPECT_TRUE(messages.size() == 1 || records.back() < kMostResponses);
    }
    return true;
  });
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.front(), kMostResponses);
  later(1ms);
  expect_all(q, Status::success);
  EXPECT_EQ(p.received.size(), 2U);
}

// Its queue pair goes in the middle of a message, and all that has come is acknowledged: the answer
// alone is left to say.
TEST_F(RdBundleTest, WhatAQueuePairSaysLastIsNotHeldBack) {
  stand();
  b.polls = false;
  int acks = 0;
  const auto watch = [&](bool from_a, const Buffer& d) {
    if (!from_a) ++acks;
    const auto messages = messages_in(d);
    return !from_a || messages.empty() || !messages.front().header.last;
  };
  p.write(kB, 2, pattern_bytes(7000, 6), q.rkey, address_of(q.board));
  talk(watch);
  ASSERT_EQ(acks, 1);
  q.queue.reset();
  talk(watch);
  ASSERT_EQ(acks, 1) << "it waits";
  b.socket.channels().flush();
  talk(watch);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.status_of(0), Status::remote_invalid_rd_request);
}

// spec/wdp-rd 4.1: a queue pair that goes, and a channel that ends, say what they have not said.
TEST_F(RdBundleTest, NothingIsLeftUnsaid) {
  stand();
  b.polls = false;
  q.post_receives(2);
  p.send(kB, 2, pattern_bytes(64, 0));
  talk();
  EXPECT_TRUE(p.host.sent.empty());
  b.socket.channels().flush();
  talk();
  EXPECT_EQ(p.host.sent.size(), 1U);
  p.send(kB, 2, pattern_bytes(64, 1));
  talk();
  EXPECT_EQ(p.host.sent.size(), 1U);
  of_b().close(now);
  talk();
  expect_received(2, 64);
}

}  // namespace
}  // namespace weft::wdp
