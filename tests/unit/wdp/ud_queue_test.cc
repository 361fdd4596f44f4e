// UD queue pairs (spec/wdp-ud 3.1): a message, a datagram, a receive.

#include "wdp/ud_queue.h"

#include <gtest/gtest.h>

#include "tests/support/append.h"
#include "tests/support/fault_catcher.h"
#include "tests/support/host.h"
#include "tests/support/unmapped.h"
#include "wire/grh.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using wire::Grh;
using wire::WdpDrop;
using wire::WdpUd;
using work::Operation;
using work::SendWqe;
using work::Status;

struct UdHost final : UdConsumer {
  work::Memory& memory() override { return host.memory(); }
  work::SendQueue& send_queue() override { return host.send_queue(); }
  // As an address handle: the low bits of remote_to say where.
  const UdDestination& destination(const SendWqe& w) override {
    const auto n = static_cast<uint32_t>(w.remote_to.value());
    to = {.path = {.to = {Gid::from_ipv4(0x0a000000 + n), 40000}},
          .qpn = make_qpn(40000, 5),
          .q_key = q_key,
          .room = room};
    return to;
  }
  bool take_receive(work::Receive& out) override { return host.take_receive(out); }
  void give_back(work::TakenReceive r) override { host.give_back(r); }
  void receive_done(const work::Receive& r, Status s, const UdArrival& a) override {
    received.push_back({r.wr_id, s, a});
  }
  void send_done(const SendWqe& w, Status s) override { host.send_done(w, s); }
  void send_failed() override { ++failures; }

  struct Received {
    uint64_t wr_id;
    Status status;
    UdArrival arrival;
  };
  test::Host host;
  UdDestination to;
  QKey q_key{0x22};
  size_t room = 1472;
  std::vector<Received> received;
  int failures = 0;
};

struct UdQueueTest : ::testing::Test {
  void configure(UdParameters p) {
    p.own_qpn = make_qpn(50000, 7);
    p.q_key = QKey{0x11};
    host = std::make_unique<UdHost>();
    queue = std::make_unique<UdQueue>(*host, p);
  }
  UdQueueTest() { configure({}); }

  // --- sending
  SendWqe& post(Buffer& memory, uint32_t to = 2, SendWqe w = {.operation = Operation::send}) {
    w.wr_id = ++posted;
    w.signaled = true;
    w.remote_to = TaggedOffset{to};
    return host->host.post(w, {test::segment(host->host, memory)});
  }
  std::vector<Buffer> train() {
    std::vector<Buffer> all;
    Train t;
    queue->fill(t, {});
    path = t.path();
    t.each_datagram([&](std::span<const IoVec> pieces) {
      Buffer& d = all.emplace_back();
      test::append(d, pieces);
    });
    return all;
  }

  // --- receiving
  static Buffer datagram(WdpUd ud, const Buffer& payload) {
    ud.length = static_cast<uint16_t>(payload.size());
    Buffer b(WdpUd::kSize + payload.size());
    ud.encode(b.data());
    std::copy(payload.begin(), payload.end(), b.begin() + WdpUd::kSize);
    if (ud.flags.crc) wire::seal_wdp(b);
    return b;
  }
  void give(const WdpUd& ud, const Buffer& payload) { give(datagram(ud, payload)); }
  void give(const Buffer& d) { queue->received(*WdpUd::parse(d), d, how); }
  WdpUd to_us() const {
    return {.q_key = QKey{0x11}, .source = make_qpn(40000, 5), .destination = make_qpn(50000, 7)};
  }
  void post_receive(uint64_t id, Buffer& memory) {
    host->host.post_receive(id, {test::segment(host->host, memory)});
  }
  uint64_t drops(WdpDrop why) const { return queue->counters().drops.of(why); }

  std::unique_ptr<UdHost> host;
  std::unique_ptr<UdQueue> queue;
  uint64_t posted = 0;
  Path path;
  UdReception how{.from = {Gid::from_ipv4(0x0a000002), 41234},
                  .to = Gid::from_ipv4(0x0a000001),
                  .traffic_class = 0x68,
                  .hop_limit = 61};
  Buffer hello = pattern_bytes(100, 1);
  Buffer room = pattern_bytes(200, 2);
};

