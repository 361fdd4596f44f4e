// RC over UDP by number begins in a channel (spec/wdp-rd 7.5): no TCP connection is made, but where
// the peer wants one.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "observe/counter_reader.h"
#include "stats/table.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

using Environment = std::initializer_list<std::pair<const char*, const char*>>;

// What a process has counted; 0: this one.
uint64_t count_of(pid_t pid, const std::string& family) {
  const auto read = observe::read_process(pid);
  check(read.ok(), "the counters of a process");
  uint64_t sum = 0;
  for (size_t i = 0; i < read->device.size(); ++i) {
    if (stats::table()[i].family == family) sum += read->device[i];
  }
  return sum;
}

void await(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

struct Side {
  Side() {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(i * 37 + (i >> 9));
  }
  // Writes all of it there, and reads it back.
  void use(ibv_qp* qp, uint64_t address, uint32_t rkey) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    check_errno(post_send(qp, wr, {sge(out.data(), out.size(), out_mr.get())}), "write");
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    check_errno(post_send(qp, wr, {sge(in.data(), in.size(), in_mr.get())}), "read");
    check(collect(cq.get(), 1).at(0).status == IBV_WC_SUCCESS, "it is read");
    check(in == out, "what was written");
  }
  const Adapter a;
  const ibv_gid gid = own_gid(a);
  CqPtr cq = a.cq(16);
  std::vector<uint8_t> out = std::vector<uint8_t>(200'000);
  std::vector<uint8_t> in = std::vector<uint8_t>(200'000);
  MrPtr out_mr = a.reg(out.data(), out.size());
  MrPtr in_mr = a.reg(in.data(), in.size());
};

// With a peer in a process of its own that has such a WEFT_RC.
void connect_to_a_peer(const char* peers_way, uint64_t channel_starts, uint64_t dials) {
  PeerProcess peer{[](ibv_qp*, const ibv_mr*) {}, {}, [&] { setenv("WEFT_RC", peers_way, 1); }};
  Side side;
  const QpPtr qp = make_qp(side.a, side.cq.get(), {.depth = 8});
  const PeerCard card = peer.connect_to(qp.get(), side.gid);
  side.use(qp.get(), card.address, card.rkey);
  // Which of the two calls is a matter of their numbers.
  const auto both = [&](const char* family) {
    return count_of(0, family) + count_of(peer.pid(), family);
  };
  check(both("channel_starts") == channel_starts, "starts through a channel");
  check(both("channel_starts_accepted") == channel_starts, "and accepted");
  check(both("dials") == dials, "connections of TCP");
}

struct Two {
  Two() {
    QpPtr x = make_qp(side.a, side.cq.get(), {.depth = 8});
    QpPtr y = make_qp(side.a, side.cq.get(), {.depth = 8});
    // That with the lower number calls.
    if (x->qp_num > y->qp_num) std::swap(x, y);
    caller = std::move(x);
    called = std::move(y);
    to_rtr(caller.get(), called->qp_num, side.gid);
    to_rts(caller.get());
    await([] { return count_of(0, "channel_starts") == 1; });
  }
  Side side;
  QpPtr caller;
  QpPtr called;
};

void a_request_waits_for_its_queue_pair() {
  Two t;
  std::vector<uint8_t> memory(t.side.out.size());
  const MrPtr mr = t.side.a.reg(memory.data(), memory.size());
  to_rtr(t.called.get(), t.caller->qp_num, t.side.gid);
  to_rts(t.called.get());
  t.side.use(t.caller.get(), reinterpret_cast<uintptr_t>(memory.data()), mr->rkey);
  check(count_of(0, "channel_starts") == 1, "asked once");
  check(count_of(0, "dials") == 0, "and not by TCP");
}

// Whether its Request waits yet, or has been accepted a moment before it was taken back.
void one_that_is_destroyed_waits_no_longer() {
  Two t;
  const uint32_t gone = t.caller->qp_num;
  t.caller.reset();
  to_rtr(t.called.get(), gone, t.side.gid);
  to_rts(t.called.get());
  std::vector<uint8_t> memory(8);
  const MrPtr mr = t.side.a.reg(memory.data(), memory.size());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {.remote_addr = reinterpret_cast<uintptr_t>(memory.data()), .rkey = mr->rkey};
  check_errno(post_send(t.called.get(), wr, {sge(t.side.out.data(), 8, t.side.out_mr.get())}),
              "write");
  // Where the Request was taken back first, the peer is looked for as long as for any other that is
  // not there: longer than collect() waits.
  ibv_wc done{};
  await([&] { return ibv_poll_cq(t.side.cq.get(), 1, &done) == 1; });
  check(done.status == IBV_WC_RETRY_EXC_ERR, "nobody is there");
}

class RcByUdpStart : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
const Environment kUdp = {{"WEFT_RC", "udp"}};

TEST_F(RcByUdpStart, is_in_a_channel) {
  EXPECT_EXIT(with(kUdp, [] { connect_to_a_peer("udp", 1, 0); }), ::testing::ExitedWithCode(0), "");
}

TEST_F(RcByUdpStart, is_by_tcp_where_the_peer_wants_that) {
  EXPECT_EXIT(with(kUdp, [] { connect_to_a_peer("tcp", 0, 1); }), ::testing::ExitedWithCode(0), "");
}

TEST_F(RcByUdpStart, waits_for_its_queue_pair) {
  EXPECT_EXIT(with(kUdp, a_request_waits_for_its_queue_pair), ::testing::ExitedWithCode(0), "");
}

TEST_F(RcByUdpStart, of_a_queue_pair_that_is_destroyed_is_taken_back) {
  EXPECT_EXIT(with(kUdp, one_that_is_destroyed_waits_no_longer), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
