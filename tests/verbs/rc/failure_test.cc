// What goes wrong ends in the right completion, and the survivor goes on: keys, lengths, rights, a
// peer that is killed.

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

// Two connected queue pairs of this process with a buffer each.
struct Connected {
  explicit Connected(const QpOptions& o = {}, int access = kAllAccess)
      : here(4096),
        there(4096),
        from(a.reg(here.data(), here.size())),
        to(b.reg(there.data(), there.size(), access)),
        cq_a(a.cq(256)),
        cq_b(b.cq(256)),
        qp_a(make_qp(a, cq_a.get(), o)),
        qp_b(make_qp(b, cq_b.get(), o)) {
    for (size_t i = 0; i < here.size(); ++i) here[i] = static_cast<uint8_t>(i * 5 + 1);
    connect(qp_a.get(), own_gid(a), qp_b.get(), own_gid(b), o);
  }
  int write(uint32_t rkey, uint64_t offset, uint64_t n, ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    ibv_send_wr wr{};
    wr.wr_id = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(there.data()) + offset;
    wr.wr.rdma.rkey = rkey;
    return post_send(qp_a.get(), wr, {sge(here.data(), n, from.get())});
  }
  ibv_wc_status outcome() {
    const auto done = collect(cq_a.get(), 1);
    return done.empty() ? IBV_WC_RESP_TIMEOUT_ERR : done[0].status;
  }
  Adapter a, b;
  std::vector<uint8_t> here, there;
  MrPtr from, to;
  CqPtr cq_a, cq_b;
  QpPtr qp_a, qp_b;
};

