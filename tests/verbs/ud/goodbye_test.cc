// What peers hear of a process that exits (spec/wdp-rd 2.4), where datagrams are lost.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kEach = 512;

struct Address {
  ibv_gid gid;
  uint32_t number;
};

// A UD queue pair with one message out and one in.
struct Side {
  Side() {
    to_rtr(qp.get(), 0, {}, {.type = IBV_QPT_UD});
    to_rts(qp.get(), {.type = IBV_QPT_UD});
    check_errno(post_recv(qp.get(), 1, {sge(in.data(), in.size(), in_mr.get())}), "post_recv");
  }
  Address address() const { return {own_gid(a), qp->qp_num}; }
  void send(const Address& to) {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.dgid = to.gid;
    ah = ibv_create_ah(a.pd.get(), &attr);
    check(ah != nullptr, "ibv_create_ah");
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah, .remote_qpn = to.number, .remote_qkey = kQKey};
    check_errno(post_send(qp.get(), wr, {sge(out.data(), out.size(), out_mr.get())}), "post_send");
  }

  Adapter a;
  CqPtr cq = a.cq(4);
  std::vector<uint8_t> in = std::vector<uint8_t>(kGrh + kEach);
  std::vector<uint8_t> out = std::vector<uint8_t>(kEach, 5);
  MrPtr in_mr = a.reg(in.data(), in.size());
  MrPtr out_mr = a.reg(out.data(), out.size());
  QpPtr qp = make_qp(a, cq.get(), {.depth = 4, .type = IBV_QPT_UD});
  ibv_ah* ah = nullptr;
};

// Exits as soon as the message has come, and destroys nothing.
[[noreturn]] void receive_and_exit(int to_sender, unsigned seed) {
  setenv("WEFT_FAULT", ("loss:0.3,way:out,seed:" + std::to_string(seed)).c_str(), 1);
  const auto* side = new Side;
  const Address own = side->address();
  check(write(to_sender, &own, sizeof own) == sizeof own, "write");
  check(collect(side->cq.get(), 1).at(0).status == IBV_WC_SUCCESS, "it came");
  std::exit(0);
}

// All that a receiver says is lost with a chance of 0.3: the one RDACK, and its first goodbye.
void the_last_send_completes(unsigned seed) {
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  const pid_t receiver = fork();
  check(receiver >= 0, "fork");
  if (receiver == 0) {
    with({}, [&] { receive_and_exit(ends[1], seed); });
  }
  Side side;
  Address peer{};
  check(read(ends[0], &peer, sizeof peer) == sizeof peer, "read");
  side.send(peer);
  const ibv_wc wc = collect(side.cq.get(), 1).at(0);
  check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  int status = 0;
  check(waitpid(receiver, &status, 0) == receiver && status == 0, "the receiver has ended well");
  ibv_destroy_ah(side.ah);
}

class UdGoodbye : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(UdGoodbye, TheLastSendToAProcessThatExitsCompletes) {
  const unsigned seed = GetParam();
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, [&] { the_last_send_completes(seed); }),
              ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, UdGoodbye, ::testing::Range(1U, 13U));

}  // namespace
}  // namespace weft::test