// spec/wdp-ud 3.2: first 40 bytes GRH, then payload; WC.byte_len includes 40.
TEST_F(UdQueueTest, AMessageTakesAReceiveWithItsGrh) {
  post_receive(9, room);
  WdpUd ud = to_us();
  ud.flags.immediate = true;
  ud.imm = 0xcafef00d;
  ud.solicited = true;
  give(ud, hello);
  ASSERT_EQ(host->received.size(), 1U);
  const auto& r = host->received[0];
  EXPECT_EQ(r.wr_id, 9U);
  EXPECT_EQ(r.status, Status::success);
  EXPECT_EQ(r.arrival.length, 140U);
  EXPECT_TRUE(r.arrival.has_immediate && r.arrival.solicited);
  EXPECT_EQ(r.arrival.immediate, 0xcafef00d);
  EXPECT_FALSE(r.arrival.multicast);
  EXPECT_EQ(r.arrival.source, make_qpn(40000, 5));
  EXPECT_EQ(r.arrival.from, how.from);  // the port that was seen, not that of the QPN
  const Grh grh = Grh::parse(room.data());
  EXPECT_EQ(grh, (Grh{.traffic_class = 0x68,
                      .payload_length = 100,
                      .hop_limit = 61,
                      .source = how.from.address,
                      .destination = how.to}));
  EXPECT_EQ(std::to_integer<int>(room[0]) >> 4, 6);
  EXPECT_EQ(std::to_integer<int>(room[6]), 0x1b);
  EXPECT_TRUE(std::equal(hello.begin(), hello.end(), room.begin() + 40));
  const Buffer rest = pattern_bytes(200, 2);
  EXPECT_TRUE(std::equal(rest.begin() + 140, rest.end(), room.begin() + 140));
}

TEST_F(UdQueueTest, TheGrhMayLieInAPieceOfItsOwn) {
  Buffer head(40);
  Buffer body(50);
  Buffer tail(50);
  host->host.post_receive(1, {test::segment(host->host, head), test::segment(host->host, body),
                              test::segment(host->host, tail)});
  give(to_us(), hello);
  ASSERT_EQ(host->received.size(), 1U);
  EXPECT_EQ(Grh::parse(head.data()).payload_length, 100);
  EXPECT_TRUE(std::equal(body.begin(), body.end(), hello.begin()));
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), hello.begin() + 50));
}

TEST_F(UdQueueTest, TheGrhMayLieInSeveralPieces) {
  Buffer first(7);
  Buffer second(33 + 20);  // the rest of it, and the beginning of the data
  Buffer third(100);
  host->host.post_receive(1, {test::segment(host->host, first), test::segment(host->host, second),
                              test::segment(host->host, third)});
  give(to_us(), hello);
  ASSERT_EQ(host->received.size(), 1U);
  Buffer all = first;
  all.insert(all.end(), second.begin(), second.end());
  all.insert(all.end(), third.begin(), third.end());
  EXPECT_EQ(Grh::parse(all.data()), (Grh{.traffic_class = how.traffic_class,
                                         .payload_length = 100,
                                         .hop_limit = how.hop_limit,
                                         .source = how.from.address,
                                         .destination = how.to}));
  EXPECT_TRUE(std::equal(hello.begin(), hello.end(), all.begin() + 40));
  EXPECT_TRUE(
      std::all_of(third.begin() + 80, third.end(), [](std::byte b) { return b == std::byte{}; }));
}

// "Too long for WQE: .. drop silently, counter. No WQE: drop. Q_Key mismatch: drop + violation
// counter."
TEST_F(UdQueueTest, WhatCannotBeTakenIsDroppedAndCounted) {
  give(to_us(), hello);
  EXPECT_EQ(drops(WdpDrop::no_receive), 1U);
  Buffer small(139);
  post_receive(1, small);
  give(to_us(), hello);
  EXPECT_EQ(drops(WdpDrop::receive_too_small), 1U);
  WdpUd other = to_us();
  other.q_key = QKey{0x12};
  give(other, Buffer(5));
  EXPECT_EQ(drops(WdpDrop::wrong_q_key), 1U);
  EXPECT_TRUE(host->received.empty());
  EXPECT_EQ(small, Buffer(139));
  // The receive is there for the next one.
  give(to_us(), Buffer(99));
  ASSERT_EQ(host->received.size(), 1U);
  EXPECT_EQ(host->received[0].wr_id, 1U);
  EXPECT_EQ(queue->counters().messages_received, 1U);
}

TEST_F(UdQueueTest, AReceiveThatIsTooSmallGoesBackInFrontOfTheOthers) {
  Buffer small(50);
  post_receive(4, small);
  post_receive(5, room);
  give(to_us(), hello);
  ASSERT_EQ(host->host.receives.size(), 2U);
  EXPECT_EQ(host->host.receives.front().wr_id, 4U);
}

