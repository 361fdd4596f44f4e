// Posting by ibv_post_send and ibv_post_recv: what is refused, and what arrives.
#include <arpa/inet.h>

#include "tests/abi/api_fixture.h"

namespace weft::test {
namespace {

class RefusalTest : public DeviceTest {
 protected:
  void SetUp() override {
    ibv_qp_init_attr attr = rc_attributes(cq.get());
    qp.reset(ibv_create_qp(pd.get(), &attr));
    ASSERT_NE(qp, nullptr);
  }
  int post_send(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp.get(), &wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  // Up to where nothing is sent, as there is no peer.
  void make_ready() {
    ASSERT_EQ(to_init(qp.get()), 0);
    ASSERT_EQ(to_rtr(qp.get(), 0x345601), 0);
    ASSERT_EQ(to_rts(qp.get()), 0);
  }
  Owned<ibv_cq> cq{ibv_create_cq(context.get(), 100, nullptr, nullptr, 0)};
  Owned<ibv_qp> qp;
};

TEST_F(RefusalTest, TooEarly) {
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_REFUSED(EINVAL, ibv_post_recv(qp.get(), &receive, &bad));
  EXPECT_EQ(bad, &receive);
  EXPECT_REFUSED(EINVAL, post_send(send));
  ASSERT_EQ(to_init(qp.get()), 0);
  EXPECT_EQ(ibv_post_recv(qp.get(), &receive, &bad), 0);
  EXPECT_REFUSED(EINVAL, post_send(send));
  ASSERT_EQ(to_rtr(qp.get(), 0x345601), 0);
  EXPECT_REFUSED(EINVAL, post_send(send));
}

// Of the sentences of `post`, which is refused, the first one that has all of `words` in it.
template <class Post>
void expect_says(Post&& post, std::initializer_list<const char*> words) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(post(), EINVAL);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* word : words)
    EXPECT_NE(said.find(word), std::string::npos) << word << ": " << said;
}

// Level warning has the first of each kind: this needs a process that has said none.
void each_refusal_says_which_limit() {
  const Owned<ibv_context> context = open_device();
  const Owned<ibv_pd> pd{ibv_alloc_pd(context.get())};
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 100, nullptr, nullptr, 0)};
  const auto make = [&](ibv_qp_type type, auto change) {
    ibv_qp_init_attr attr = rc_attributes(cq.get());
    attr.qp_type = type;
    change(attr);
    return Owned<ibv_qp>{ibv_create_qp(pd.get(), &attr)};
  };
  const auto nothing = [](auto&) {};
  const Owned<ibv_qp> qp = make(IBV_QPT_RC, nothing);
  const Owned<ibv_qp> ud = make(IBV_QPT_UD, nothing);
  std::array<uint8_t, 128> data{};
  std::array<ibv_sge, 31> sges{};
  for (ibv_sge& s : sges) s = {.addr = reinterpret_cast<uintptr_t>(data.data()), .length = 1};
  const auto send = [&](ibv_qp* to, auto change) {
    return [&sges, to, change] {
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_SEND;
      wr.sg_list = sges.data();
      wr.num_sge = 1;
      change(wr);
      ibv_send_wr* bad = nullptr;
      return ibv_post_send(to, &wr, &bad);
    };
  };
  const auto receive = [&](ibv_qp* to, int count) {
    return [&sges, to, count] {
      ibv_recv_wr wr{};
      wr.sg_list = sges.data();
      wr.num_sge = count;
      ibv_recv_wr* bad = nullptr;
      return ibv_post_recv(to, &wr, &bad);
    };
  };
  expect_says(receive(qp.get(), 1), {"RESET", "INIT"});
  expect_says(send(qp.get(), nothing), {"RESET", "RTS"});
  ASSERT_EQ(to_init(qp.get()), 0);
  ASSERT_EQ(to_rtr(qp.get(), 0x345601), 0);
  ASSERT_EQ(to_rts(qp.get()), 0);
  expect_says(receive(qp.get(), 5), {"5 segments", "at most 4", "max_recv_sge"});
  const auto five = send(qp.get(), [](auto& w) { w.num_sge = 5; });
  expect_says(five, {"5 segments", "at most 4", "max_send_sge"});
  expect_says(send(qp.get(),
                   [&](auto& w) {
                     sges[0].length = 65;
                     w.send_flags = IBV_SEND_INLINE;
                   }),
              {"65 bytes", "at most 64", "max_inline_data"});
  expect_says(send(qp.get(),
                   [&](auto& w) {
                     sges[0].length = sges[1].length = 1U << 31;
                     w.num_sge = 2;
                   }),
              {"4294967296 bytes", "at most 2147483648"});
  expect_says(send(qp.get(),
                   [&](auto& w) {
                     sges[0].length = 7;
                     w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
                   }),
              {"7 bytes", "needs 8"});
  expect_says(send(qp.get(), [](auto& w) { w.opcode = static_cast<ibv_wr_opcode>(77); }), {"77"});
  expect_says(send(ud.get(), nothing), {"address handle"});
  // Again and again: nothing is said of it at this level.
  testing::internal::CaptureStderr();
  EXPECT_EQ(five(), EINVAL);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");

  const auto not_made = [&](auto change) {
    return [&make, change] { return make(IBV_QPT_RC, change) == nullptr ? errno : 0; };
  };
  expect_says(not_made([](auto& a) { a.cap.max_send_wr = 16385; }),
              {"max_send_wr is 16385", "16384"});
  expect_says(not_made([](auto& a) { a.cap.max_recv_wr = 16386; }),
              {"max_recv_wr is 16386", "16384"});
  expect_says(not_made([](auto& a) { a.cap.max_send_sge = 31; }), {"max_send_sge is 31", "30"});
  expect_says(not_made([](auto& a) { a.cap.max_recv_sge = 32; }), {"max_recv_sge is 32", "30"});

  const Owned<ibv_qp> other = make(IBV_QPT_RC, nothing);
  ASSERT_EQ(to_init(other.get()), 0);
  expect_says(
      [&] {
        ibv_qp_attr attr = rtr_attributes(context.get(), 0x345601);
        attr.max_dest_rd_atomic = 17;
        return ibv_modify_qp(other.get(), &attr, kRtrMask);
      },
      {"max_dest_rd_atomic is 17", "0 to 16"});
}

