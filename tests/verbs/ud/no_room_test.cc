// ENOBUFS: the kernel has no memory for a datagram just now. As with a full socket, what is to be
// sent waits (spec/wdp 2.7: do not drop).

#include <gtest/gtest.h>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/refusing_kernel.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kMessages = 100;
constexpr size_t kRoom = 1100;
constexpr QpOptions kUd{.depth = 128, .type = IBV_QPT_UD};

struct Side {
  Side() : memory(kMessages * kRoom), mr(a.reg(memory.data(), memory.size())), cq(a.cq(256)) {
    qp = make_qp(a, cq.get(), kUd);
    to_rtr(qp.get(), 0, {}, kUd);
    to_rts(qp.get(), kUd);
  }
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

// Trains of several, and single ones.
size_t size_of(size_t message) {
  return message % 10 < 7 ? 900 : 300 + message;
}

TEST(NoRoom, in_the_kernel_is_waited_for_and_nothing_is_lost) {
  Side a;
  Side b;
  for (size_t i = 0; i < a.memory.size(); ++i) {
    a.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 3 + 1);
  }
  ibv_ah_attr attr{.grh = {.dgid = own_gid(b.a)}, .is_global = 1, .port_num = 1};
  const std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>> ah{
      ibv_create_ah(a.a.pd.get(), &attr)};
  ASSERT_NE(ah, nullptr);
  for (size_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(post_recv(b.qp.get(), i, {sge(&b.memory[i * kRoom], kRoom, b.mr.get())}), 0);
  }
  const Counted cut{"sends_cut"};
  const Counted unsent{"datagrams_unsent"};
  refusing_kernel.short_of_memory = true;
  for (size_t i = 0; i < kMessages; ++i) {
    ibv_send_wr wr{};
    wr.wr_id = i;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah.get(), .remote_qpn = b.qp->qp_num, .remote_qkey = kQKey};
    ASSERT_EQ(post_send(a.qp.get(), wr, {sge(&a.memory[i * kRoom], size_of(i), a.mr.get())}), 0);
  }
  const auto sent = collect(a.cq.get(), kMessages);
  const auto came = collect(b.cq.get(), kMessages);
  refusing_kernel.short_of_memory = false;
  ASSERT_EQ(sent.size(), kMessages);
  ASSERT_EQ(came.size(), kMessages);
  for (size_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(sent[i].wr_id, i);
    EXPECT_EQ(sent[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(came[i].wr_id, i);
    EXPECT_EQ(came[i].byte_len, kGrh + size_of(i)) << i;
    EXPECT_EQ(std::memcmp(&b.memory[i * kRoom + kGrh], &a.memory[i * kRoom], size_of(i)), 0) << i;
  }
  const uint64_t refused = refusing_kernel.memory_refused;
  EXPECT_GE(refused, 3U);
  cut.expect({{"", refused}});
  unsent.expect({});
}

}  // namespace
}  // namespace weft::test
