// UC by number: Sends, Writes and Reads over UDP, what is refused, and a peer that goes away
// (spec/wdp-uc 1, spec/addressing 6).

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

constexpr QpOptions kUc{.type = IBV_QPT_UC};

struct Side {
  explicit Side(const QpOptions& o = kUc, int access = kAllAccess)
      : memory(1 << 20),
        mr(a.reg(memory.data(), memory.size(), access)),
        cq(a.cq(256)),
        qp(make_qp(a, cq.get(), o)) {}
  void pattern(uint32_t seed) {
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<uint8_t>(i * seed + (i >> 8) + 1);
    }
  }
  int receive(size_t offset, size_t n, uint64_t wr_id) {
    return post_recv(qp.get(), wr_id, {sge(&memory[offset], n, mr.get())});
  }
  int send(ibv_send_wr wr, size_t offset, size_t n) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    return post_send(qp.get(), wr, {sge(&memory[offset], n, mr.get())});
  }
  ibv_wc one() {
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1, "a completion");
    return done[0];
  }
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

ibv_send_wr tagged(ibv_wr_opcode opcode, const Side& to, size_t offset) {
  ibv_send_wr wr{};
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(&to.memory[offset]);
  wr.wr.rdma.rkey = to.mr->rkey;
  return wr;
}
ibv_send_wr plain(ibv_wr_opcode opcode) {
  ibv_send_wr wr{};
  wr.opcode = opcode;
  return wr;
}

struct Connected {
  explicit Connected(const QpOptions& o = kUc, int access_b = kAllAccess) : a(o), b(o, access_b) {
    a.pattern(3);
    connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), o);
  }
  Side a;
  Side b;
};

