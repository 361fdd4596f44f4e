// Multicast groups by rdma_cm, on one host.
#include "tests/abi/cm_child.h"
#include "tests/abi/cm_datagram_fixture.h"

namespace weft::test {
namespace {

// Every run its own, so that two at once do not hear each other.
sockaddr_in group() {
  static const uint32_t own = static_cast<uint32_t>(getpid()) & 0xffff;
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(0xefc10000 | own);
  return a;
}

class CmMulticast : public CmTest {
 protected:
  // Bound to an address of this host, with a UD queue pair.
  OwnedId member(rdma_event_channel* on) {
    OwnedId id = make_id(on, RDMA_PS_UDP);
    sockaddr_in at = loopback();
    EXPECT_OK(rdma_bind_addr(id.get(), any_of(at)));
    EXPECT_OK(create_qp(id.get(), IBV_QPT_UD, 64));
    return id;
  }
  static OwnedEvent join(rdma_cm_id* id, void* context = nullptr) {
    sockaddr_in g = group();
    EXPECT_OK(rdma_join_multicast(id, any_of(g), context));
    return expect_event(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
  }
  static void leave(rdma_cm_id* id) {
    sockaddr_in g = group();
    EXPECT_OK(rdma_leave_multicast(id, any_of(g)));
  }
};

TEST_F(CmMulticast, TheEventSaysWhereToSend) {
  const OwnedId id = member(active.get());
  int context = 0;
  const OwnedEvent e = join(id.get(), &context);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->id, id.get());
  EXPECT_EQ(e->status, 0);
  EXPECT_EQ(e->param.ud.private_data, &context);
  EXPECT_EQ(e->param.ud.qp_num, 0xffffffU);
  EXPECT_EQ(e->param.ud.qkey, static_cast<uint32_t>(RDMA_UDP_QKEY));
  EXPECT_EQ(e->param.ud.ah_attr.is_global, 1);
  const sockaddr_in g = group();
  EXPECT_EQ(std::memcmp(&e->param.ud.ah_attr.grh.dgid.raw[12], &g.sin_addr, 4), 0);
}

TEST_F(CmMulticast, ThreeReceiversHearItUntilTheyLeave) {
  std::vector<OwnedId> receivers;
  std::vector<std::unique_ptr<Mailbox>> mail;
  for (int i = 0; i < 3; ++i) {
    receivers.push_back(member(passive.get()));
    ASSERT_NE(join(receivers.back().get()), nullptr);
    mail.push_back(std::make_unique<Mailbox>(receivers.back().get(), 8));
  }
  client = member(active.get());
  const OwnedEvent joined = join(client.get());
  ASSERT_NE(joined, nullptr);
  ibv_ah_attr to = joined->param.ud.ah_attr;
  const OwnedAh ah{ibv_create_ah(client->pd, &to)};
  ASSERT_NE(ah, nullptr) << strerror(errno);
  Mailbox own{client.get(), 8};
  const auto send = [&](const std::vector<uint8_t>& data) {
    own.send(ah.get(), joined->param.ud.qp_num, joined->param.ud.qkey, data);
  };
  for (unsigned i = 0; i < 4; ++i) {
    send(bytes(500, i));
    for (const auto& m : mail) {
      ibv_wc wc{};
      ibv_grh grh{};
      EXPECT_EQ(m->receive(wc, grh), bytes(500, i));
      EXPECT_EQ(wc.src_qp, client->qp->qp_num);
    }
  }
  leave(receivers[1].get());
  send(bytes(600, 9));
  EXPECT_EQ(mail[0]->receive(), bytes(600, 9));
  EXPECT_EQ(mail[2]->receive(), bytes(600, 9));
  EXPECT_TRUE(mail[1]->empty());
  // spec/wdp-ud 5.2: the sender is a member as well.
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(own.receive(), bytes(500, i));
  EXPECT_EQ(own.receive(), bytes(600, 9));
  // With another key nobody hears it.
  own.send(ah.get(), joined->param.ud.qp_num, 0x1111, bytes(100, 1));
  send(bytes(700, 10));
  EXPECT_EQ(mail[0]->receive(), bytes(700, 10));
  EXPECT_ERRNO(EADDRNOTAVAIL, [&] {
    sockaddr_in g = group();
    return rdma_leave_multicast(receivers[1].get(), any_of(g));
  }());
}

TEST_F(CmMulticast, OtherProcessesOfTheHostHearIt) {
  const auto receiver = [this](int ready) {
    active.reset(rdma_create_event_channel());
    const OwnedId id = member(active.get());
    if (join(id.get()) == nullptr) _exit(2);
    Mailbox mail{id.get(), 8};
    tell(ready);
    if (mail.receive() != bytes(900, 5)) _exit(3);
    tell(ready);
    pause();
  };
  (void)group();
  const Child one{receiver};
  const Child two{receiver};
  one.await();
  two.await();
  client = member(active.get());
  const OwnedEvent joined = join(client.get());
  ASSERT_NE(joined, nullptr);
  ibv_ah_attr to = joined->param.ud.ah_attr;
  const OwnedAh ah{ibv_create_ah(client->pd, &to)};
  Mailbox own{client.get(), 1};
  own.send(ah.get(), joined->param.ud.qp_num, joined->param.ud.qkey, bytes(900, 5));
  one.await();
  two.await();
}

TEST_F(CmMulticast, WhoOnlySendsHearsNothing) {
  const OwnedId deaf = member(passive.get());
  sockaddr_in g = group();
  rdma_cm_join_mc_attr_ex how{
      .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
      .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
      .addr = any_of(g)};
  ASSERT_OK(rdma_join_multicast_ex(deaf.get(), &how, nullptr));
  ASSERT_NE(expect_event(passive.get(), RDMA_CM_EVENT_MULTICAST_JOIN), nullptr);
  const OwnedId hearing = member(passive.get());
  ASSERT_NE(join(hearing.get()), nullptr);
  client = member(active.get());
  const OwnedEvent joined = join(client.get());
  ibv_ah_attr to = joined->param.ud.ah_attr;
  const OwnedAh ah{ibv_create_ah(client->pd, &to)};
  Mailbox silent{deaf.get(), 1};
  Mailbox heard{hearing.get(), 1};
  Mailbox own{client.get(), 1};
  own.send(ah.get(), 0xffffff, RDMA_UDP_QKEY, bytes(300, 2));
  EXPECT_EQ(heard.receive(), bytes(300, 2));
  EXPECT_TRUE(silent.empty());
  leave(deaf.get());
}

// The verbs by themselves, as programs do that know the group from elsewhere.
TEST_F(CmMulticast, AQueuePairIsAttachedWithoutAnId) {
  const OwnedId a = member(active.get());
  ibv_gid gid{};
  EXPECT_EQ(ibv_attach_mcast(a->qp, &gid, 0), EINVAL);
  gid.raw[10] = gid.raw[11] = 0xff;
  const sockaddr_in g = group();
  std::memcpy(&gid.raw[12], &g.sin_addr, 4);
  EXPECT_EQ(ibv_detach_mcast(a->qp, &gid, 0), EINVAL);
  EXPECT_EQ(ibv_attach_mcast(a->qp, &gid, 0), 0);
  EXPECT_EQ(ibv_attach_mcast(a->qp, &gid, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(a->qp, &gid, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(a->qp, &gid, 0), EINVAL);
  const OwnedId rc = resolved(active.get(), 9);
  ASSERT_OK(create_qp(rc.get()));
  EXPECT_EQ(ibv_attach_mcast(rc->qp, &gid, 0), EINVAL);
}

TEST_F(CmMulticast, WhatIsNoGroupIsRefused) {
  const OwnedId id = member(active.get());
  sockaddr_in host = loopback();
  EXPECT_ERRNO(EINVAL, rdma_join_multicast(id.get(), any_of(host), nullptr));
  EXPECT_ERRNO(EINVAL, rdma_join_multicast(id.get(), nullptr, nullptr));
  sockaddr_in6 other{};
  other.sin6_family = AF_INET6;
  other.sin6_addr.s6_addr[0] = 0xff;
  other.sin6_addr.s6_addr[1] = 0x0e;
  EXPECT_ERRNO(EINVAL, rdma_join_multicast(id.get(), any_of(other), nullptr));
  const OwnedId nowhere = make_id(active.get(), RDMA_PS_UDP);
  sockaddr_in g = group();
  EXPECT_ERRNO(EINVAL, rdma_join_multicast(nowhere.get(), any_of(g), nullptr));
  EXPECT_ERRNO(EADDRNOTAVAIL, rdma_leave_multicast(id.get(), any_of(g)));
}

// The Id has left it all the same.
TEST_F(CmMulticast, AGroupIsLeftWhateverBecameOfTheQueuePair) {
  const OwnedId id = member(active.get());
  ASSERT_NE(join(id.get()), nullptr);
  ASSERT_NE(join(id.get()), nullptr) << "twice";
  leave(id.get());
  leave(id.get());
  sockaddr_in g = group();
  EXPECT_ERRNO(EADDRNOTAVAIL, rdma_leave_multicast(id.get(), any_of(g)));
  ASSERT_NE(join(id.get()), nullptr);
  rdma_destroy_qp(id.get());
  ASSERT_OK(create_qp(id.get(), IBV_QPT_UD, 64));
  leave(id.get());
}

TEST_F(CmMulticast, NewsOfAGroupThatWasLeftDoesNotCome) {
  const OwnedId id = member(active.get());
  sockaddr_in g = group();
  ASSERT_OK(rdma_join_multicast(id.get(), any_of(g), nullptr));
  leave(id.get());
  EXPECT_TRUE(quiet_for(active.get(), 50));
  // Destroyed with a group joined, and with one of which nobody was told.
  ASSERT_NE(join(id.get()), nullptr);
  sockaddr_in h = group();
  h.sin_addr.s_addr ^= htonl(0x10000);
  ASSERT_OK(rdma_join_multicast(id.get(), any_of(h), nullptr));
}

}  // namespace
}  // namespace weft::test
