// ibv_alloc_null_mr: reads as zeros, and what is written to it is lost.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

class NullMemory : public testing::TestWithParam<ibv_qp_type> {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < here.size(); ++i) here[i] = static_cast<uint8_t>(i * 7 + i / 251 + 1);
    std::fill(there.begin(), there.end(), uint8_t{0xee});
    connect(qp_a.get(), own_gid(a), qp_b.get(), own_gid(a), {.type = GetParam()});
  }
  ibv_sge nothing(uint64_t address, uint32_t n) const { return {address, n, null->lkey}; }
  void expect_done(ibv_cq* cq, size_t count) {
    const auto done = collect(cq, count);
    ASSERT_EQ(done.size(), count);
    for (const ibv_wc& wc : done) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    }
  }
  void write(std::vector<ibv_sge> pieces) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(there.data());
    wr.wr.rdma.rkey = to->rkey;
    ASSERT_EQ(post_recv(qp_b.get(), 2, {}), 0);
    ASSERT_EQ(post_send(qp_a.get(), wr, std::move(pieces)), 0);
    expect_done(cq_a.get(), 1);
    expect_done(cq_b.get(), 1);
  }
  // What a Write of [100 bytes, n of nothing, 50 bytes] leaves behind.
  void expect_written(size_t n) {
    EXPECT_TRUE(std::equal(here.begin(), here.begin() + 100, there.begin()));
    EXPECT_EQ(std::count(there.begin() + 100, there.begin() + 100 + static_cast<ptrdiff_t>(n), 0),
              static_cast<ptrdiff_t>(n));
    EXPECT_TRUE(std::equal(here.begin() + 100, here.begin() + 150,
                           there.begin() + 100 + static_cast<ptrdiff_t>(n)));
  }

  static constexpr size_t kSize = 5 << 20;  // more than the sink has
  Adapter a;
  std::vector<uint8_t> here = std::vector<uint8_t>(kSize);
  std::vector<uint8_t> there = std::vector<uint8_t>(kSize);
  MrPtr from = a.reg(here.data(), here.size());
  MrPtr to = a.reg(there.data(), there.size());
  MrPtr null{ibv_alloc_null_mr(a.pd.get())};
  CqPtr cq_a = a.cq(64);
  CqPtr cq_b = a.cq(64);
  QpPtr qp_a = make_qp(a, cq_a.get(), {.type = GetParam()});
  QpPtr qp_b = make_qp(a, cq_b.get(), {.type = GetParam()});
};
INSTANTIATE_TEST_SUITE_P(Types, NullMemory, testing::Values(IBV_QPT_RC, IBV_QPT_UC));

TEST_P(NullMemory, reads_as_zeros) {
  ASSERT_NE(null, nullptr);
  for (const size_t n : {size_t{1}, size_t{4000}, size_t{300'000}, kSize - 150}) {
    std::fill(there.begin(), there.end(), uint8_t{0xee});
    write({sge(here.data(), 100, from.get()), nothing(~uint64_t{0} - 7, static_cast<uint32_t>(n)),
           sge(here.data() + 100, 50, from.get())});
    expect_written(n);
  }
}

TEST_P(NullMemory, what_is_written_to_it_is_lost) {
  ASSERT_NE(null, nullptr);
  const auto n = static_cast<uint32_t>(kSize - 1000);
  ASSERT_EQ(post_recv(qp_b.get(), 1, {nothing(0, n), sge(there.data(), 1000, to.get())}), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(post_send(qp_a.get(), wr, {sge(here.data(), kSize, from.get())}), 0);
  expect_done(cq_a.get(), 1);
  expect_done(cq_b.get(), 1);
  EXPECT_TRUE(std::equal(here.end() - 1000, here.end(), there.begin()));
  EXPECT_EQ(std::count(there.begin() + 1000, there.end(), 0xee), kSize - 1000);
  // Nor does it come out again.
  write({sge(here.data(), 100, from.get()), nothing(0, 100'000),
         sge(here.data() + 100, 50, from.get())});
  expect_written(100'000);
}

TEST_P(NullMemory, is_for_its_own_domain_alone) {
  ASSERT_NE(null, nullptr);
  EXPECT_EQ(null->rkey, 0U);
  EXPECT_NE(ibv_rereg_mr(null.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_LOCAL_WRITE),
            0);
  // The peer has no right to it, whatever it guesses.
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.rkey = null->lkey;
  ASSERT_EQ(post_send(qp_a.get(), wr, {sge(here.data(), 100, from.get())}), 0);
  if (GetParam() == IBV_QPT_RC) {
    const auto done = collect(cq_a.get(), 1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_REM_ACCESS_ERR);
  }
  const PdPtr other{ibv_alloc_pd(a.context.get())};
  const MrPtr foreign{ibv_alloc_null_mr(other.get())};
  ASSERT_NE(foreign, nullptr);
  EXPECT_NE(foreign->lkey, null->lkey);
  const QpPtr self = make_qp(a, cq_b.get());
  to_rtr(self.get(), self->qp_num, own_gid(a));
  to_rts(self.get());
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(post_send(self.get(), wr, {sge(nullptr, 10, foreign.get())}), 0);
  const auto done = collect(cq_b.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace weft::test