TEST(UnreliableConnection, sends_of_many_sizes_come_whole) {
  Connected c;
  for (const size_t n : {0UL, 1UL, 63UL, 1424UL, 1425UL, 65'456UL, 65'457UL, 300'000UL}) {
    ASSERT_EQ(c.b.receive(0, 400'000, n), 0);
    ibv_send_wr wr = plain(IBV_WR_SEND_WITH_IMM);
    wr.imm_data = htonl(static_cast<uint32_t>(n));
    ASSERT_EQ(c.a.send(wr, 0, n), 0);
    EXPECT_EQ(c.a.one().status, IBV_WC_SUCCESS);
    const ibv_wc came = c.b.one();
    EXPECT_EQ(came.status, IBV_WC_SUCCESS);
    EXPECT_EQ(came.wr_id, n);
    EXPECT_EQ(came.byte_len, n);
    EXPECT_EQ(came.imm_data, htonl(static_cast<uint32_t>(n)));
    EXPECT_EQ(std::memcmp(c.a.memory.data(), c.b.memory.data(), n), 0);
    std::fill(c.b.memory.begin(), c.b.memory.end(), uint8_t{0});
  }
}

TEST(UnreliableConnection, a_write_with_immediate_tells_of_all_its_bytes) {
  Connected c;
  ASSERT_EQ(c.b.receive(0, 0, 5), 0);
  ibv_send_wr wr = tagged(IBV_WR_RDMA_WRITE_WITH_IMM, c.b, 1000);
  wr.imm_data = htonl(42);
  ASSERT_EQ(c.a.send(wr, 500, 200'000), 0);
  EXPECT_EQ(c.a.one().status, IBV_WC_SUCCESS);
  const ibv_wc came = c.b.one();
  EXPECT_EQ(came.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(came.byte_len, 200'000U);
  EXPECT_EQ(came.imm_data, htonl(42));
  EXPECT_EQ(std::memcmp(&c.a.memory[500], &c.b.memory[1000], 200'000), 0);
  EXPECT_EQ(c.b.memory[999], 0);
  EXPECT_EQ(c.b.memory[201'000], 0);
}

TEST(UnreliableConnection, a_read_brings_all_its_bytes) {
  Connected c;
  const Counted answered("uc_reads_answered");
  const Counted failed("uc_reads_failed");
  c.b.pattern(11);
  ASSERT_EQ(c.a.send(tagged(IBV_WR_RDMA_READ, c.b, 4), 0, 500'001), 0);
  const ibv_wc done = c.a.one();
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);
  EXPECT_EQ(done.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(std::memcmp(c.a.memory.data(), &c.b.memory[4], 500'001), 0);
  answered.expect_some("");
  failed.expect({});
}

TEST(UnreliableConnection, it_has_no_atomics) {
  Connected c;
  ibv_send_wr wr = plain(IBV_WR_ATOMIC_FETCH_AND_ADD);
  wr.wr.atomic = {reinterpret_cast<uintptr_t>(c.b.memory.data()), 1, 0, c.b.mr->rkey};
  EXPECT_EQ(c.a.send(wr, 0, 8), EINVAL);
}

// spec/wdp-uc 3.9: an event at the sender, and nothing ends.
TEST(UnreliableConnection, a_write_without_the_right_is_told_and_ends_nothing) {
  Connected c{kUc, IBV_ACCESS_LOCAL_WRITE};
  const Counted sent("uc_errors_sent");
  const Counted received("uc_errors_received");
  ASSERT_EQ(c.a.send(tagged(IBV_WR_RDMA_WRITE, c.b, 0), 0, 100), 0);
  EXPECT_EQ(c.a.one().status, IBV_WC_SUCCESS);
  pollfd p{.fd = c.a.a.context->async_fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(c.a.a.context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, c.a.qp.get());
  ibv_ack_async_event(&event);
  EXPECT_EQ(c.b.memory[0], 0);
  sent.expect({{"", 1}});
  received.expect({{"", 1}});
  ASSERT_EQ(c.b.receive(0, 100, 1), 0);
  ASSERT_EQ(c.a.send(plain(IBV_WR_SEND), 0, 100), 0);
  EXPECT_EQ(c.b.one().status, IBV_WC_SUCCESS);
}

// spec/wdp-uc 3.7: no receive, or one that is too small: the message is dropped.
TEST(UnreliableConnection, a_send_without_room_is_dropped_and_the_next_one_comes) {
  Connected c;
  ASSERT_EQ(c.a.send(plain(IBV_WR_SEND), 0, 100), 0);
  EXPECT_EQ(c.a.one().status, IBV_WC_SUCCESS);
  ibv_wc none;
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(ibv_poll_cq(c.b.cq.get(), 1, &none), 0);
  ASSERT_EQ(c.b.receive(0, 50, 1), 0);
  ASSERT_EQ(c.a.send(plain(IBV_WR_SEND), 100, 51), 0);
  ASSERT_EQ(c.a.send(plain(IBV_WR_SEND), 200, 50), 0);
  ASSERT_EQ(collect(c.a.cq.get(), 2).size(), 2U);
  const ibv_wc came = c.b.one();
  EXPECT_EQ(came.wr_id, 1U);
  EXPECT_EQ(std::memcmp(&c.a.memory[200], c.b.memory.data(), 50), 0);
}

TEST(UnreliableConnection, to_itself) {
  Side s;
  s.pattern(5);
  to_rtr(s.qp.get(), s.qp->qp_num, own_gid(s.a));
  to_rts(s.qp.get());
  ASSERT_EQ(s.receive(500'000, 1000, 1), 0);
  ASSERT_EQ(s.send(plain(IBV_WR_SEND), 0, 1000), 0);
  EXPECT_EQ(collect(s.cq.get(), 2).size(), 2U);
  EXPECT_EQ(std::memcmp(s.memory.data(), &s.memory[500'000], 1000), 0);
}

// The other side takes its time to get ready: REJ 8, and the call is repeated
// (spec/addressing 6.3).
TEST(UnreliableConnection, waits_for_a_peer_that_is_not_ready) {
  Side a;
  Side b;
  a.pattern(3);
  to_rtr(a.qp.get(), b.qp->qp_num, own_gid(b.a));
  to_rts(a.qp.get());
  ASSERT_EQ(a.send(plain(IBV_WR_SEND), 0, 100), 0);
  ibv_wc none;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ibv_poll_cq(a.cq.get(), 1, &none), 0);
  ASSERT_EQ(b.receive(0, 100, 1), 0);
  to_rtr(b.qp.get(), a.qp->qp_num, own_gid(a.a));
  EXPECT_EQ(a.one().status, IBV_WC_SUCCESS);
  EXPECT_EQ(b.one().status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), 100), 0);
}

// A peer whose program says another number is nobody's peer.
TEST(UnreliableConnection, gives_up_a_peer_that_knows_another) {
  Side a;
  Side b;
  const Counted given_up("bring_ups_given_up");
  // Whoever has the lower number calls.
  Side& low = a.qp->qp_num < b.qp->qp_num ? a : b;
  Side& high = &low == &a ? b : a;
  to_rtr(high.qp.get(), low.qp->qp_num ^ 1, own_gid(low.a));
  to_rtr(low.qp.get(), high.qp->qp_num, own_gid(high.a));
  to_rts(low.qp.get());
  ASSERT_EQ(low.send(plain(IBV_WR_SEND), 0, 10), 0);
  EXPECT_EQ(low.one().status, IBV_WC_RETRY_EXC_ERR);
  given_up.expect_some("");
}

TEST(UnreliableConnection, a_peer_that_leaves_is_found_out_by_what_is_posted) {
  Side a;
  {
    Side b;
    connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
    ASSERT_EQ(b.receive(0, 10, 1), 0);
    ASSERT_EQ(a.send(plain(IBV_WR_SEND), 0, 10), 0);
    EXPECT_EQ(b.one().status, IBV_WC_SUCCESS);
    EXPECT_EQ(a.one().status, IBV_WC_SUCCESS);
  }
  // Its DREQ is on the way. What is sent before it comes is lost, as on any UC.
  ibv_wc wc{};
  while (wc.status == IBV_WC_SUCCESS) {
    ASSERT_EQ(a.send(plain(IBV_WR_SEND), 0, 10), 0);
    wc = a.one();
  }
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
}

// A peer that is killed says nothing, and what is sent to it is lost without a word, until its
// keepalives fail. Here: nothing hangs, and the queue pair can be used anew.
TEST(UnreliableConnection, outlives_a_peer_that_is_killed) {
  const QpOptions o = kUc;
  PeerProcess peer{[](ibv_qp*, const ibv_mr*) {}, o};
  Side a;
  const PeerCard card = peer.connect_to(a.qp.get(), own_gid(a.a), o);
  ibv_send_wr wr = plain(IBV_WR_RDMA_READ);
  wr.wr.rdma = {card.address, card.rkey};
  ASSERT_EQ(a.send(wr, 0, 100'000), 0);
  ASSERT_EQ(a.one().status, IBV_WC_SUCCESS);
  for (size_t i = 0; i < 100'000; ++i) {
    ASSERT_EQ(a.memory[i], static_cast<uint8_t>(i * 7 + (i >> 8))) << i;
  }
  peer.kill_now();
  wr.opcode = IBV_WR_RDMA_WRITE;
  ASSERT_EQ(a.send(wr, 0, 100'000), 0);
  EXPECT_EQ(a.one().status, IBV_WC_SUCCESS);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(a.qp.get(), &attr, IBV_QP_STATE), 0);
}

}  // namespace
}  // namespace weft::test
