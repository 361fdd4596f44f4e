// A queue pair that has used up its receives, while faults hold back what comes next.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr QpOptions kUd{.type = IBV_QPT_UD};

// While the socket rests for a program to post receives, what is due is not taken. Nothing may spin
// for that: the thread that posts them needs the engine.
void the_second_comes_when_there_is_a_receive() {
  Adapter a;
  std::vector<uint8_t> memory(1 << 16);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 5 + (i >> 8));
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(16);
  const QpPtr from = make_qp(a, cq.get(), kUd);
  const QpPtr to = make_qp(a, cq.get(), kUd);
  for (ibv_qp* qp : {from.get(), to.get()}) {
    to_rtr(qp, 0, {}, kUd);
    to_rts(qp, kUd);
  }
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = own_gid(a);
  ibv_ah* ah = ibv_create_ah(a.pd.get(), &attr);
  check(ah != nullptr, "ibv_create_ah");
  for (int round = 0; round < 20; ++round) {
    check_errno(post_recv(to.get(), 1, {sge(&memory[20'000], 200, mr.get())}), "post_recv");
    for (const size_t offset : {0U, 1000U}) {
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.ud = {.ah = ah, .remote_qpn = to->qp_num, .remote_qkey = kQKey};
      check_errno(post_send(from.get(), wr, {sge(&memory[offset], 100, mr.get())}), "post_send");
    }
    check(collect(cq.get(), 3).size() == 3, "two Sends and a receive");
    // The second falls due while the socket rests, or soon after; either way it is there later.
    std::this_thread::sleep_for(std::chrono::milliseconds{6});
    check_errno(post_recv(to.get(), 2, {sge(&memory[30'000], 200, mr.get())}), "post_recv");
    check(collect(cq.get(), 1).size() == 1, "another receive");
    // Each is held back for a time of its own, so either may be the first.
    const bool in_order = std::memcmp(&memory[20'040], &memory[0], 100) == 0;
    check(std::memcmp(&memory[in_order ? 30'040 : 20'040], &memory[1000], 100) == 0, "the second");
    check(std::memcmp(&memory[in_order ? 20'040 : 30'040], &memory[0], 100) == 0, "the first");
  }
  ibv_destroy_ah(ah);
}

TEST(DatagramRest, what_a_fault_holds_back_does_not_keep_the_engine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      with({{"WEFT_FAULT", "jitter:4ms,way:in,seed:3"}}, the_second_comes_when_there_is_a_receive),
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
