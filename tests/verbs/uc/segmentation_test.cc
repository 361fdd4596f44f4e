// UC where the kernel, a route or a device does not cut trains up (UDP_SEGMENT), or does not put
// them together (UDP_GRO): datagrams go or come one by one, and no byte is different.

#include <gtest/gtest.h>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/refusing_kernel.h"

namespace weft::test {
namespace {

constexpr QpOptions kUc{.type = IBV_QPT_UC};
constexpr size_t kMemory = 4 << 20;
constexpr size_t kPath = 1472;      // UDP payload of an Ethernet packet over IPv4
constexpr size_t kPair = 2 * 1424;  // bytes that are two datagrams there
RefusingKernel& kernel = refusing_kernel;

struct Side {
  Side() : memory(kMemory), mr(a.reg(memory.data(), kMemory)), cq(a.cq(16)) {
    qp = make_qp(a, cq.get(), kUc);
  }
  void pattern(uint32_t seed) {
    for (size_t i = 0; i < kMemory; ++i) {
      memory[i] = static_cast<uint8_t>(i * seed + (i >> 8) + (i >> 16) + 1);
    }
  }
  void receive() const { check_errno(post_recv(qp.get(), 1, {}), "post_recv"); }
  void request(ibv_wr_opcode opcode, const Side& peer, size_t n) const {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {reinterpret_cast<uintptr_t>(peer.memory.data()), peer.mr->rkey};
    check_errno(post_send(qp.get(), wr, {sge(memory.data(), n, mr.get())}), "post_send");
    one();
  }
  ibv_wc one() const {
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1 && done[0].status == IBV_WC_SUCCESS, "a completion");
    return done[0];
  }
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

// On one host a datagram is as large as UDP's are, and no train has two. So the path carries less;
// both sides find that out by what they lose.
struct Connected {
  Connected() {
    kernel.path = kPath;
    connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
    Counted::Kinds lost;
    do {
      const Counted too_big("datagrams_too_big");
      a.request(IBV_WR_RDMA_WRITE, b, 100'000);
      b.request(IBV_WR_RDMA_WRITE, a, 100'000);
      lost = too_big.grown();
    } while (!lost.empty());
  }
  // Several megabytes in one Write, and in one Read.
  void both_ways() {
    a.pattern(3);
    b.receive();
    a.request(IBV_WR_RDMA_WRITE_WITH_IMM, b, kMemory);
    check(b.one().byte_len == kMemory, "all of the Write");
    check(a.memory == b.memory, "the bytes of the Write");
    b.pattern(5);
    a.request(IBV_WR_RDMA_READ, b, kMemory - 1);
    check(std::equal(b.memory.begin(), b.memory.end() - 1, a.memory.begin()),
          "the bytes of the Read");
    check(a.memory.back() != b.memory.back(), "and no others");
  }
  Side a;
  Side b;
};

class UcSegmentation : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void run(void (*body)()) {
    EXPECT_EXIT(with({{"WEFT_ENGINES", "1"}}, body), ::testing::ExitedWithCode(0), "");
  }
};

// What the others are held against.
void with_all_of_it() {
  Connected c;
  const uint64_t trains = kernel.trains;
  const uint64_t by_hand = kernel.one_by_one;
  c.both_ways();
  check(kernel.trains > trains + 100, "trains are sent");
  check(kernel.one_by_one == by_hand, "and nothing else");
}

TEST_F(UcSegmentation, sends_trains_where_it_can) {
  run(with_all_of_it);
}

void without_segmentation() {
  kernel.segments = false;
  Connected c;
  const uint64_t asked = kernel.trains;
  const uint64_t by_hand = kernel.one_by_one;
  check(asked >= 2, "each side has tried");
  c.both_ways();
  check(kernel.one_by_one > by_hand + 100, "many datagrams in a call");
  check(kernel.trains == asked, "not asked with every train");
}

TEST_F(UcSegmentation, goes_on_without_being_cut_up) {
  run(without_segmentation);
}

void without_gathering() {
  kernel.gathers = false;
  Connected c;
  check(kernel.gathering_refused > 0, "it was asked for");
  const Counted calls("receive_calls");  // looked at first and last: others go on meanwhile
  const Counted datagrams("datagrams_received");
  const Counted empty("receives_empty");
  c.both_ways();
  const uint64_t came = datagrams.grown()[""];
  check(came > 2 * kMemory / kPath, "the datagrams of both");
  const uint64_t found_nothing = empty.grown()[""];
  check(calls.grown()[""] >= came + found_nothing, "each is received by itself");
}

TEST_F(UcSegmentation, goes_on_without_being_put_together) {
  run(without_gathering);
}

void without_either() {
  kernel.segments = kernel.gathers = false;
  Connected{}.both_ways();
}

TEST_F(UcSegmentation, goes_on_without_either) {
  run(without_either);
}

// Routes change: port::Segmentation asks with one of 4096 trains.
void asks_again() {
  constexpr uint64_t kRetryEvery = 4096;
  kernel.segments = false;
  Connected c;
  c.a.pattern(7);
  // Trains until the kernel is asked with one, and how many went one by one meanwhile.
  const auto until_asked = [&c] {
    const uint64_t asked = kernel.trains;
    const uint64_t before = kernel.one_by_one;
    for (uint64_t i = 0; kernel.trains == asked; ++i) {
      check(i < 2 * kRetryEvery, "it is asked again");
      c.a.request(IBV_WR_RDMA_WRITE, c.b, kPair);
    }
    return kernel.one_by_one - before;
  };
  (void)until_asked();
  check(until_asked() == kRetryEvery, "once in so many trains, which goes one by one as well");
  kernel.segments = true;
  check(until_asked() == kRetryEvery - 1, "the same, and it is allowed");
  const uint64_t trains = kernel.trains;
  const uint64_t by_hand = kernel.one_by_one;
  for (uint64_t i = 1; i <= 100; ++i) {
    c.a.request(IBV_WR_RDMA_WRITE, c.b, kPair);
    check(kernel.trains == trains + i, "each is a train again");
  }
  check(kernel.one_by_one == by_hand, "none goes one by one");
  c.both_ways();
}

TEST_F(UcSegmentation, is_asked_for_again_after_a_while) {
  run(asks_again);
}

}  // namespace
}  // namespace weft::test