TEST_F(UdQueueTest, ACrcIsCheckedWhereThereIsOne) {
  post_receive(1, room);
  WdpUd ud = to_us();
  ud.flags.crc = true;
  Buffer d = datagram(ud, hello);
  d[70] ^= std::byte{4};
  give(d);
  EXPECT_EQ(drops(WdpDrop::bad_crc), 1U);
  EXPECT_EQ(room, pattern_bytes(200, 2));
  d[70] ^= std::byte{4};
  give(d);
  EXPECT_EQ(host->received.size(), 1U);
}

TEST_F(UdQueueTest, AGroupsMessageComesBackToItsSender) {
  post_receive(1, room);
  WdpUd ud = to_us();
  ud.destination = wire::kMulticastQpn;
  ud.source = make_qpn(50000, 7);
  how.from_own_address = true;
  give(ud, hello);
  EXPECT_EQ(host->received.size(), 1U);
}

// spec/wdp-ud 3.1, of one that was made with IBV_QP_CREATE_BLOCK_SELF_MCAST_LB.
TEST_F(UdQueueTest, WhereItIsBlockedAGroupsMessageDoesNotComeBack) {
  configure({.blocks_own_multicast = true});
  post_receive(1, room);
  WdpUd ud = to_us();
  ud.destination = wire::kMulticastQpn;
  ud.source = make_qpn(50000, 7);
  how.from_own_address = true;
  give(ud, hello);
  EXPECT_EQ(drops(WdpDrop::own_multicast), 1U);
  // Another queue pair of the host's, and the same QPN on another host, are others.
  how.from_own_address = false;
  give(ud, hello);
  ASSERT_EQ(host->received.size(), 1U);
  EXPECT_TRUE(host->received[0].arrival.multicast);
}

// That it came to a group is said also where it failed: its socket does not wait for receives.
TEST_F(UdQueueTest, OwnMemoryThatIsGoneFailsTheReceive) {
  post_receive(1, room);
  host->host.regions.clear();
  WdpUd ud = to_us();
  ud.destination = wire::kMulticastQpn;
  give(ud, hello);
  ASSERT_EQ(host->received.size(), 1U);
  EXPECT_EQ(host->received[0].status, Status::local_protection);
  EXPECT_TRUE(host->received[0].arrival.multicast);
  EXPECT_EQ(drops(WdpDrop::own_memory), 1U);
}

// --- sending

TEST_F(UdQueueTest, ADatagramSaysWhoseItIs) {
  post(hello, 2,
       {.operation = Operation::send_immediate, .solicited = true, .immediate = 0x01020304});
  const auto d = train();
  ASSERT_EQ(d.size(), 1U);
  const auto ud = WdpUd::parse(d[0]);
  ASSERT_TRUE(ud.ok());
  EXPECT_EQ(ud->q_key, QKey{0x22});
  EXPECT_EQ(ud->source, make_qpn(50000, 7));
  EXPECT_EQ(ud->destination, make_qpn(40000, 5));
  EXPECT_TRUE(ud->solicited && ud->flags.immediate);
  EXPECT_EQ(ud->imm, 0x01020304U);
  EXPECT_EQ(path.to.address, Gid::from_ipv4(0x0a000002));
  EXPECT_TRUE(std::equal(hello.begin(), hello.end(), d[0].begin() + WdpUd::kSize));
  EXPECT_TRUE(host->host.sent.empty());
  queue->llp_took_all({});
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::success);
  EXPECT_TRUE(queue->idle());
}

// "High bit of a posted remote_qkey => use QP's own Q_Key (verbs rule)."
TEST_F(UdQueueTest, TheHighBitMeansTheOwnQKey) {
  host->q_key = QKey{0x80000000};
  post(hello);
  EXPECT_EQ(WdpUd::parse(train().at(0))->q_key, QKey{0x11});
}

TEST_F(UdQueueTest, WhatGoesOneWayAndIsOfASizeSharesATrain) {
  for (const uint32_t to : {2, 2, 2, 3, 3}) post(hello, to);
  EXPECT_EQ(train().size(), 3U);
  queue->llp_took_all({});
  EXPECT_EQ(train().size(), 2U);
  EXPECT_EQ(path.to.address, Gid::from_ipv4(0x0a000003));
  queue->llp_took_all({});
  EXPECT_EQ(host->host.sent.size(), 5U);
}

