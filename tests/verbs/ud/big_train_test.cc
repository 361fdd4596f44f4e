// Option ud_big where several messages go the same way at once, over a link that carries none of
// them in one piece.

#include <gtest/gtest.h>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_network.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kSize = 20'000;
constexpr size_t kRoom = 21'000;
constexpr size_t kMessages = 5;
constexpr QpOptions kUd{.type = IBV_QPT_UD};

void big_ones_in_one_list() {
  const Adapter a;
  std::vector<uint8_t> from(kMessages * kSize);
  std::vector<uint8_t> to(kMessages * kRoom);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 3 + (i >> 16) + 1);
  }
  const MrPtr from_mr = a.reg(from.data(), from.size());
  const MrPtr to_mr = a.reg(to.data(), to.size());
  const CqPtr sent = a.cq(16);
  const CqPtr came = a.cq(16);
  const QpPtr sender = make_qp(a, sent.get(), kUd);
  const QpPtr receiver = make_qp(a, came.get(), kUd);
  for (ibv_qp* qp : {sender.get(), receiver.get()}) {
    to_rtr(qp, 0, {}, kUd);
    to_rts(qp, kUd);
  }
  ibv_ah_attr attr{.grh = {.dgid = own_gid(a)}, .is_global = 1, .port_num = 1};
  ibv_ah* ah = ibv_create_ah(a.pd.get(), &attr);
  check(ah != nullptr, "ibv_create_ah");
  ibv_send_wr wr[kMessages] = {};
  ibv_sge piece[kMessages];
  for (size_t i = 0; i < kMessages; ++i) {
    check_errno(post_recv(receiver.get(), i, {sge(&to[i * kRoom], kRoom, to_mr.get())}), "receive");
    piece[i] = sge(&from[i * kSize], kSize, from_mr.get());
    wr[i].wr_id = i;
    wr[i].next = i + 1 < kMessages ? &wr[i + 1] : nullptr;
    wr[i].opcode = IBV_WR_SEND;
    wr[i].send_flags = IBV_SEND_SIGNALED;
    wr[i].sg_list = &piece[i];
    wr[i].num_sge = 1;
    wr[i].wr.ud = {.ah = ah, .remote_qpn = receiver->qp_num, .remote_qkey = kQKey};
  }
  ibv_send_wr* bad = nullptr;
  check_errno(ibv_post_send(sender.get(), wr, &bad), "post_send");
  const auto done = collect(sent.get(), kMessages);
  check(done.size() == kMessages, "all complete");
  const auto arrived = collect(came.get(), kMessages);
  check(arrived.size() == kMessages, "all arrive");
  for (size_t i = 0; i < kMessages; ++i) {
    check(done[i].status == IBV_WC_SUCCESS, "a success");
    check(arrived[i].wr_id == i && arrived[i].byte_len == kGrh + kSize, "a message, whole");
    check(std::memcmp(&to[i * kRoom + kGrh], &from[i * kSize], kSize) == 0, "its bytes");
  }
  ibv_destroy_ah(ah);
}

TEST(UdBigTrain, messages_larger_than_the_link_arrive) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  bool here = true;
  EXPECT_EXIT(
      in_own_network("ip link set lo mtu 1500 up", {{"WEFT_UD_BIG", "on"}}, big_ones_in_one_list),
      EndsWell{here}, "");
  if (!here) GTEST_SKIP() << "no network of its own can be made here";
}

}  // namespace
}  // namespace weft::test
