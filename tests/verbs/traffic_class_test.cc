// The traffic class that an address vector, an address handle or rdma_set_option(3) names is in
// each packet: those of UC as a bare socket sees them, those of UD in the GRH.

#include <gtest/gtest.h>

#include "tests/abi/cm_datagram_fixture.h"
#include "tests/verbs/raw_datagrams.h"

namespace weft::test {
namespace {

// With ECN's bits (RFC 3168): ECT(0), and ECT(1) or none for others.
constexpr uint8_t kClass = 0x6a;
constexpr uint8_t kClasses[] = {0x68, 0x69, kClass};
constexpr QpOptions kUc{.type = IBV_QPT_UC};
constexpr QpOptions kUd{.type = IBV_QPT_UD};

struct Side {
  explicit Side(const QpOptions& o) : mr(a.reg(memory.data(), memory.size())), cq(a.cq(16)) {
    qp = make_qp(a, cq.get(), o);
  }
  void send(ibv_ah* ah = nullptr, uint32_t qpn = 0) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (ah != nullptr) wr.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = kQKey};
    check_errno(post_send(qp.get(), wr, {sge(memory.data(), 100, mr.get())}), "post_send");
  }
  Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(4096);
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

ibv_ah_attr vector_to(const ibv_gid& gid, uint8_t tclass) {
  ibv_ah_attr v{};
  v.is_global = 1;
  v.port_num = 1;
  v.grh.dgid = gid;
  v.grh.traffic_class = tclass;
  return v;
}

void bring_up(ibv_qp* qp, const RawDatagrams& peer, const ibv_gid& gid, uint8_t tclass) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer.qpn().value();
  attr.ah_attr = vector_to(gid, tclass);
  check_errno(
      ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
      "RTR");
  to_rts(qp, kUc);
}

TEST(TrafficClass, of_uc_is_the_address_vectors_where_it_calls) {
  for (const uint8_t tclass : kClasses) {
    Side side(kUc);
    const ibv_gid gid = own_gid(side.a);
    RawDatagrams peer(gid, RawDatagrams::kHigh);
    bring_up(side.qp.get(), peer, gid, tclass);
    EXPECT_EQ(peer.accept().traffic_class, tclass);
    EXPECT_EQ(peer.hear(wire::CtlType::rtu).traffic_class, tclass);
    side.send();
    EXPECT_EQ(peer.hear(wire::Opcode::send).traffic_class, tclass);
  }
}

TEST(TrafficClass, of_uc_is_the_address_vectors_where_it_is_called) {
  for (const uint8_t tclass : kClasses) {
    Side side(kUc);
    const ibv_gid gid = own_gid(side.a);
    RawDatagrams peer(gid, RawDatagrams::kLow);
    bring_up(side.qp.get(), peer, gid, tclass);
    const Qpn number{side.qp->qp_num};
    peer.call(gid, port_of(number), number);
    EXPECT_EQ(peer.answered().traffic_class, tclass);
    side.send();
    EXPECT_EQ(peer.hear(wire::Opcode::send).traffic_class, tclass);
  }
}

// Whether the way is one of IPv4 or of IPv6 (ipv6_test.cc): ibv_grh has the class in these bits.
TEST(TrafficClass, of_ud_is_the_address_handles) {
  const char* const ud = std::getenv("WEFT_UD");
  if (ud != nullptr && std::string_view{ud} == "reliable") {
    GTEST_SKIP() << "a channel has one traffic class, that of its first message";
  }
  Side a(kUd);
  Side b(kUd);
  for (const Side* s : {&a, &b}) {
    to_rtr(s->qp.get(), 0, {});
    to_rts(s->qp.get());
  }
  for (const uint8_t tclass : {uint8_t{0}, kClass, uint8_t{0xfd}}) {
    ibv_ah_attr to = vector_to(own_gid(b.a), tclass);
    ibv_ah* ah = ibv_create_ah(a.a.pd.get(), &to);
    ASSERT_NE(ah, nullptr);
    ASSERT_EQ(post_recv(b.qp.get(), 1, {sge(b.memory.data(), 1000, b.mr.get())}), 0);
    a.send(ah, b.qp->qp_num);
    ASSERT_EQ(collect(b.cq.get(), 1).size(), 1U);
    ibv_grh grh;
    std::memcpy(&grh, b.memory.data(), sizeof grh);
    EXPECT_EQ(ntohl(grh.version_tclass_flow) >> 20 & 0xff, tclass);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
  }
}

class CmTrafficClass : public CmTest {
 protected:
  static void set_class(const OwnedId& id, uint8_t tos) {
    ASSERT_OK(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos));
  }
  static void send(const OwnedId& id) {
    std::vector<uint8_t> data(40);
    ASSERT_OK(rdma_post_send(id.get(), nullptr, data.data(), data.size(), nullptr,
                             IBV_SEND_INLINE | IBV_SEND_SIGNALED));
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_send_comp(id.get(), &wc), 1);
  }
  RawDatagrams peer{loopback_gid()};
};

TEST_F(CmTrafficClass, OfTheSideThatConnects) {
  client = resolved(active.get(), peer.port());
  set_class(client, kClass);
  ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(client.get(), &p));
  EXPECT_EQ(peer.accept().traffic_class, kClass);
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  send(client);
  EXPECT_EQ(peer.hear(wire::Opcode::send).traffic_class, kClass);
}

// A request has its listener's, unless the program gives it one of its own.
TEST_F(CmTrafficClass, OfTheSideThatAccepts) {
  for (const bool own : {false, true}) {
    listener = make_id(passive.get());
    sockaddr_in at = loopback();
    ASSERT_OK(rdma_bind_addr(listener.get(), any_of(at)));
    set_class(listener, 0x21);
    ASSERT_OK(rdma_listen(listener.get(), 0));
    RawDatagrams caller{loopback_gid()};
    caller.call(loopback_gid(), port_of(listener));
    const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
    if (own) set_class(server, kClass);
    ASSERT_OK(create_qp(server.get(), IBV_QPT_UC));
    rdma_conn_param p = parameters();
    ASSERT_OK(rdma_accept(server.get(), &p));
    const uint8_t expected = own ? kClass : 0x21;
    EXPECT_EQ(caller.answered().traffic_class, expected);
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    send(server);
    EXPECT_EQ(caller.hear(wire::Opcode::send).traffic_class, expected);
  }
}

}  // namespace
}  // namespace weft::test
