// UD with WEFT_UD=reliable (spec/wdp-rd 3): nothing is lost, nothing comes twice, and order is
// kept, whatever the network does. Each test in a process of its own, for a process reads its
// options once.

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kEach = 1024;
constexpr uint32_t kDepth = 256;

// A UD queue pair with receives that come back as they are used.
struct Side {
  explicit Side(uint32_t depth = kDepth)
      : cq(a.cq(static_cast<int>(2 * depth))),
        in(depth * (kGrh + kEach)),
        out(depth * kEach),
        in_mr(a.reg(in.data(), in.size())),
        out_mr(a.reg(out.data(), out.size())),
        qp(make_qp(a, cq.get(), {.depth = depth, .type = IBV_QPT_UD})) {
    to_rtr(qp.get(), 0, {}, {.type = IBV_QPT_UD});
    to_rts(qp.get(), {.type = IBV_QPT_UD});
  }
  ~Side() {
    if (ah != nullptr) ibv_destroy_ah(ah);
  }
  void aim() {
    ibv_ah_attr to{};
    to.is_global = 1;
    to.port_num = 1;
    to.grh.dgid = own_gid(a);
    ah = ibv_create_ah(a.pd.get(), &to);
    check(ah != nullptr, "ibv_create_ah");
  }
  void receive(size_t slot) {
    check_errno(
        post_recv(qp.get(), slot, {sge(&in[slot * (kGrh + kEach)], kGrh + kEach, in_mr.get())}),
        "post_recv");
  }
  void send(size_t number, size_t slot, const Side& to) { send(number, slot, to.qp->qp_num); }
  void send(size_t number, size_t slot, uint32_t to) {
    std::memcpy(&out[slot * kEach], &number, sizeof number);
    for (size_t i = sizeof number; i < kEach; ++i) {
      out[slot * kEach + i] = static_cast<uint8_t>(number * 7 + i);
    }
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr_id = slot;
    wr.wr.ud = {.ah = ah, .remote_qpn = to, .remote_qkey = kQKey};
    check_errno(post_send(qp.get(), wr, {sge(&out[slot * kEach], kEach, out_mr.get())}),
                "post_send");
  }
  // Is the message in this slot the one of this number?
  bool holds(size_t slot, size_t number) const {
    const uint8_t* m = &in[slot * (kGrh + kEach) + kGrh];
    if (std::memcmp(m, &number, sizeof number) != 0) return false;
    for (size_t i = sizeof number; i < kEach; ++i) {
      if (m[i] != static_cast<uint8_t>(number * 7 + i)) return false;
    }
    return true;
  }

  Adapter a;
  CqPtr cq;
  std::vector<uint8_t> in;
  std::vector<uint8_t> out;
  MrPtr in_mr;
  MrPtr out_mr;
  QpPtr qp;
  ibv_ah* ah = nullptr;
};

// As fast as the sender can, with as many receives as `receives`, posted again one by one.
void all_come(size_t messages, size_t receives) {
  Side a;
  Side b;
  a.aim();
  for (size_t i = 0; i < receives; ++i) b.receive(i);
  size_t posted = 0;
  size_t complete = 0;
  size_t came = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{100};
  while (came < messages || complete < messages) {
    check(std::chrono::steady_clock::now() < until, "in time");
    while (posted < messages && posted - complete < kDepth) {
      a.send(posted, posted % kDepth, b);
      ++posted;
    }
    ibv_wc wc[16];
    for (int n = ibv_poll_cq(a.cq.get(), 16, wc); n > 0; --n) {
      check(wc[n - 1].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[n - 1].status));
      ++complete;
    }
    const int n = ibv_poll_cq(b.cq.get(), 16, wc);
    for (int i = 0; i < n; ++i) {
      check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
      check(wc[i].byte_len == kGrh + kEach && (wc[i].wc_flags & IBV_WC_GRH) != 0, "as UD");
      check(wc[i].src_qp == a.qp->qp_num, "its source");
      check(b.holds(wc[i].wr_id, came), "the next one, whole");
      ++came;
      b.receive(wc[i].wr_id);
    }
  }
  // And no copy of any.
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  ibv_wc wc;
  check(ibv_poll_cq(b.cq.get(), 1, &wc) == 0, "nothing more");
}

