// Posting by ibv_wr_start, ibv_wr_..., ibv_wr_complete.
#include <arpa/inet.h>

#include <map>
#include <string>

#include "tests/abi/api_fixture.h"

// In the headers of rdma-core 49 and later.
extern "C" const char* ibv_wr_opcode_str(ibv_wr_opcode opcode);

namespace weft::test {
namespace {

TEST(WorkRequest, OpcodesHaveNames) {
  const std::map<int, std::string> names{{0, "rdma-write"},
                                         {1, "rdma-write-with-imm"},
                                         {2, "send"},
                                         {3, "send-with-imm"},
                                         {4, "rdma-read"},
                                         {5, "atomic-cmp-and-swp"},
                                         {6, "atomic-fetch-and-add"},
                                         {7, "local-inv"},
                                         {8, "bind-mw"},
                                         {9, "send-with-inv"},
                                         {10, "tso"},
                                         {11, "driver1"},
                                         {14, "flush"},
                                         {15, "atomic-write"}};
  for (int number = -2; number < 40; ++number) {
    const auto name = names.find(number);
    EXPECT_EQ(ibv_wr_opcode_str(static_cast<ibv_wr_opcode>(number)),
              name == names.end() ? "unknown" : name->second)
        << number;
  }
}

TEST_F(PairTest, BuiltRequests) {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(a.qp.get());
  ASSERT_NE(qp, nullptr);
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(b.post_recv(id, b.sge(id * 1000, 1000)), 0);
  fill(a.memory.data(), 300, 4);
  std::array<uint8_t, 40> data;
  fill(data.data(), data.size(), 5);

  ibv_wr_start(qp);
  qp->wr_id = 21;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);  // without data
  qp->wr_id = 22;
  qp->wr_flags = 0;
  ibv_wr_send_imm(qp, htonl(7));
  const std::array<ibv_sge, 2> pieces{a.sge(0, 100), a.sge(100, 200)};
  ibv_wr_set_sge_list(qp, pieces.size(), pieces.data());
  qp->wr_id = 23;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  const std::array<ibv_data_buf, 3> buffers{
      {{data.data(), 10}, {data.data() + 10, 0}, {data.data() + 10, 30}}};
  ibv_wr_set_inline_data_list(qp, buffers.size(), buffers.data());
  data.fill(0);
  ASSERT_EQ(ibv_wr_complete(qp), 0);

  EXPECT_EQ(next_completion(b.cq.get()).byte_len, 0U);
  const ibv_wc second = next_completion(b.cq.get());
  EXPECT_EQ(second.byte_len, 300U);
  EXPECT_EQ(second.imm_data, htonl(7));
  EXPECT_TRUE(filled(b.memory.data() + 2000, 300, 4));
  EXPECT_EQ(next_completion(b.cq.get()).byte_len, 40U);
  EXPECT_TRUE(filled(b.memory.data() + 3000, 40, 5));
  EXPECT_EQ(next_completion(a.cq.get()).wr_id, 21U);
  EXPECT_EQ(next_completion(a.cq.get()).wr_id, 23U);
}

TEST_F(PairTest, OneErrorDropsTheWholeList) {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(a.qp.get());
  ASSERT_EQ(b.post_recv(1, b.sge(0, 64)), 0);
  std::array<uint8_t, 2000> data{};
  const auto attempt = [&](auto wrong) {
    ibv_wr_start(qp);
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, data.data(), 8);
    wrong();
    return ibv_wr_complete(qp);
  };
  EXPECT_EQ(attempt([&] { ibv_wr_set_sge(qp, 0, 0, 8); }), EINVAL);  // no operation
  EXPECT_EQ(attempt([&] {
              ibv_wr_send(qp);
              ibv_wr_set_inline_data(qp, data.data(), 65);
            }),
            EINVAL);
  EXPECT_EQ(attempt([&] {
              ibv_wr_send(qp);
              ibv_wr_set_inline_data(qp, data.data(), data.size());
            }),
            EINVAL);
  EXPECT_EQ(attempt([&] {
              ibv_wr_send(qp);
              const std::array<ibv_data_buf, 2> two{{{data.data(), 900}, {data.data(), 900}}};
              ibv_wr_set_inline_data_list(qp, 2, two.data());
            }),
            EINVAL);
  EXPECT_EQ(attempt([&] {
              ibv_wr_send(qp);
              const std::array<ibv_sge, 31> many{};
              ibv_wr_set_sge_list(qp, many.size(), many.data());
            }),
            EINVAL);
  EXPECT_EQ(attempt([&] { ibv_wr_send_tso(qp, data.data(), 8, 100); }), EOPNOTSUPP);
  EXPECT_EQ(attempt([&] {
              for (int i = 0; i < 8; ++i) ibv_wr_send(qp);
            }),
            ENOMEM);
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_abort(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);  // not started
  // None of all that was sent.
  EXPECT_EQ(attempt([] {}), 0);
  EXPECT_EQ(next_completion(b.cq.get()).byte_len, 8U);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a.cq.get(), 1, &wc), 0);
}

