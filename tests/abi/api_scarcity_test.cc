// What a process may lack when it first asks for the device, or when it asks for more: threads,
// memory. Each call says so by its errno; none ends the process.
#include "tests/abi/api_fixture.h"
#include "tests/abi/in_child.h"
#include "tests/abi/scarcity.h"
#include "tests/support/refused_calls.h"
#include "tests/support/sanitizer.h"

namespace weft::test {
namespace {

ibv_context* try_open() {
  ibv_device** list = ibv_get_device_list(nullptr);
  if (list == nullptr) return nullptr;
  ibv_context* context = ibv_open_device(list[0]);
  const int why = errno;
  ibv_free_device_list(list);
  errno = why;
  return context;
}

// As under RLIMIT_NPROC, pids.max or RLIMIT_AS.
TEST(NoThread, TheDeviceDoesNotOpenAndLaterItDoes) {
#ifdef WEFT_TSAN
  GTEST_SKIP() << "ThreadSanitizer does not let a child of a program with threads start any";
#endif
  EXPECT_EQ(in_child([] {
              no_threads = true;
              for (int i = 0; i < 3; ++i) {
                errno = 0;
                if (try_open() != nullptr) return 1;
                if (errno != EAGAIN) return 2;
              }
              no_threads = false;
              ibv_context* context = try_open();
              return context != nullptr && ibv_close_device(context) == 0 ? 0 : 3;
            }),
            0);
}

void open_where_it_is_refused(uint32_t call, int error) {
  // 77: there are no filters here.
  if (!refuse_call(call, static_cast<uint32_t>(error))) ::_exit(77);
  errno = 0;
  const bool opened = try_open() != nullptr;
  ::_exit(!opened && errno == error ? 0 : 1);
}

// As in a container whose filter is older than the call.
TEST(RefusedCallDeathTest, TheDeviceDoesNotOpenAndTheFilterIsNamed) {
#ifdef WEFT_TSAN
  GTEST_SKIP() << "ThreadSanitizer does not let a child of a program with threads start any";
#endif
  if (in_child([] { return refuse_call(SYS_timerfd_create, EPERM) ? 0 : 1; }) != 0) {
    GTEST_SKIP() << "no seccomp filters here";
  }
  EXPECT_EXIT(open_where_it_is_refused(SYS_timerfd_create, EPERM), testing::ExitedWithCode(0),
              "timerfd_create: Operation not permitted. A filter of system calls");
  EXPECT_EXIT(open_where_it_is_refused(SYS_timerfd_create, ENOSYS), testing::ExitedWithCode(0),
              "timerfd_create: Function not implemented. A filter of system calls");
}

#ifndef WEFT_SANITIZER

// What a program does with everything once, as far as it gets; it destroys what it made, with
// memory or without.
class Tour {
 public:
  void go() {
    context = try_open();
    if (context == nullptr) return;
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 64, nullptr, channel, 0);
    if (pd != nullptr && cq != nullptr) with_queue();
    leave();
  }