TEST(Refusals, SayWhichLimitWithBothNumbers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        each_refusal_says_which_limit();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(RefusalTest, Requests) {
  make_ready();
  std::array<uint8_t, 128> data;
  fill(data.data(), data.size(), 1);
  std::array<ibv_sge, 31> sges{};
  for (ibv_sge& s : sges) s = {.addr = reinterpret_cast<uintptr_t>(data.data()), .length = 1};
  const auto send = [&](auto change) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = sges.data();
    wr.num_sge = 1;
    change(wr);
    return post_send(wr);
  };
  EXPECT_REFUSED(EINVAL, send([](auto& w) { w.num_sge = 5; }));
  EXPECT_REFUSED(EINVAL, send([](auto& w) { w.num_sge = -1; }));
  EXPECT_REFUSED(EINVAL, send([](auto& w) { w.opcode = IBV_WR_TSO; }));
  EXPECT_REFUSED(EINVAL, send([](auto& w) { w.opcode = IBV_WR_ATOMIC_WRITE; }));
  EXPECT_REFUSED(EINVAL, send([](auto& w) { w.opcode = static_cast<ibv_wr_opcode>(77); }));
  EXPECT_REFUSED(EINVAL, send([](auto& w) { w.send_flags = IBV_SEND_IP_CSUM; }));
  EXPECT_REFUSED(EINVAL, send([&](auto& w) {
                   sges[0].length = 65;
                   w.send_flags = IBV_SEND_INLINE;
                 }));
  EXPECT_REFUSED(EINVAL, send([](auto& w) {
                   w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
                   w.num_sge = 0;
                 }));
  EXPECT_REFUSED(EINVAL, send([&](auto& w) {
                   sges[0].length = sges[1].length = 1U << 31;
                   w.num_sge = 2;
                 }));
}

TEST_F(RefusalTest, ListsStopAtTheFirstThatIsRefused) {
  make_ready();
  std::array<ibv_send_wr, 4> wr{};
  for (size_t i = 0; i < wr.size(); ++i) {
    wr[i].wr_id = i;
    wr[i].opcode = IBV_WR_SEND;
    wr[i].next = i + 1 < wr.size() ? &wr[i + 1] : nullptr;
  }
  wr[2].opcode = static_cast<ibv_wr_opcode>(77);
  ibv_send_wr* bad = nullptr;
  EXPECT_REFUSED(EINVAL, ibv_post_send(qp.get(), wr.data(), &bad));
  EXPECT_EQ(bad, &wr[2]);
  // What came before it is posted: the flush brings it back.
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0);
  for (uint64_t id = 0; id < 2; ++id) {
    const ibv_wc wc = next_completion(cq.get());
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  }
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
}

