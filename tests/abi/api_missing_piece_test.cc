// A call without memory for one thing of many fails, and leaves nothing half done: what follows
// works as if it had not been made.
#include "tests/abi/api_fixture.h"
#include "tests/abi/missing_piece.h"
#include "tests/support/sanitizer.h"

#ifndef WEFT_SANITIZER

// <infiniband/driver.h>
extern "C" int ibv_read_sysfs_file(const char* folder, const char* file, char* buffer, size_t size);
extern "C" const char* ibv_get_sysfs_path();

namespace weft::test {
namespace {

// An open device with memory, and queue pairs on it. In a child process, which frees none of it.
struct Program {
  static constexpr size_t kSize = 64;
  static constexpr uint32_t kQKey = 0x11;
  static constexpr size_t kGrh = 40;

  ibv_qp* create(ibv_qp_type type) {
    ibv_qp_init_attr attr = rc_attributes(cq);
    attr.qp_type = type;
    return ibv_create_qp(pd, &attr);
  }
  // Ready to send and to receive, and with a receive.
  ibv_qp* create_ud() {
    ibv_qp* const qp = create(IBV_QPT_UD);
    ibv_qp_attr a = init_attributes();
    a.qkey = kQKey;
    bool up =
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0;
    up = up && to_state(qp, IBV_QPS_RTR) == 0;
    a = rts_attributes();
    up = up && ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
    return up ? qp : nullptr;
  }
  int post_receive(ibv_qp* qp) {
    ibv_sge piece{address(kSize), kGrh + kSize, mr->lkey};
    ibv_recv_wr wr{.wr_id = kReceived, .next = nullptr, .sg_list = &piece, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }
  // To all of a group, to one queue pair, or nullptr.
  int post_send(ibv_qp* qp, ibv_ah* to, uint32_t number = 0xffffff) {
    fill(memory, kSize, 5);
    ibv_sge piece{address(0), kSize, mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    if (to != nullptr) wr.wr.ud = {.ah = to, .remote_qpn = number, .remote_qkey = kQKey};
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  // Behind `before` bytes.
  bool comes(size_t before) {
    const ibv_wc wc = next_completion(cq);
    return wc.status == IBV_WC_SUCCESS && wc.wr_id == kReceived &&
           filled(memory + kSize + before, kSize, 5);
  }
  uint64_t address(size_t at) const { return reinterpret_cast<uintptr_t>(memory + at); }

  static constexpr uint64_t kReceived = 9;
  ibv_context* context = open_device().release();
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
  uint8_t memory[512]{};
  ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
};

ibv_gid group_of_this_process() {
  ibv_gid g{};
  const auto pid = static_cast<uint32_t>(getpid());
  g.raw[0] = 0xff;
  g.raw[1] = 0x0e;
  g.raw[10] = g.raw[11] = 0xff;
  g.raw[12] = 239;
  g.raw[13] = static_cast<uint8_t>(pid >> 16);
  g.raw[14] = static_cast<uint8_t>(pid >> 8);
  g.raw[15] = static_cast<uint8_t>(pid);
  return g;
}

TEST(MissingPiece, AttachingToAGroupLeavesNoMemberBehind) {
  without_each_piece([](long n) {
    Program p;
    const ibv_gid group = group_of_this_process();
    ibv_qp* const gone = p.create_ud();
    ibv_qp* const member = p.create_ud();
    ibv_qp* const sender = p.create_ud();
    CHECK_IN_CHILD(2, gone != nullptr && member != nullptr && sender != nullptr);
    const MissingPiece piece{n};
    const int attached = ibv_attach_mcast(gone, &group, 0);
    const bool missed = MissingPiece::missed();
    CHECK_IN_CHILD(3, attached == 0 || (missed && attached == ENOMEM));
    CHECK_IN_CHILD(4, ibv_detach_mcast(gone, &group, 0) == (attached == 0 ? 0 : EINVAL));
    CHECK_IN_CHILD(5, ibv_destroy_qp(gone) == 0);
    CHECK_IN_CHILD(6, ibv_attach_mcast(member, &group, 0) == 0 && p.post_receive(member) == 0);
    ibv_ah_attr to{};
    to.is_global = 1;
    to.port_num = 1;
    to.grh.dgid = group;
    ibv_ah* const ah = ibv_create_ah(p.pd, &to);
    CHECK_IN_CHILD(7, ah != nullptr && p.post_send(sender, ah) == 0);
    CHECK_IN_CHILD(8, p.comes(Program::kGrh));
    return missed ? kMissed : kLasted;
  });
}

// A destructor cannot fail, nor what has to come first.
TEST(MissingPiece, AMemberOfAGroupLeavesAndIsDestroyed) {
  const auto destroy_without = [](long n) {
    Program p;
    const ibv_gid group = group_of_this_process();
    ibv_qp* const member = p.create_ud();
    CHECK_IN_CHILD(2, member != nullptr && ibv_attach_mcast(member, &group, 0) == 0);
    const MissingPiece piece{n};
    const int left = ibv_detach_mcast(member, &group, 0);
    const int destroyed = ibv_destroy_qp(member);
    const bool missed = MissingPiece::missed();
    CHECK_IN_CHILD(3, left == 0 && destroyed == 0);
    return missed ? kMissed : kLasted;
  };
  without_each_piece(destroy_without, 0);
}

// By number: somebody has to listen on the port of the first one.
TEST(MissingPiece, CreatingAQueuePairLeavesNoDeafPort) {
  without_each_piece([](long n) {
    Program p;
    const MissingPiece piece{n};
    ibv_qp* const first = p.create(IBV_QPT_RC);
    const bool missed = MissingPiece::missed();
    CHECK_IN_CHILD(2, first != nullptr || missed);
    ibv_qp* const pair[2] = {p.create(IBV_QPT_RC), p.create(IBV_QPT_RC)};
    CHECK_IN_CHILD(3, pair[0] != nullptr && pair[1] != nullptr);
    for (size_t i : {0, 1}) {
      const uint32_t peer = pair[1 - i]->qp_num;
      CHECK_IN_CHILD(4, to_init(pair[i]) == 0 && to_rtr(pair[i], peer) == 0);
      CHECK_IN_CHILD(5, to_rts(pair[i]) == 0);
    }
    CHECK_IN_CHILD(6, p.post_receive(pair[1]) == 0 && p.post_send(pair[0], nullptr) == 0);
    CHECK_IN_CHILD(7, p.comes(0));
    return missed ? kMissed : kLasted;
  });
}

// The port keeps its number on UDP for those that come after.
TEST(MissingPiece, CreatingAQueuePairOfDatagramsLeavesNoDeafPort) {
  without_each_piece([](long n) {
    Program p;
    const MissingPiece piece{n};
    ibv_qp* const first = p.create(IBV_QPT_UD);
    const bool missed = MissingPiece::missed();
    CHECK_IN_CHILD(2, first != nullptr || missed);
    ibv_qp* const sender = p.create_ud();
    ibv_qp* const receiver = p.create_ud();
    CHECK_IN_CHILD(3, sender != nullptr && receiver != nullptr);
    ibv_ah_attr to{};
    to.is_global = 1;
    to.port_num = 1;
    CHECK_IN_CHILD(4, ibv_query_gid(p.context, 1, 0, &to.grh.dgid) == 0);
    ibv_ah* const ah = ibv_create_ah(p.pd, &to);
    CHECK_IN_CHILD(5, ah != nullptr && p.post_receive(receiver) == 0);
    CHECK_IN_CHILD(6, p.post_send(sender, ah, receiver->qp_num) == 0);
    CHECK_IN_CHILD(7, p.comes(Program::kGrh));
    return missed ? kMissed : kLasted;
  });
}

TEST(MissingPiece, AFileOfSysfsIsNotRead) {
  without_each_piece([](long n) {
    char content[16] = {};
    const MissingPiece piece{n};
    errno = 0;
    const int length = ibv_read_sysfs_file("/proc/self/no/such/folder/of/this/process",
                                           "../../../../../../../comm", content, sizeof content);
    const int why = errno;
    const bool missed = MissingPiece::missed();
    CHECK_IN_CHILD(2, length == -1);
    CHECK_IN_CHILD(3, why == (missed ? ENOMEM : ENOENT));
    return missed ? kMissed : kLasted;
  });
}

TEST(MissingPiece, ThePathOfSysfsTakesNone) {
  without_each_piece(
      [](long n) {
        CHECK_IN_CHILD(2, setenv("SYSFS_PATH", "/a/folder/that/is/somewhere/else//", 1) == 0);
        const MissingPiece piece{n};
        const std::string_view path = ibv_get_sysfs_path();
        CHECK_IN_CHILD(3, !MissingPiece::missed());
        CHECK_IN_CHILD(4, path == "/a/folder/that/is/somewhere/else");
        return kLasted;
      },
      0);
}

}  // namespace
}  // namespace weft::test

#endif  // WEFT_SANITIZER