 private:
  void with_queue() {
    (void)ibv_req_notify_cq(cq, 0);
    mr = ibv_reg_mr(pd, memory, sizeof memory, kAll);
    mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    ibv_srq_init_attr shared{};
    shared.attr = {.max_wr = 8, .max_sge = 2, .srq_limit = 0};
    srq = ibv_create_srq(pd, &shared);
    ibv_gid own{};
    (void)ibv_query_gid(context, 1, 0, &own);
    ibv_ah_attr to{};
    to.is_global = 1;
    to.port_num = 1;
    to.grh.dgid = own;
    ah = ibv_create_ah(pd, &to);
    for (size_t i = 0; i < 2; ++i) {
      ibv_qp_init_attr attr = rc_attributes(cq);
      attr.srq = i == 1 ? srq : nullptr;
      rc[i] = ibv_create_qp(pd, &attr);
      attr = rc_attributes(cq);
      attr.qp_type = IBV_QPT_UD;
      ud[i] = ibv_create_qp(pd, &attr);
      attr.qp_type = IBV_QPT_UC;
      uc[i] = ibv_create_qp(pd, &attr);
    }
    for (ibv_qp** pair : {rc, uc}) {
      if (pair[0] == nullptr || pair[1] == nullptr) continue;
      if (bring_up(pair) && mr != nullptr) exchange(pair);
    }
    if (ud[0] != nullptr) datagrams();
    (void)ibv_resize_cq(cq, 200);
    if (mr != nullptr) {
      (void)ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll);
    }
    if (rc[0] != nullptr) (void)to_state(rc[0], IBV_QPS_RESET);
  }
  static bool bring_up(ibv_qp** pair) {
    bool up = true;
    for (size_t i = 0; i < 2; ++i) {
      ibv_qp* qp = pair[i];
      up = up && to_init(qp) == 0;
      ibv_qp_attr a = rtr_attributes(qp->context, pair[1 - i]->qp_num);
      int mask = kRtrMask;
      int last = kRtsMask;
      if (qp->qp_type == IBV_QPT_UC) {
        mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        last = IBV_QP_STATE | IBV_QP_SQ_PSN;
      }
      up = up && ibv_modify_qp(qp, &a, mask) == 0;
      a = rts_attributes();
      up = up && ibv_modify_qp(qp, &a, last) == 0;
    }
    return up;
  }
  void exchange(ibv_qp** pair) {
    ibv_sge piece{reinterpret_cast<uintptr_t>(memory), 64, mr->lkey};
    ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &piece, .num_sge = 1};
    ibv_recv_wr* bad_receive = nullptr;
    if (pair[1]->srq != nullptr) {
      (void)ibv_post_srq_recv(pair[1]->srq, &receive, &bad_receive);
    } else {
      (void)ibv_post_recv(pair[1], &receive, &bad_receive);
    }
    ibv_send_wr bind{};
    bind.opcode = IBV_WR_BIND_MW;
    bind.send_flags = IBV_SEND_SIGNALED;
    if (mw != nullptr) {
      bind.bind_mw = {mw,
                      ibv_inc_rkey(mw->rkey),
                      {mr, reinterpret_cast<uintptr_t>(memory), 64, IBV_ACCESS_REMOTE_READ}};
    }
    ibv_send_wr send{};
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.sg_list = &piece;
    send.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    if (mw != nullptr) (void)ibv_post_send(pair[0], &bind, &bad);
    (void)ibv_post_send(pair[0], &send, &bad);
    ibv_wc wc[8];
    for (int i = 0; i < 200; ++i) (void)ibv_poll_cq(cq, 8, wc);
  }
  void datagrams() {
    ibv_qp_attr a = init_attributes();
    a.qkey = 1;
    bool up =
        ibv_modify_qp(ud[0], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0;
    up = up && to_state(ud[0], IBV_QPS_RTR) == 0;
    a = rts_attributes();
    up = up && ibv_modify_qp(ud[0], &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
    ibv_gid group{};
    const uint8_t mgid[] = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
    std::memcpy(group.raw, mgid, sizeof mgid);
    if (ibv_attach_mcast(ud[0], &group, 0) == 0) (void)ibv_detach_mcast(ud[0], &group, 0);
    if (!up || mr == nullptr || ah == nullptr) return;
    ibv_sge piece{reinterpret_cast<uintptr_t>(memory), 64, mr->lkey};
    ibv_send_wr send{};
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.sg_list = &piece;
    send.num_sge = 1;
    send.wr.ud = {.ah = ah, .remote_qpn = ud[0]->qp_num, .remote_qkey = 1};
    ibv_send_wr* bad = nullptr;
    (void)ibv_post_send(ud[0], &send, &bad);
    ibv_wc wc[8];
    for (int i = 0; i < 50; ++i) (void)ibv_poll_cq(cq, 8, wc);
  }
  void leave() {
    for (ibv_qp* qp : {rc[0], rc[1], uc[0], uc[1], ud[0], ud[1]}) {
      if (qp != nullptr) (void)ibv_destroy_qp(qp);
    }
    if (srq != nullptr) (void)ibv_destroy_srq(srq);
    if (ah != nullptr) (void)ibv_destroy_ah(ah);
    if (mw != nullptr) (void)ibv_dealloc_mw(mw);
    if (mr != nullptr) (void)ibv_dereg_mr(mr);
    if (cq != nullptr) (void)ibv_destroy_cq(cq);
    if (channel != nullptr) (void)ibv_destroy_comp_channel(channel);
    if (pd != nullptr) (void)ibv_dealloc_pd(pd);
    (void)ibv_close_device(context);
  }

  static constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                              IBV_ACCESS_MW_BIND;
  uint8_t memory[256]{};
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_mw* mw = nullptr;
  ibv_srq* srq = nullptr;
  ibv_ah* ah = nullptr;
  ibv_qp* rc[2]{};
  ibv_qp* uc[2]{};
  ibv_qp* ud[2]{};
};

// The tour with so many pieces of memory to be had. 0: it came to its end and memory lasted; 1: it
// did not last; a signal is negative.
int tour_with(long pieces, bool one_missing) {
  return in_child([=] {
    // What is said about it is no part of this.
    if (freopen("/dev/null", "w", stderr) == nullptr) return 2;
    if (freopen("/dev/null", "w", stdout) == nullptr) return 2;
    Tour tour;
    one_is_missing = one_missing;
    pieces_left = pieces;
    tour.go();
    const bool lasted = pieces_left > 0;
    pieces_left = -1;
    return lasted ? 0 : 1;
  });
}

void tour_with_ever_more(bool one_missing) {
  int ended = 1;
  long pieces = 0;
  for (; ended == 1 && pieces < 5000; ++pieces) ended = tour_with(pieces, one_missing);
  EXPECT_EQ(ended, 0) << "with " << pieces - 1 << " pieces of memory";
  EXPECT_GT(pieces, 50) << "the tour takes more";
}

TEST(ScarceMemory, NoneFromSomePointOn) {
  tour_with_ever_more(false);
}
TEST(ScarceMemory, OnePieceIsMissing) {
  tour_with_ever_more(true);
}

#endif  // WEFT_SANITIZER

}  // namespace
}  // namespace weft::test
