// Groups by the verbs alone: whoever is attached hears what a queue pair of the host sends there
// (wire.md 10). Over IPv4 or IPv6, as the first GID is.

#include <gtest/gtest.h>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr QpOptions kUd{.type = IBV_QPT_UD};

struct Member {
  Member() : mr(a.reg(memory.data(), memory.size())), cq(a.cq(16)), qp(make_qp(a, cq.get(), kUd)) {
    to_rtr(qp.get(), 0, {});
    to_rts(qp.get());
  }
  void receive() {
    check_errno(post_recv(qp.get(), 1, {sge(memory.data(), 1000, mr.get())}), "post_recv");
  }
  Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(4096);
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

// Every run its own, so that two at once do not hear each other.
ibv_gid group() {
  ibv_gid g{};
  g.raw[0] = 0xff;
  g.raw[1] = 0x12;
  const auto own = static_cast<uint32_t>(getpid());
  std::memcpy(&g.raw[8], &own, sizeof own);
  return g;
}

TEST(Multicast, all_members_hear_it_until_they_leave) {
  Member sender;
  Member members[2];
  ibv_gid g = group();
  for (Member& m : members) {
    ASSERT_EQ(ibv_attach_mcast(m.qp.get(), &g, 0), 0);
    m.receive();
  }
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = g;
  ibv_ah* ah = ibv_create_ah(sender.a.pd.get(), &attr);
  ASSERT_NE(ah, nullptr);
  const auto send = [&](uint8_t seed) {
    for (size_t i = 0; i < 500; ++i) sender.memory[i] = static_cast<uint8_t>(i * seed + 1);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = kQKey};
    check_errno(post_send(sender.qp.get(), wr, {sge(sender.memory.data(), 500, sender.mr.get())}),
                "post_send");
    check(collect(sender.cq.get(), 1).size() == 1, "it is sent");
  };
  const auto hears = [&](Member& m) {
    const auto came = collect(m.cq.get(), 1);
    return came.size() == 1 && came[0].status == IBV_WC_SUCCESS && came[0].byte_len == kGrh + 500 &&
           came[0].src_qp == sender.qp->qp_num &&
           std::memcmp(&m.memory[kGrh], sender.memory.data(), 500) == 0;
  };
  send(3);
  EXPECT_TRUE(hears(members[0]));
  EXPECT_TRUE(hears(members[1]));
  ASSERT_EQ(ibv_detach_mcast(members[1].qp.get(), &g, 0), 0);
  members[0].receive();
  members[1].receive();
  send(5);
  EXPECT_TRUE(hears(members[0]));
  ibv_wc none;
  EXPECT_EQ(ibv_poll_cq(members[1].cq.get(), 1, &none), 0);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

}  // namespace
}  // namespace weft::test