TEST(Failure, write_with_a_wrong_key) {
  Connected c;
  ASSERT_EQ(c.write(c.to->rkey ^ 0x55, 0, 100), 0);
  EXPECT_EQ(c.outcome(), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(c.there, std::vector<uint8_t>(4096));
}

TEST(Failure, write_past_the_end) {
  Connected c;
  ASSERT_EQ(c.write(c.to->rkey, 4000, 97), 0);
  EXPECT_EQ(c.outcome(), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(c.there, std::vector<uint8_t>(4096));
}

TEST(Failure, read_and_write_without_the_right) {
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    Connected c{{}, IBV_ACCESS_LOCAL_WRITE};
    ASSERT_EQ(c.write(c.to->rkey, 0, 100, opcode), 0);
    EXPECT_EQ(c.outcome(), IBV_WC_REM_ACCESS_ERR);
  }
}

TEST(Failure, send_longer_than_the_receive) {
  Connected c;
  ASSERT_EQ(post_recv(c.qp_b.get(), 9, {sge(c.there.data(), 50, c.to.get())}), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(post_send(c.qp_a.get(), wr, {sge(c.here.data(), 51, c.from.get())}), 0);
  EXPECT_EQ(c.outcome(), IBV_WC_REM_INV_REQ_ERR);
  const auto received = collect(c.cq_b.get(), 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, IBV_WC_LOC_LEN_ERR);
}

TEST(Failure, no_receive_within_the_retries) {
  Connected c{{.rnr_retry = 1}};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(post_send(c.qp_a.get(), wr, {sge(c.here.data(), 51, c.from.get())}), 0);
  EXPECT_EQ(c.outcome(), IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST(Failure, wrong_local_key_after_good_requests) {
  Connected c;
  ASSERT_EQ(c.write(c.to->rkey, 0, 100), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(c.there.data());
  wr.wr.rdma.rkey = c.to->rkey;
  ibv_sge bad = sge(c.here.data(), 10, c.from.get());
  bad.lkey ^= 0x33;
  ASSERT_EQ(post_send(c.qp_a.get(), wr, {bad}), 0);
  ASSERT_EQ(c.write(c.to->rkey, 0, 100), 0);
  const auto done = collect(c.cq_a.get(), 3);
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);
}

TEST(Failure, requests_in_error_are_flushed_in_order) {
  Connected c;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(post_recv(c.qp_a.get(), 1, {}), 0);
  ASSERT_EQ(ibv_modify_qp(c.qp_a.get(), &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(post_recv(c.qp_a.get(), 2, {}), 0);
  ASSERT_EQ(c.write(c.to->rkey, 0, 1), 0);
  const auto done = collect(c.cq_a.get(), 3);
  ASSERT_EQ(done.size(), 3U);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(done[0].wr_id, 1U);
  EXPECT_EQ(done[1].wr_id, 2U);
}

TEST(Failure, posting_in_the_wrong_state) {
  const Adapter a;
  const CqPtr cq = a.cq(8);
  const QpPtr qp = make_qp(a, cq.get());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  EXPECT_EQ(post_send(qp.get(), wr), EINVAL);
  EXPECT_EQ(post_recv(qp.get(), 1, {}), 0);
}

TEST(Failure, a_full_queue_says_so) {
  Connected c{{.depth = 4}};
  for (int i = 0; i < 4; ++i) ASSERT_EQ(post_recv(c.qp_a.get(), 1, {}), 0);
  EXPECT_EQ(post_recv(c.qp_a.get(), 1, {}), ENOMEM);
}

TEST(Failure, a_queue_pair_connected_to_itself) {
  const Adapter a;
  std::vector<uint8_t> memory(8192);
  for (size_t i = 0; i < 4096; ++i) memory[i] = static_cast<uint8_t>(i * 3 + 1);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(8);
  const QpPtr qp = make_qp(a, cq.get());
  to_rtr(qp.get(), qp->qp_num, own_gid(a));
  to_rts(qp.get());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory.data()) + 4096;
  wr.wr.rdma.rkey = mr->rkey;
  ASSERT_EQ(post_send(qp.get(), wr, {sge(memory.data(), 4096, mr.get())}), 0);
  const auto done = collect(cq.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 4096, memory.begin() + 4096));
}

// Of a queue pair that is its own peer, too, the request is told that the peer refuses, and not
// that the queue pair went into error before.
TEST(Failure, a_queue_pair_connected_to_itself_is_refused) {
  const Adapter a;
  std::vector<uint8_t> memory(8192);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 3 + i / 256);
  const std::vector<uint8_t> before = memory;
  const MrPtr mr = a.reg(memory.data(), 4096);
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    SCOPED_TRACE(opcode);
    const CqPtr cq = a.cq(8);
    const QpPtr qp = make_qp(a, cq.get());
    to_rtr(qp.get(), qp->qp_num, own_gid(a));
    to_rts(qp.get());
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    const uintptr_t beyond = reinterpret_cast<uintptr_t>(memory.data()) + 4096;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic.remote_addr = beyond;
      wr.wr.atomic.rkey = mr->rkey;
    } else {
      wr.wr.rdma.remote_addr = beyond;
      wr.wr.rdma.rkey = mr->rkey;
    }
    ASSERT_EQ(post_send(qp.get(), wr, {sge(memory.data(), 8, mr.get())}), 0);
    wr.wr_id = 1;
    ASSERT_EQ(post_send(qp.get(), wr, {sge(memory.data(), 8, mr.get())}), 0);
    const auto done = collect(cq.get(), 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(memory, before);
}

// The GID that stands for 127.0.0.1. rdma_cm tells it to programs such as UCX, which give it to
// queue pairs whose own address is another one of this host's.
ibv_gid loopback() {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 127;
  gid.raw[15] = 1;
  return gid;
}

void write_once(const Adapter& a, ibv_qp* qp, ibv_cq* cq) {
  std::vector<uint8_t> memory(8192);
  for (size_t i = 0; i < 4096; ++i) memory[i] = static_cast<uint8_t>(i * 3 + i / 256 + 1);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory.data()) + 4096;
  wr.wr.rdma.rkey = mr->rkey;
  ASSERT_EQ(post_send(qp, wr, {sge(memory.data(), 4096, mr.get())}), 0);
  const auto done = collect(cq, 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 4096, memory.begin() + 4096));
}

TEST(Loopback, is_any_address_of_this_host) {
  const Adapter a;
  const CqPtr cq = a.cq(8);
  const QpPtr first = make_qp(a, cq.get());
  const QpPtr second = make_qp(a, cq.get());
  connect(first.get(), loopback(), second.get(), loopback());
  write_once(a, first.get(), cq.get());
  write_once(a, second.get(), cq.get());
}

TEST(Loopback, is_a_queue_pair_itself) {
  const Adapter a;
  const CqPtr cq = a.cq(8);
  const QpPtr qp = make_qp(a, cq.get());
  to_rtr(qp.get(), qp->qp_num, loopback());
  to_rts(qp.get());
  write_once(a, qp.get(), cq.get());
}

TEST(Failure, a_peer_killed_at_any_moment) {
  constexpr uint64_t kReceive = UINT64_MAX;  // no request has this number, however many there are
  const Adapter a;
  std::vector<uint8_t> memory(PeerProcess::kMemory);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 11 + (i >> 9));
  const MrPtr mr = a.reg(memory.data(), memory.size());
  SeededRandom random{7};
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(round);
    const CqPtr cq = a.cq(256);
    const QpPtr qp = make_qp(a, cq.get());
    PeerProcess peer;
    const PeerCard card = peer.connect_to(qp.get(), own_gid(a));
    ASSERT_EQ(post_recv(qp.get(), kReceive, {}), 0);
    size_t posted = 0;
    size_t done = 0;
    bool failed = false;
    const auto kill_at =
        std::chrono::steady_clock::now() + std::chrono::microseconds{random.next() % 20'000};
    bool killed = false;
    while (!failed || done < posted) {
      if (!killed && std::chrono::steady_clock::now() >= kill_at) {
        killed = true;
        peer.kill_now();
      }
      if (!failed && posted - done < 16) {
        ibv_send_wr wr{};
        wr.wr_id = posted;
        wr.opcode = posted % 3 == 0 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = card.address;
        wr.wr.rdma.rkey = card.rkey;
        ASSERT_EQ(
            post_send(qp.get(), wr, {sge(memory.data(), 1 + random.next() % 100'000, mr.get())}),
            0);
        ++posted;
      }
      const auto some = collect(cq.get(), 1);
      ASSERT_FALSE(some.empty()) << "no completion within ten seconds";
      for (const ibv_wc& wc : some) {
        if (wc.status == IBV_WC_SUCCESS) {
          ASSERT_FALSE(failed);
        } else {
          // The first one not covered is blamed, the rest flushed (spec/rdmap 5.5).
          EXPECT_EQ(wc.status, failed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
          failed = true;
        }
        if (wc.wr_id == kReceive) continue;
        EXPECT_EQ(wc.wr_id, done);
        ++done;
      }
    }
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  }
}

}  // namespace
}  // namespace weft::test
