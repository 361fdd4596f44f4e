// An RC queue pair that is its own peer (spec/addressing 4): all requests, as between two.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <filesystem>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

constexpr size_t kHalf = 4 << 20;

size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator{"/proc/self/fd"}) ++n;
  return n;
}

struct OwnPeer : testing::Test {
  OwnPeer() {
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 3 + (i >> 16));
    }
  }
  void begin() {
    to_rtr(qp.get(), qp->qp_num, own_gid(a));
    to_rts(qp.get());
  }
  ibv_send_wr request(ibv_wr_opcode opcode, size_t to = kHalf) {
    ibv_send_wr wr{};
    wr.wr_id = ++last;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory.data()) + to;
    wr.wr.rdma.rkey = mr->rkey;
    return wr;
  }
  ibv_sge part(size_t from, size_t n) { return sge(memory.data() + from, n, mr.get()); }
  bool halves_agree(size_t n) {
    return std::equal(memory.begin(), memory.begin() + static_cast<ptrdiff_t>(n),
                      memory.begin() + kHalf);
  }
  void expect_done(size_t count) {
    const auto done = collect(cq.get(), count);
    ASSERT_EQ(done.size(), count);
    for (const auto& d : done) EXPECT_EQ(d.status, IBV_WC_SUCCESS) << d.wr_id;
  }

  const Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(2 * kHalf);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(64);
  QpPtr qp = make_qp(a, cq.get());
  uint64_t last = 0;
};

TEST_F(OwnPeer, NeedsNoDescriptor) {
  const size_t before = open_descriptors();
  begin();
  ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE), {part(0, 100)}), 0);
  expect_done(1);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(OwnPeer, WritesAndReadsOfAllSizes) {
  begin();
  for (const size_t n : {size_t{1}, size_t{4096}, size_t{100'001}, size_t{300'000}, kHalf}) {
    SCOPED_TRACE(n);
    std::fill(memory.begin() + kHalf, memory.end(), uint8_t{0});
    ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE), {part(0, n)}), 0);
    expect_done(1);
    EXPECT_TRUE(halves_agree(n));
    // From the front to the back half, once more the other way round.
    std::fill(memory.begin() + kHalf, memory.end(), uint8_t{0});
    ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_READ, 0), {part(kHalf, n)}), 0);
    expect_done(1);
    EXPECT_TRUE(halves_agree(n));
  }
}

TEST_F(OwnPeer, ManyAtOnceAreMoreThanWait) {
  begin();
  constexpr size_t kEach = 64 * 1024;
  for (size_t i = 0; i < 60; ++i) {
    ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE, kHalf + i * kEach),
                        {part(i * kEach, kEach)}),
              0);
  }
  expect_done(60);
  EXPECT_TRUE(halves_agree(60 * kEach));
}

TEST_F(OwnPeer, AMessageWaitsForItsReceive) {
  begin();
  for (size_t i = 0; i < 20; ++i) {
    ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM);
    wr.imm_data = static_cast<uint32_t>(i * 1001);
    ASSERT_EQ(post_send(qp.get(), wr, {part(i * 50'000, 50'000)}), 0);
  }
  ibv_wc none;
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &none), 0);
  for (size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(post_recv(qp.get(), 100 + i, {part(kHalf + i * 50'000, 50'000)}), 0);
  }
  const auto done = collect(cq.get(), 40);
  ASSERT_EQ(done.size(), 40U);
  size_t received = 0;
  for (const auto& d : done) {
    ASSERT_EQ(d.status, IBV_WC_SUCCESS);
    if ((d.opcode & IBV_WC_RECV) == 0) continue;
    EXPECT_EQ(d.wr_id, 100 + received);
    EXPECT_EQ(d.imm_data, received++ * 1001);
  }
  EXPECT_EQ(received, 20U);
  EXPECT_TRUE(halves_agree(20 * 50'000));
}

TEST_F(OwnPeer, AtomicsAreDoneOnce) {
  begin();
  auto* const word = reinterpret_cast<uint64_t*>(memory.data() + kHalf);
  *word = 5;
  for (uint64_t i = 0; i < 10; ++i) {
    ibv_send_wr wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
    wr.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(word);
    wr.wr.atomic.rkey = mr->rkey;
    wr.wr.atomic.compare_add = 3;
    ASSERT_EQ(post_send(qp.get(), wr, {part(8 * i, 8)}), 0);
  }
  expect_done(10);
  EXPECT_EQ(*word, 35U);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(reinterpret_cast<uint64_t*>(memory.data())[i], 5 + 3 * i);
  }
}

// Nobody polls: the program sleeps on its channel.
TEST_F(OwnPeer, WakesAProgramThatSleeps) {
  const std::unique_ptr<ibv_comp_channel, Freer<ibv_comp_channel, ibv_destroy_comp_channel>>
      channel{ibv_create_comp_channel(a.context.get())};
  const CqPtr told = a.cq(8, channel.get());
  const QpPtr sleeper = make_qp(a, told.get());
  to_rtr(sleeper.get(), sleeper->qp_num, own_gid(a));
  to_rts(sleeper.get());
  ASSERT_EQ(ibv_req_notify_cq(told.get(), 0), 0);
  ASSERT_EQ(post_send(sleeper.get(), request(IBV_WR_RDMA_WRITE), {part(0, kHalf)}), 0);
  pollfd p{.fd = channel->fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&p, 1, 20'000), 1);
  ibv_cq* of = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &of, &context), 0);
  ibv_ack_cq_events(of, 1);
  const auto done = collect(told.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_TRUE(halves_agree(kHalf));
}

TEST_F(OwnPeer, AWrongKeyEndsIt) {
  begin();
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
  wr.wr.rdma.rkey ^= 0x55;
  ASSERT_EQ(post_send(qp.get(), wr, {part(0, 100)}), 0);
  ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE), {part(0, 100)}), 0);
  const auto done = collect(cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  // The end that refuses it is also the one whose requests are flushed by that.
  EXPECT_NE(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_FALSE(halves_agree(100));
}

TEST_F(OwnPeer, MemoryThatIsGoneEndsIt) {
  begin();
  void* const gone =
      mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const MrPtr of_gone = a.reg(gone, 1 << 20);
  ASSERT_EQ(mprotect(gone, 1 << 20, PROT_NONE), 0);
  ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE), {sge(gone, 1 << 20, of_gone.get())}),
            0);
  const auto done = collect(cq.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_NE(done[0].status, IBV_WC_SUCCESS);
  munmap(gone, 1 << 20);
}

// And begins anew.
TEST_F(OwnPeer, IsBroughtUpOnceMoreAfterAReset) {
  begin();
  ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE), {part(0, 1000)}), 0);
  expect_done(1);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = kAllAccess;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  begin();
  ASSERT_EQ(post_send(qp.get(), request(IBV_WR_RDMA_WRITE), {part(0, 2000)}), 0);
  expect_done(1);
  EXPECT_TRUE(halves_agree(2000));
}

}  // namespace
}  // namespace weft::test
