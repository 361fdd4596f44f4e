// UD at a port: rdma_cm's questions, queue pairs and groups (spec/wdp 4.8, spec/wdp-ud 3).

#include "tests/unit/wdp/wdp_socket_fixture.h"

namespace weft::wdp {
namespace {

// --- questions about UD queue pairs (CTL service 4)

TEST_F(PortTest, AUdQueuePairIsFoundByItsService) {
  a.port.ask(offer_of_a(), {.to = kB}, now);
  talk();
  ASSERT_EQ(b.requests.size(), 1U);
  EXPECT_EQ(b.requests[0].service, wire::CtlService::ud_resolution);
  EXPECT_EQ(b.requests[0].private_data, pattern_bytes(20, 1));
  EXPECT_FALSE(a.resolved);
  Offer o = offer_of_b();
  o.first_psn = Psn{0x11223344};
  EXPECT_TRUE(b.port.tell(b.requests[0].key, o, now));
  std::vector<CtlType> said;
  talk([&](bool, const Buffer& d) {
    said.push_back(parse(d).type);
    return true;
  });
  // "The REP ends it (no RTU, no session)".
  EXPECT_EQ(said, std::vector<CtlType>{CtlType::rep});
  ASSERT_TRUE(a.resolved.has_value());
  EXPECT_EQ(a.resolved->state, Handshake::State::established);
  EXPECT_EQ(a.resolved->qpn, o.own_qpn);
  EXPECT_EQ(a.resolved->q_key, QKey{0x11223344});
  EXPECT_TRUE(a.port.deadline().is_never());
}

TEST_F(PortTest, AQuestionIsNoCallAndACallNoQuestion) {
  b.hear(request(5, 77, [](WdpCtl& c) { c.service = wire::CtlService::ud_resolution; }), kA, now);
  b.hear(request(6, 78), kA, now);
  ASSERT_EQ(b.requests.size(), 2U);
  auto& p = b.add_peer();
  EXPECT_FALSE(b.port.accept(b.requests[0].key, p.connection, offer_of_b(), now));
  EXPECT_FALSE(b.port.tell(b.requests[1].key, offer_of_b(), now));
  EXPECT_TRUE(b.said(now).empty());
  EXPECT_TRUE(b.port.tell(b.requests[0].key, offer_of_b(), now));
  EXPECT_TRUE(b.port.accept(b.requests[1].key, p.connection, offer_of_b(), now));
  EXPECT_EQ(b.said(now).size(), 2U);
}

// What was answered is known for two seconds, and keeps nobody from asking; what its program has
// not answered does.
TEST_F(PortTest, AServiceAnswersAsManyAsAsk) {
  const auto ask = [](WdpCtl& c) { c.service = wire::CtlService::ud_resolution; };
  for (uint32_t i = 1; i <= 1500; ++i) {
    b.hear(request(i, i, ask), kA, now);
    ASSERT_EQ(b.requests.size(), i);
    ASSERT_TRUE(b.port.tell(b.requests.back().key, offer_of_b(), now));
    const auto said = b.said(now);
    ASSERT_EQ(said.size(), 1U);
    ASSERT_EQ(parse(said[0].bytes).type, CtlType::rep);
  }
  now = now + 2s;
  b.tick(now);
  EXPECT_TRUE(b.port.deadline().is_never());
  EXPECT_EQ(b.port.half_open(), 0U);
}

TEST_F(PortTest, ARepeatedQuestionGetsTheSameAnswerForTwoSeconds) {
  const Buffer req = request(5, 77, [](WdpCtl& c) { c.service = wire::CtlService::ud_resolution; });
  b.hear(req, kA, now);
  b.port.tell(b.requests[0].key, offer_of_b(), now);
  EXPECT_EQ(b.said(now).size(), 1U);
  for (const Duration d : {100ms, 1800ms}) {
    now = now + d;
    b.tick(now);
    EXPECT_TRUE(b.said(now).empty());
    b.hear(req, kA, now);
    const auto again = b.said(now);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(parse(again[0].bytes).type, CtlType::rep);
    EXPECT_EQ(b.requests.size(), 1U);
  }
  now = now + 100ms;
  EXPECT_EQ(b.port.deadline(), now);
  b.tick(now);
  b.hear(req, kA, now);
  EXPECT_EQ(b.requests.size(), 2U);
}

TEST_F(PortTest, AQuestionIsRepeatedAndGivenUp) {
  a.port.ask(offer_of_a(), {.to = kB}, now);
  size_t asked = 0;
  const Time begin = now;
  while (!a.resolved && !a.port.deadline().is_never()) {
    asked += a.said(now).size();
    now = a.port.deadline();
    a.tick(now);
  }
  EXPECT_EQ(asked, 7U);
  ASSERT_TRUE(a.resolved.has_value());
  EXPECT_EQ(a.resolved->state, Handshake::State::failed);
  EXPECT_EQ(now - begin, 12700ms);
}

// --- UD

struct UdTarget final : UdConsumer {
  work::Memory& memory() override { return host.memory(); }
  work::SendQueue& send_queue() override { return host.send_queue(); }
  const UdDestination& destination(const work::SendWqe&) override { return to; }
  bool take_receive(work::Receive& out) override { return host.take_receive(out); }
  void give_back(work::TakenReceive r) override { host.give_back(r); }
  void receive_done(const work::Receive&, work::Status, const UdArrival& a) override {
    arrived.push_back(a);
  }
  void send_done(const work::SendWqe&, work::Status) override {}
  void send_failed() override {}
  test::Host host;
  UdDestination to;
  std::vector<UdArrival> arrived;
};

Buffer ud_datagram(const wire::WdpUd& ud, const Buffer& payload) {
  Buffer b(wire::WdpUd::kSize + payload.size());
  ud.encode(b.data());
  std::copy(payload.begin(), payload.end(), b.begin() + wire::WdpUd::kSize);
  return b;
}

TEST_F(PortTest, UdIsFoundByItsFullQueuePairNumber) {
  UdTarget target;
  UdQueue queue(target, {.own_qpn = make_qpn(7471, 3), .q_key = QKey{0x1111}});
  b.port.demux().add(make_qpn(7471, 3), queue);
  target.host.post_receive(1, {test::segment(target.host, room)});
  const wire::WdpUd ud{.q_key = QKey{0x1111},
                       .source = make_qpn(50000, 2),
                       .destination = make_qpn(7471, 3),
                       .length = 3000};
  wire::WdpUd other = ud;
  other.destination = make_qpn(7472, 3);
  b.hear(ud_datagram(other, text), kA, now);
  EXPECT_EQ(b.port.drops().of(WdpDrop::no_such_qp), 1U);
  other.destination = wire::kMulticastQpn;
  b.hear(ud_datagram(other, text), kA, now);
  EXPECT_EQ(b.port.drops().of(WdpDrop::not_for_multicast), 1U);
  b.hear(ud_datagram(ud, text), kStranger, now);
  ASSERT_EQ(target.arrived.size(), 1U);
  EXPECT_EQ(target.arrived[0].from, kStranger);
  EXPECT_TRUE(b.said(now).empty());
  b.port.demux().remove(make_qpn(7471, 3));
  b.hear(ud_datagram(ud, text), kStranger, now);
  EXPECT_EQ(b.port.drops().of(WdpDrop::no_such_qp), 2U);
}

// spec/wdp-ud 5.2: Receivers deliver to all attached QPs with matching Q_Key; spec/threats 6:
// Multicast receivers accept only class 2.
TEST_F(PortTest, AGroupsDatagramsGoToAllThatAreAttached) {
  const Gid group = Gid::from_ipv4(0xef000001);
  UdTarget targets[3];
  std::list<UdQueue> queues;
  Buffer rooms[3] = {Buffer(4000), Buffer(4000), Buffer(4000)};
  for (size_t i = 0; i < 3; ++i) {
    queues.emplace_back(targets[i], UdParameters{.own_qpn = make_qpn(7471, 1 + i),
                                                 .q_key = QKey{i == 2 ? 0x2222U : 0x1111U}});
    b.port.demux().attach(group, queues.back());
    targets[i].host.post_receive(1, {test::segment(targets[i].host, rooms[i])});
  }
  const auto arrived = [&](size_t i) { return targets[i].arrived.size(); };
  wire::WdpUd ud{.q_key = QKey{0x1111},
                 .source = make_qpn(50000, 2),
                 .destination = wire::kMulticastQpn,
                 .length = 3000};
  const UdReception how{.from = kA, .to = group};
  b.port.received_by_group(ud_datagram(ud, text), how);
  EXPECT_EQ(arrived(0) + 10 * arrived(1) + 100 * arrived(2), 11U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(std::equal(text.begin(), text.end(), rooms[i].begin() + 40));
  }
  // Another group, another class, another queue pair number.
  b.port.received_by_group(ud_datagram(ud, text), {.from = kA, .to = Gid::from_ipv4(0xef000002)});
  b.port.received_by_group(request(5, 77), how);
  ud.destination = make_qpn(7471, 1);
  b.port.received_by_group(ud_datagram(ud, text), how);
  EXPECT_EQ(arrived(0) + arrived(1), 2U);
  EXPECT_EQ(b.port.drops().of(WdpDrop::wrong_class), 1U);
  EXPECT_EQ(b.port.drops().of(WdpDrop::not_for_multicast), 1U);
  EXPECT_TRUE(b.requests.empty());
  // Detached it hears nothing.
  ud.destination = wire::kMulticastQpn;
  for (auto& t : targets) t.host.post_receive(2, {test::segment(t.host, room)});
  b.port.demux().detach(group, queues.front());
  b.port.received_by_group(ud_datagram(ud, text), how);
  EXPECT_EQ(arrived(0) + 10 * arrived(1), 21U);
}

}  // namespace
}  // namespace weft::wdp
