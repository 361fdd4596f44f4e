// Memory that a program writes to while it is sent, or while it is received into, as a live
// migration or a peer's second queue pair does: the bytes are of either moment, and the connection
// lives (docs/design/06). With CRC, which sees each change between the sum and the wire.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kMemory = 1 << 20;

// Writes to memory all the time, byte by byte in effect: no word stays as it was.
class Scribbler {
 public:
  Scribbler(uint8_t* begin, size_t size)
      : thread_([this, begin, size] {
          for (uint8_t n = 1; !stop_.load(std::memory_order_relaxed); ++n) {
            for (size_t i = 0; i < size; i += 61) __atomic_store_n(begin + i, n, __ATOMIC_RELAXED);
          }
        }) {}
  ~Scribbler() {
    stop_ = true;
    thread_.join();
  }
  Scribbler(const Scribbler&) = delete;
  Scribbler& operator=(const Scribbler&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

struct Party {
  explicit Party(ibv_qp_type type) : qp(make_qp(a, cq.get(), {.type = type})) {}
  const Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(kMemory, 1);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(256);
  const QpPtr qp;
};

struct Pair {
  explicit Pair(ibv_qp_type type) : near(type), far(type) {
    connect(near.qp.get(), own_gid(near.a), far.qp.get(), own_gid(far.a), {.type = type});
  }
  void post(ibv_wr_opcode opcode, size_t n) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {reinterpret_cast<uintptr_t>(far.memory.data()), far.mr->rkey};
    check_errno(post_send(near.qp.get(), wr, {sge(near.memory.data(), n, near.mr.get())}),
                "ibv_post_send");
  }
  // `rounds` requests of three sizes, one after the other.
  void run(ibv_wr_opcode opcode, int rounds) {
    const bool receives = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    for (int i = 0; i < rounds; ++i) {
      const size_t n = i % 3 == 0 ? kMemory : i % 3 == 1 ? 65'536 : 512;
      if (receives) {
        check_errno(post_recv(far.qp.get(), 1, {sge(far.memory.data(), kMemory, far.mr.get())}),
                    "ibv_post_recv");
      }
      post(opcode, n);
      expect_success(near);
      if (receives) expect_success(far);
    }
  }
  static void expect_success(const Party& p) {
    const auto done = collect(p.cq.get(), 1);
    check(done.size() == 1, "a completion");
    check(done[0].status == IBV_WC_SUCCESS, ibv_wc_status_str(done[0].status));
  }

  Party near;
  Party far;
};

class ChangingMemory : public testing::TestWithParam<ibv_wr_opcode> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
INSTANTIATE_TEST_SUITE_P(Opcodes, ChangingMemory,
                         testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                         IBV_WR_RDMA_READ),
                         [](const auto& p) -> std::string {
                           switch (p.param) {
                             case IBV_WR_RDMA_WRITE:
                               return "Write";
                             case IBV_WR_RDMA_WRITE_WITH_IMM:
                               return "WriteWithImmediate";
                             case IBV_WR_SEND:
                               return "Send";
                             default:
                               return "Read";
                           }
                         });

// Both ends of the transfer are written to by somebody else.
TEST_P(ChangingMemory, is_sent_and_received_by_rc) {
  Pair p(IBV_QPT_RC);
  const Scribbler at_near(p.near.memory.data(), kMemory);
  const Scribbler at_far(p.far.memory.data(), kMemory);
  p.run(GetParam(), 60);
}

void by_uc_with_crc(ibv_wr_opcode opcode) {
  Pair p(IBV_QPT_UC);
  const Scribbler at_near(p.near.memory.data(), kMemory);
  const Scribbler at_far(p.far.memory.data(), kMemory);
  p.run(opcode, 30);
}

// A datagram whose CRC does not match is dropped, and its message never arrives.
TEST_P(ChangingMemory, is_sent_and_received_by_uc) {
  EXPECT_EXIT(with({{"WEFT_DATAGRAM_CRC", "on"}}, [&] { by_uc_with_crc(GetParam()); }),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