TEST_F(RefusalTest, FullQueues) {
  make_ready();
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  int posted = 0;
  int error = 0;
  while ((error = post_send(send)) == 0 && posted < 100) ++posted;
  EXPECT_EQ(error, ENOMEM);
  EXPECT_EQ(posted, 8);
  std::array<ibv_recv_wr, 12> receives{};
  for (size_t i = 0; i + 1 < receives.size(); ++i) receives[i].next = &receives[i + 1];
  ibv_recv_wr* bad = nullptr;
  EXPECT_REFUSED(ENOMEM, ibv_post_recv(qp.get(), receives.data(), &bad));
  EXPECT_EQ(bad, &receives[8]);
}

TEST_F(RefusalTest, ReceivesWithTooManySegments) {
  ASSERT_EQ(to_init(qp.get()), 0);
  std::array<ibv_sge, 5> sges{};
  ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = sges.data(), .num_sge = 5};
  ibv_recv_wr* bad = nullptr;
  EXPECT_REFUSED(EINVAL, ibv_post_recv(qp.get(), &wr, &bad));
  wr.num_sge = -1;
  EXPECT_REFUSED(EINVAL, ibv_post_recv(qp.get(), &wr, &bad));
  wr.num_sge = 4;
  EXPECT_EQ(ibv_post_recv(qp.get(), &wr, &bad), 0);
}

// --- what arrives

TEST_F(PairTest, SendWithImmediate) {
  fill(a.memory.data(), 3000, 1);
  ASSERT_EQ(b.post_recv(11, b.sge(100, 4000)), 0);
  ibv_sge s = a.sge(0, 3000);
  ibv_send_wr wr{};
  wr.wr_id = 12;
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = htonl(0x01020304);
  ASSERT_EQ(a.post(wr), 0);
  const ibv_wc received = next_completion(b.cq.get());
  ASSERT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.wr_id, 11U);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.byte_len, 3000U);
  EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(received.imm_data, htonl(0x01020304));
  EXPECT_EQ(received.qp_num, b.qp->qp_num);
  EXPECT_TRUE(filled(b.memory.data() + 100, 3000, 1));
  EXPECT_EQ(b.memory[99], 0);
  EXPECT_EQ(b.memory[3100], 0);
  const ibv_wc sent = next_completion(a.cq.get());
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.wr_id, 12U);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
  EXPECT_EQ(sent.qp_num, a.qp->qp_num);
}

TEST_F(PairTest, InlineDataMayBeReusedAtOnce) {
  ASSERT_EQ(b.post_recv(1, b.sge(0, 64)), 0);
  std::array<uint8_t, 60> data;
  fill(data.data(), data.size(), 2);
  // Two pieces that no region covers.
  std::array<ibv_sge, 2> pieces{{{reinterpret_cast<uintptr_t>(data.data()), 25, 0},
                                 {reinterpret_cast<uintptr_t>(data.data()) + 25, 35, 0}}};
  ibv_send_wr wr{};
  wr.sg_list = pieces.data();
  wr.num_sge = 2;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_INLINE;
  ASSERT_EQ(a.post(wr), 0);
  data.fill(0);
  ASSERT_EQ(next_completion(b.cq.get()).byte_len, 60U);
  EXPECT_TRUE(filled(b.memory.data(), 60, 2));
}