TEST_F(UdQueueTest, WithACrcLargeAndSmallBearIt) {
  configure({.crc = true});
  host->room = 65507;
  Buffer large = pattern_bytes(60'000, 3);
  post(large);
  post(hello);
  for (int i = 0; i < 2; ++i) {
    const auto d = train();
    ASSERT_EQ(d.size(), i == 0 ? 2U : 0U);
    for (const Buffer& b : d) EXPECT_TRUE(wire::wdp_crc_matches(b));
    if (i == 0) {
      EXPECT_TRUE(std::equal(large.begin(), large.end(), d[0].begin() + 32));
    }
    queue->llp_took_all({});
  }
}

TEST_F(UdQueueTest, ARequestAtFaultFailsBehindThoseBeforeItAndOnce) {
  post(hello);
  Buffer large(1441);  // 1440 is the most
  post(large);
  EXPECT_EQ(train().size(), 1U);
  EXPECT_EQ(host->failures, 0);
  queue->llp_took_all({});
  EXPECT_EQ(host->failures, 1);
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.send_queue().at(1).status, Status::local_length);
  EXPECT_FALSE(queue->ready({}));
  queue->llp_took_all({});
  EXPECT_EQ(host->failures, 1);
}

// Each address handle has its own: IPv6 takes 20 bytes more of a packet.
TEST_F(UdQueueTest, TheRoomIsThatOfTheWay) {
  Buffer longest(1420);
  Buffer longer(1421);
  host->room = 1452;
  post(longest);
  post(longer);
  EXPECT_EQ(train().size(), 1U);
  queue->llp_took_all({});
  EXPECT_EQ(host->host.send_queue().at(1).status, Status::local_length);
}

TEST_F(UdQueueTest, EachFaultHasItsStatus) {
  const auto status_of = [&](uint32_t to, SendWqe w, bool bad_key) {
    configure({});
    SendWqe& p = post(hello, to, w);
    if (bad_key) p.segment()[0].lkey = Stag{0xdead};
    EXPECT_TRUE(train().empty());
    EXPECT_EQ(host->failures, 1);
    return p.status;
  };
  EXPECT_EQ(status_of(2, {.operation = Operation::write}, false), Status::local_qp_operation);
  EXPECT_EQ(status_of(2, {.operation = Operation::send}, true), Status::local_protection);
}

// InfiniBand's SQE, and RTS after it.
TEST_F(UdQueueTest, AfterAFaultNothingIsSentUntilItIsResumed) {
  Buffer large(1472);
  post(large);
  EXPECT_TRUE(train().empty());
  post(hello);
  EXPECT_FALSE(queue->ready({}));
  host->host.flush();
  queue->resume(0);
  EXPECT_FALSE(queue->ready({}));
  post(hello);
  EXPECT_EQ(train().size(), 1U);
  queue->llp_took_all({});
  ASSERT_EQ(host->host.sent.size(), 3U);
  EXPECT_EQ(host->host.sent[2].status, Status::success);
  // And it can fail again.
  post(large);
  EXPECT_TRUE(train().empty());
  EXPECT_EQ(host->failures, 2);
}

TEST_F(UdQueueTest, HeldRequestsWait) {
  queue->hold(true);
  post(hello);
  EXPECT_FALSE(queue->ready({}));
  EXPECT_TRUE(train().empty());
  queue->hold(false);
  EXPECT_EQ(train().size(), 1U);
}

TEST_F(UdQueueTest, TheKernelMissesMemory) {
  post(hello);
  train();
  queue->llp_took_all({});
  post(hello);
  train();
  queue->own_memory_lost({});
  EXPECT_EQ(host->failures, 1);
  EXPECT_EQ(host->host.send_queue().at(1).status, Status::local_protection);
}

TEST_F(UdQueueTest, TheMessageWhoseMemoryTheKernelMissesIsTheOneAtFault) {
  const test::FaultCatcher faults;
  test::Unmapped unmapped;
  const auto address = reinterpret_cast<uintptr_t>(unmapped.begin());
  const Stag gone{0x77};
  host->host.regions[gone] = {unmapped.begin(), address, hello.size(), 15};
  post(hello);
  host->host.post({.wr_id = ++posted,
                   .operation = Operation::send,
                   .signaled = true,
                   .remote_to = TaggedOffset{2}},
                  {{address, static_cast<uint32_t>(hello.size()), gone}});
  post(hello);
  EXPECT_EQ(train().size(), 3U);
  unmapped.go();
  queue->own_memory_lost({});
  EXPECT_EQ(host->failures, 1);
  ASSERT_EQ(host->host.sent.size(), 1U);
  EXPECT_EQ(host->host.sent[0].status, Status::success);
  EXPECT_EQ(host->host.send_queue().at(1).status, Status::local_protection);
  EXPECT_EQ(host->host.send_queue().at(2).status, Status::success) << "not looked at";
}

}  // namespace
}  // namespace weft::wdp