class UdReliable : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(UdReliable, AFastSenderLosesNothing) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, [] { all_come(20'000, kDepth); }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(UdReliable, FewReceives) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, [] { all_come(3000, 2); }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(UdReliable, ANetworkThatLosesDoublesAndReorders) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"},
                    {"WEFT_FAULT", "loss:0.05,duplicate:0.05,reorder:0.1,jitter:200us,seed:5"}},
                   [] {
                     const Counted again("rd_datagrams_repeated");
                     all_come(3000, kDepth);
                     check(!again.grown().empty(), "some were lost");
                   }),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(UdReliable, WhatIsDamagedComesAgain) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"},
                    {"WEFT_DATAGRAM_CRC", "on"},
                    {"WEFT_FAULT", "corrupt:0.05,seed:6"}},
                   [] { all_come(3000, kDepth); }),
              ::testing::ExitedWithCode(0), "");
}

// A network of its own, whose only router marks every tenth of the datagrams and trains that say
// ECT, and where they are half of all.
bool enter_marking_network() {
  return unshare(CLONE_NEWNET) == 0 &&
         std::system(  // NOLINT(cert-env33-c)
             "ip link set lo up && nft add table inet f && "
             "nft 'add chain inet f input { type filter hook input priority 0 ; }' && "
             "nft add rule inet f input ip ecn ect0 numgen random mod 10 0 ip ecn set ce") == 0;
}

// spec/wdp-rd 5.6
TEST_F(UdReliable, MarksOfARouterAreHeard) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, for a network of its own";
  const auto marked = [] {
    check(enter_marking_network(), "ip(8) and nft(8)");
    const Counted came("rd_datagrams_marked");
    const Counted heard("rd_marks_heard");
    all_come(3000, kDepth);
    check(!came.grown().empty(), "some are marked");
    check(!heard.grown().empty(), "and their sender hears of it");
  };
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, marked), ::testing::ExitedWithCode(0), "");
}

// Receives that are posted long after the messages have come and are acknowledged.
void late_receives() {
  Side a;
  Side b;
  a.aim();
  for (size_t i = 0; i < 100; ++i) a.send(i, i, b);
  const auto sent = collect(a.cq.get(), 100);
  check(sent.size() == 100, "acknowledged");
  // Not in the socket of the kernel, where those of any UD might wait: they have been read.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{100};
  ibv_wc none;
  while (std::chrono::steady_clock::now() < until) {
    check(ibv_poll_cq(b.cq.get(), 1, &none) == 0, "there is no receive");
  }
  for (size_t i = 0; i < 100; ++i) b.receive(i);
  const auto came = collect(b.cq.get(), 100);
  check(came.size() == 100, "all of them");
  for (size_t i = 0; i < 100; ++i) check(b.holds(came[i].wr_id, i), "in order");
}

TEST_F(UdReliable, MessagesWaitForReceives) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, late_receives), ::testing::ExitedWithCode(0), "");
}

bool one_ends_well(ibv_cq* cq) {
  const auto done = collect(cq, 1);
  return done.size() == 1 && done[0].status == IBV_WC_SUCCESS;
}

// A program that wants to know when all its requests are done sends itself what nobody gets (eRPC).
void to_no_queue_pair() {
  Side a;
  Side b;
  a.aim();
  b.receive(0);
  for (const uint32_t number : {uint32_t{0}, uint32_t{1} << 8, b.qp->qp_num & ~uint32_t{0xff}}) {
    a.send(1, 0, number);
    check(one_ends_well(a.cq.get()), "done as by plain UD");
  }
  a.send(2, 1, b);
  check(one_ends_well(b.cq.get()) && b.holds(0, 2), "the next one comes");
}

TEST_F(UdReliable, ANumberOfNoQueuePairIsNotWaitedFor) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, to_no_queue_pair), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