// Nothing is bound then, and the window is called as before.
TEST_F(PairTest, AListThatIsNotPostedLeavesWindowsTheirKeys) {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(a.qp.get());
  const Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  ASSERT_NE(mw, nullptr);
  const uint32_t before = mw->rkey;
  const ibv_mw_bind_info info{.mr = a.mr.get(),
                              .addr = a.address(),
                              .length = 100,
                              .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  const auto bind = [&](int times) {
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = IBV_SEND_SIGNALED;
    for (int i = 0; i < times; ++i) ibv_wr_bind_mw(qp, mw.get(), ibv_inc_rkey(mw->rkey), &info);
    EXPECT_NE(mw->rkey, before) << "what follows in the list may use it";
  };
  bind(2);
  ibv_wr_abort(qp);
  EXPECT_EQ(mw->rkey, before);
  bind(2);
  ibv_wr_send_tso(qp, nullptr, 0, 0);
  EXPECT_EQ(ibv_wr_complete(qp), EOPNOTSUPP);
  EXPECT_EQ(mw->rkey, before);
  bind(1);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(mw->rkey, ibv_inc_rkey(before));
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
}

// Lists of two threads do not mix, and none is lost.
TEST_F(PairTest, ThreadsBuildTurnByTurn) {
  constexpr uint64_t kRounds = 300;
  std::atomic<int> wrong{0};
  const auto work = [&](size_t slot) {
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(a.qp.get());
    for (uint64_t i = 1; i <= kRounds && wrong.load() == 0;) {
      ibv_wr_start(qp);
      qp->wr_flags = 0;
      for (size_t part = 0; part < 2; ++part) {
        ibv_wr_rdma_write(qp, b.mr->rkey, b.address(slot * 16 + part * 8));
        uint64_t value = i;
        ibv_wr_set_inline_data(qp, &value, sizeof value);
      }
      const int error = ibv_wr_complete(qp);
      if (error == 0) ++i;
      if (error != 0 && error != ENOMEM) ++wrong;
      // Completions of both threads, all of them errors: none is asked for.
      ibv_wc wc;
      if (ibv_poll_cq(a.cq.get(), 1, &wc) != 0) ++wrong;
    }
  };
  std::thread other{work, 1};
  work(0);
  other.join();
  EXPECT_EQ(wrong.load(), 0);
  // One more, to know that all have arrived.
  ibv_sge s = a.sge(0, 8);
  ibv_send_wr wr{};
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {.remote_addr = b.address(1000), .rkey = b.mr->rkey};
  int error = 0;
  while ((error = a.post(wr)) == ENOMEM) {
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(a.cq.get(), 1, &wc), 0);
  }
  ASSERT_EQ(error, 0);
  ASSERT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  std::array<uint64_t, 4> values{};
  std::memcpy(values.data(), b.memory.data(), sizeof values);
  for (const uint64_t v : values) EXPECT_EQ(v, kRounds);
}

}  // namespace
}  // namespace weft::test