TEST_F(PairTest, WriteReadAndAtomics) {
  fill(a.memory.data(), 5000, 3);
  ibv_sge s = a.sge(0, 5000);
  ibv_send_wr wr{};
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {.remote_addr = b.address(8), .rkey = b.mr->rkey};
  ASSERT_EQ(a.post(wr), 0);
  ASSERT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(filled(b.memory.data() + 8, 5000, 3));

  s = a.sge(8000, 5000);
  wr.opcode = IBV_WR_RDMA_READ;
  ASSERT_EQ(a.post(wr), 0);
  const ibv_wc read = next_completion(a.cq.get());
  ASSERT_EQ(read.status, IBV_WC_SUCCESS);
  EXPECT_EQ(read.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(read.byte_len, 5000U);
  EXPECT_TRUE(filled(a.memory.data() + 8000, 5000, 3));

  const uint64_t before = 0x0102030405060708;
  std::memcpy(b.memory.data(), &before, 8);
  s = a.sge(16, 8);
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic = {.remote_addr = b.address(), .compare_add = 5, .swap = 0, .rkey = b.mr->rkey};
  ASSERT_EQ(a.post(wr), 0);
  const ibv_wc atomic = next_completion(a.cq.get());
  ASSERT_EQ(atomic.status, IBV_WC_SUCCESS);
  EXPECT_EQ(atomic.opcode, IBV_WC_FETCH_ADD);
  uint64_t got = 0;
  std::memcpy(&got, a.memory.data() + 16, 8);
  EXPECT_EQ(got, before);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic = {
      .remote_addr = b.address(), .compare_add = before + 5, .swap = 99, .rkey = b.mr->rkey};
  ASSERT_EQ(a.post(wr), 0);
  EXPECT_EQ(next_completion(a.cq.get()).opcode, IBV_WC_COMP_SWAP);
  std::memcpy(&got, b.memory.data(), 8);
  EXPECT_EQ(got, 99U);
}

TEST_F(PairTest, WrongKeyIsARemoteAccessError) {
  ibv_sge s = a.sge(0, 16);
  ibv_send_wr wr{};
  wr.wr_id = 5;
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {.remote_addr = b.address(), .rkey = b.mr->rkey + 1};
  ASSERT_EQ(a.post(wr), 0);
  const ibv_wc wc = next_completion(a.cq.get());
  EXPECT_EQ(wc.wr_id, 5U);
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  // Posted afterwards: flushed, signaled or not.
  ASSERT_EQ(a.post(wr), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_WR_FLUSH_ERR);
}

// --- windows

TEST_F(PairTest, RegionsWithWindowsStay) {
  Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1)};
  ASSERT_NE(mw, nullptr);
  const uint32_t before = mw->rkey;
  ibv_mw_bind bind{};
  bind.wr_id = 31;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {.mr = b.mr.get(),
                    .addr = b.address(64),
                    .length = 64,
                    .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(b.qp.get(), mw.get(), &bind), 0);
  EXPECT_EQ(mw->rkey, ibv_inc_rkey(before));
  const ibv_wc bound = next_completion(b.cq.get());
  ASSERT_EQ(bound.status, IBV_WC_SUCCESS);
  EXPECT_EQ(bound.opcode, IBV_WC_BIND_MW);
  EXPECT_EQ(bound.wr_id, 31U);
  EXPECT_REFUSED(EBUSY, ibv_dereg_mr(b.mr.get()));

  fill(a.memory.data(), 64, 6);
  ibv_sge s = a.sge(0, 64);
  ibv_send_wr wr{};
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {.remote_addr = b.address(64), .rkey = mw->rkey};
  ASSERT_EQ(a.post(wr), 0);
  ASSERT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(filled(b.memory.data() + 64, 64, 6));
  mw.reset();
  EXPECT_EQ(ibv_dereg_mr(b.mr.release()), 0);
}

TEST_F(PairTest, BindsThatAreRefused) {
  const Owned<ibv_mw> one{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1)};
  const Owned<ibv_mw> two{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  const Owned<ibv_pd> other{ibv_alloc_pd(context.get())};
  const Owned<ibv_mw> foreign{ibv_alloc_mw(other.get(), IBV_MW_TYPE_2)};
  ibv_mw_bind bind{};
  bind.bind_info = {.mr = a.mr.get(),
                    .addr = a.address(),
                    .length = 8,
                    .mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED};
  EXPECT_REFUSED(EINVAL, ibv_bind_mw(a.qp.get(), one.get(), &bind));
  bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
  EXPECT_REFUSED(EINVAL, ibv_bind_mw(a.qp.get(), two.get(), &bind));
  const auto post = [&](ibv_mw* mw, uint32_t rkey) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = bind.bind_info;
    return a.post(wr);
  };
  EXPECT_REFUSED(EINVAL, post(one.get(), ibv_inc_rkey(one->rkey)));
  EXPECT_REFUSED(EPERM, post(foreign.get(), ibv_inc_rkey(foreign->rkey)));
  bind.bind_info.mr = nullptr;
  EXPECT_REFUSED(EINVAL, post(two.get(), ibv_inc_rkey(two->rkey)));
}

}  // namespace
}  // namespace weft::test
