// Protection domains, regions, windows, address handles: what is refused, and what is in use.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/abi/api_fixture.h"
#include "tests/support/counted.h"

namespace weft::test {
namespace {

constexpr int kWritable = IBV_ACCESS_LOCAL_WRITE;
constexpr int kHints = IBV_ACCESS_OPTIONAL_RANGE;

class MemoryTest : public DeviceTest {
 protected:
  std::array<uint8_t, 8192> memory{};
};

TEST_F(MemoryTest, DomainsInUseStay) {
  Owned<ibv_mr> mr{ibv_reg_mr(pd.get(), memory.data(), memory.size(), kWritable)};
  ASSERT_NE(mr, nullptr);
  EXPECT_REFUSED(EBUSY, ibv_dealloc_pd(pd.get()));
  mr.reset();
  Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1)};
  EXPECT_REFUSED(EBUSY, ibv_dealloc_pd(pd.get()));
  mw.reset();
  ibv_srq_init_attr srq_attr{.srq_context = nullptr,
                             .attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0}};
  Owned<ibv_srq> srq{ibv_create_srq(pd.get(), &srq_attr)};
  EXPECT_REFUSED(EBUSY, ibv_dealloc_pd(pd.get()));
  srq.reset();
  ibv_ah_attr ah_attr{};
  ah_attr.port_num = 1;
  ah_attr.is_global = 1;
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &ah_attr.grh.dgid), 0);
  Owned<ibv_ah> ah{ibv_create_ah(pd.get(), &ah_attr)};
  ASSERT_NE(ah, nullptr);
  EXPECT_REFUSED(EBUSY, ibv_dealloc_pd(pd.get()));
}

TEST_F(MemoryTest, RegionSaysWhatItIs) {
  Owned<ibv_mr> mr{ibv_reg_mr(pd.get(), memory.data(), memory.size(), kWritable)};
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->context, context.get());
  EXPECT_EQ(mr->pd, pd.get());
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, memory.size());
  EXPECT_NE(mr->lkey, 0U);
}

TEST_F(MemoryTest, RightsThatDoNotGoTogether) {
  const auto reg = [&](int access) {
    return ibv_reg_mr(pd.get(), memory.data(), memory.size(), access);
  };
  EXPECT_NO_OBJECT(EINVAL, reg(IBV_ACCESS_REMOTE_WRITE));
  EXPECT_NO_OBJECT(EINVAL, reg(IBV_ACCESS_REMOTE_ATOMIC));
  EXPECT_NO_OBJECT(EINVAL, reg(kWritable | 1 << 15));
  EXPECT_NO_OBJECT(EINVAL, reg(kWritable | IBV_ACCESS_ON_DEMAND));
  // IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT, which these headers may not have: no
  // peer can flush.
  EXPECT_NO_OBJECT(EINVAL, reg(kWritable | 1 << 8));
  EXPECT_NO_OBJECT(EINVAL, reg(kWritable | 1 << 9));
}

TEST_F(MemoryTest, UnknownHintsAreIgnored) {
  Owned<ibv_mr> mr{ibv_reg_mr(pd.get(), memory.data(), memory.size(), kWritable | kHints)};
  EXPECT_NE(mr, nullptr);
}

TEST_F(MemoryTest, MemoryThatIsNotThere) {
  const Counted refused("registrations_refused");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* hole = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  EXPECT_NO_OBJECT(EFAULT, ibv_reg_mr(pd.get(), hole, 2 * page, kWritable));
  Owned<ibv_mr> readable{ibv_reg_mr(pd.get(), hole, 2 * page, IBV_ACCESS_REMOTE_READ)};
  EXPECT_NE(readable, nullptr);
  readable.reset();
  munmap(static_cast<char*>(hole) + page, page);
  EXPECT_NO_OBJECT(EFAULT, ibv_reg_mr(pd.get(), hole, 2 * page, 0));
  munmap(hole, page);
  refused.expect({{"", 2}});
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_reg_dmabuf_mr(pd.get(), 0, page, 0, 0, kWritable));
}

TEST_F(MemoryTest, Reregistration) {
  Owned<ibv_pd> other{ibv_alloc_pd(context.get())};
  Owned<ibv_mr> mr{ibv_reg_mr(pd.get(), memory.data(), 4096, kWritable)};
  ASSERT_NE(mr, nullptr);
  const uint32_t key = mr->lkey;
  const auto refused = [&](int error, int flags, ibv_pd* p, void* address, size_t length,
                           int access) {
    errno = 0;
    EXPECT_EQ(ibv_rereg_mr(mr.get(), flags, p, address, length, access), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, error);
  };
  refused(EINVAL, 0, nullptr, nullptr, 0, 0);
  refused(EINVAL, IBV_REREG_MR_FLAGS_SUPPORTED + 1, nullptr, nullptr, 0, 0);
  refused(EINVAL, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 4096, 0);
  refused(EINVAL, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data(), 0, 0);
  refused(EINVAL, IBV_REREG_MR_CHANGE_PD, other.get(), nullptr, 0, kWritable);
  refused(EINVAL, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->pd, pd.get());

  ASSERT_EQ(ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD,
                         other.get(), &memory[4096], 100, 0),
            0);
  EXPECT_EQ(mr->addr, &memory[4096]);
  EXPECT_EQ(mr->length, 100U);
  EXPECT_EQ(mr->pd, other.get());
  EXPECT_EQ(mr->lkey, key);
  EXPECT_REFUSED(EBUSY, ibv_dealloc_pd(other.get()));
  EXPECT_EQ(ibv_dealloc_pd(pd.release()), 0);
}

TEST_F(MemoryTest, WindowTypes) {
  Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  ASSERT_NE(mw, nullptr);
  EXPECT_EQ(mw->type, IBV_MW_TYPE_2);
  EXPECT_NE(mw->rkey, 0U);
  EXPECT_NO_OBJECT(EINVAL, ibv_alloc_mw(pd.get(), static_cast<ibv_mw_type>(3)));
}

class WindowTest : public PairTest {
 protected:
  int bind(const Side& by, ibv_mw* mw, uint32_t key, uint64_t wr_id) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw = {
        mw, key, {a.mr.get(), a.address(), 4096, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}};
    return by.post(wr);
  }
  // What b gets when it writes through `key`.
  ibv_wc_status write_by(uint32_t key) {
    ibv_sge from = b.sge(0, 8);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.wr.rdma = {.remote_addr = a.address(), .rkey = key};
    EXPECT_EQ(b.post(wr), 0);
    return next_completion(b.cq.get()).status;
  }
  // One Write over the connection: it is there.
  void connected() { ASSERT_EQ(write_by(a.mr->rkey), IBV_WC_SUCCESS); }
};

// In SQD requests wait, and the program may give up what they are about.
TEST_F(WindowTest, ABindThatWaitsWhileItsWindowGoes) {
  connected();
  ibv_mw* mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2);
  ASSERT_NE(mw, nullptr);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_SQD), 0);
  const uint32_t key = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(bind(a, mw, key, 7), 0);
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_RTS), 0);
  const ibv_wc wc = next_completion(a.cq.get());
  EXPECT_EQ(wc.wr_id, 7U);
  EXPECT_EQ(wc.status, IBV_WC_MW_BIND_ERR) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(ibv_dereg_mr(a.mr.release()), 0) << "nothing opens on it";
}

// The peer of another queue pair is asked, for the bind that failed has ended its own.
TEST_F(WindowTest, TheKeyOfAWindowThatIsGoneIsDead) {
  connected();
  ibv_mw* mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_1);
  ASSERT_NE(mw, nullptr);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_SQD), 0);
  ibv_mw_bind request{};
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_info = {a.mr.get(), a.address(), 4096, IBV_ACCESS_REMOTE_WRITE};
  ASSERT_EQ(ibv_bind_mw(a.qp.get(), mw, &request), 0);
  const uint32_t key = mw->rkey;
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_RTS), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_MW_BIND_ERR);
  fill(a.memory.data(), 8, 1);
  fill(b.memory.data(), 8, 2);
  EXPECT_NE(write_by(key), IBV_WC_SUCCESS);
  EXPECT_TRUE(filled(a.memory.data(), 8, 1)) << "the peer wrote through it";
}

// The region goes first: busy only while a window is bound.
TEST_F(WindowTest, ABindThatWaitsWhileItsRegionGoes) {
  connected();
  const Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  ASSERT_NE(mw, nullptr);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_SQD), 0);
  ASSERT_EQ(bind(a, mw.get(), ibv_inc_rkey(mw->rkey), 7), 0);
  EXPECT_EQ(ibv_dereg_mr(a.mr.release()), 0);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_RTS), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_MW_BIND_ERR);
}

// InfiniBand 10.6.7.2.1: the program's word for the key is its last 8 bits; what stands above them
// is the window's, and the window says the whole.
TEST_F(WindowTest, AKeyIsChosenByItsLastBits) {
  connected();
  const Owned<ibv_mw> one{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  const Owned<ibv_mw> two{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  const uint32_t index = two->rkey >> 8;
  for (ibv_mw* mw : {one.get(), two.get()}) {
    ASSERT_EQ(bind(a, mw, 0xabcdef5a, 7), 0);
    EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(two->rkey, index << 8 | 0x5a);
  EXPECT_NE(one->rkey, two->rkey);
  EXPECT_EQ(write_by(one->rkey), IBV_WC_SUCCESS);
  EXPECT_EQ(write_by(two->rkey), IBV_WC_SUCCESS);
}

TEST_F(WindowTest, TheBuilderGivesAWindowItsKey) {
  const Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = a.cq.get();
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.qp_type = IBV_QPT_RC;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = pd.get();
  init.send_ops_flags = IBV_QP_EX_WITH_BIND_MW;
  const Owned<ibv_qp> qp{ibv_create_qp_ex(context.get(), &init)};
  ASSERT_NE(qp, nullptr);
  ASSERT_EQ(to_state(qp.get(), IBV_QPS_ERR), 0);
  ibv_qp_ex* builder = ibv_qp_to_qp_ex(qp.get());
  const uint32_t index = mw->rkey >> 8;
  const ibv_mw_bind_info info{a.mr.get(), a.address(), 4096, IBV_ACCESS_REMOTE_WRITE};
  ibv_wr_start(builder);
  ibv_wr_bind_mw(builder, mw.get(), 0x77, &info);
  EXPECT_EQ(ibv_wr_complete(builder), 0);
  EXPECT_EQ(mw->rkey, index << 8 | 0x77);
}

// InfiniBand 10.6.7.2.2.
TEST_F(WindowTest, AWindowOfType2IsInvalidatedBeforeItIsBoundAnew) {
  connected();
  const Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  ASSERT_EQ(bind(a, mw.get(), 1, 7), 0);
  ASSERT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  const uint32_t bound = mw->rkey;
  ibv_send_wr invalidate{};
  invalidate.opcode = IBV_WR_LOCAL_INV;
  invalidate.invalidate_rkey = bound;
  ASSERT_EQ(a.post(invalidate), 0);
  ASSERT_EQ(bind(a, mw.get(), 2, 8), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(write_by(mw->rkey), IBV_WC_SUCCESS);
  ASSERT_EQ(bind(a, mw.get(), 3, 9), 0);
  const ibv_wc wc = next_completion(a.cq.get());
  EXPECT_EQ(wc.wr_id, 9U);
  EXPECT_EQ(wc.status, IBV_WC_MW_BIND_ERR) << ibv_wc_status_str(wc.status);
}

TEST_F(WindowTest, AWindowOfType2IsNotBoundToNothing) {
  connected();
  const Owned<ibv_mw> mw{ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2)};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw = {mw.get(), 1, {a.mr.get(), a.address(), 0, IBV_ACCESS_REMOTE_READ}};
  ASSERT_EQ(a.post(wr), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_MW_BIND_ERR);
}

// Each of two queue pairs has one waiting; the window goes when the first was carried out.
TEST_F(WindowTest, BindsThatWaitOnTwoQueuePairs) {
  connected();
  ibv_mw* mw = ibv_alloc_mw(pd.get(), IBV_MW_TYPE_2);
  ASSERT_NE(mw, nullptr);
  const uint32_t first = ibv_inc_rkey(mw->rkey);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_SQD), 0);
  ASSERT_EQ(to_state(b.qp.get(), IBV_QPS_SQD), 0);
  ASSERT_EQ(bind(a, mw, first, 7), 0);
  ASSERT_EQ(bind(b, mw, ibv_inc_rkey(first), 8), 0);
  ASSERT_EQ(to_state(a.qp.get(), IBV_QPS_RTS), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_REFUSED(EBUSY, ibv_dereg_mr(a.mr.get()));
  EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  ASSERT_EQ(to_state(b.qp.get(), IBV_QPS_RTS), 0);
  const ibv_wc wc = next_completion(b.cq.get());
  EXPECT_EQ(wc.wr_id, 8U);
  EXPECT_EQ(wc.status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(ibv_dereg_mr(a.mr.release()), 0);
}

TEST_F(MemoryTest, NoAddressHandleLeadsFromOneFamilyToAnother) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  attr.is_global = 1;
  ibv_gid own{};
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &own), 0);
  const bool ipv4 = own.raw[10] == 0xff;
  const ibv_gid v4{.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 9}};
  const ibv_gid v6{.raw = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};
  attr.grh.dgid = ipv4 ? v6 : v4;
  testing::internal::CaptureStderr();
  EXPECT_NO_OBJECT(EINVAL, ibv_create_ah(pd.get(), &attr));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(ipv4 ? "2001:db8::9" : "192.0.2.9"), std::string::npos) << said;
  attr.grh.dgid = ipv4 ? v4 : v6;
  const Owned<ibv_ah> ah{ibv_create_ah(pd.get(), &attr)};
  EXPECT_NE(ah, nullptr);
}

TEST_F(MemoryTest, AddressesThatLeadNowhere) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  EXPECT_NO_OBJECT(EINVAL, ibv_create_ah(pd.get(), &attr));  // neither GID nor LID
  attr.is_global = 1;
  EXPECT_NO_OBJECT(EINVAL, ibv_create_ah(pd.get(), &attr));  // GID of zeros
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &attr.grh.dgid), 0);
  attr.grh.sgid_index = 200;
  EXPECT_NO_OBJECT(EINVAL, ibv_create_ah(pd.get(), &attr));
  attr.grh.sgid_index = 0;
  attr.port_num = 2;
  EXPECT_NO_OBJECT(EINVAL, ibv_create_ah(pd.get(), &attr));
  attr.port_num = 1;
  const Owned<ibv_ah> ah{ibv_create_ah(pd.get(), &attr)};
  EXPECT_NE(ah, nullptr);
}

// A datagram's header: IPv4 in the last 20 bytes of the 40 (spec/wdp-ud 3.2).
class ReplyTest : public MemoryTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &own), 0);
    if (own.raw[10] != 0xff) GTEST_SKIP() << "no IPv4 address on this host";
    ipv4[0] = 0x45;
    ipv4[8] = 63;
    const uint8_t sender[4] = {192, 0, 2, 77};
    std::memcpy(ipv4 + 12, sender, 4);
    std::memcpy(ipv4 + 16, own.raw + 12, 4);
    wc.wc_flags = IBV_WC_GRH;
  }
  ibv_gid own{};
  alignas(ibv_grh) std::array<uint8_t, 40> bytes{};
  uint8_t* ipv4 = bytes.data() + 20;
  ibv_wc wc{};
  ibv_grh* grh() { return reinterpret_cast<ibv_grh*>(bytes.data()); }
};

TEST_F(ReplyTest, GoesBackToTheSender) {
  ibv_ah_attr attr;
  ASSERT_EQ(ibv_init_ah_from_wc(context.get(), 1, &wc, grh(), &attr), 0);
  EXPECT_EQ(attr.is_global, 1);
  EXPECT_EQ(attr.grh.sgid_index, 0);
  EXPECT_EQ(attr.grh.hop_limit, 63);
  const uint8_t expected[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 77};
  EXPECT_EQ(std::memcmp(attr.grh.dgid.raw, expected, 16), 0);
  const Owned<ibv_ah> ah{ibv_create_ah_from_wc(pd.get(), &wc, grh(), 1)};
  EXPECT_NE(ah, nullptr);
}

TEST_F(ReplyTest, ToSomebodyElsesAddressIsRefused) {
  ipv4[16] = 198;
  ibv_ah_attr attr;
  errno = 0;
  EXPECT_EQ(ibv_init_ah_from_wc(context.get(), 1, &wc, grh(), &attr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(ibv_create_ah_from_wc(pd.get(), &wc, grh(), 1), nullptr);
}

TEST_F(ReplyTest, NeitherIpv4NorIpv6) {
  ipv4[0] = 0;
  ibv_ah_attr attr;
  errno = 0;
  EXPECT_EQ(ibv_init_ah_from_wc(context.get(), 1, &wc, grh(), &attr), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
}

TEST_F(ReplyTest, WithoutHeaderTheLidCounts) {
  wc.wc_flags = 0;
  wc.slid = 7;
  ibv_ah_attr attr;
  ASSERT_EQ(ibv_init_ah_from_wc(context.get(), 1, &wc, nullptr, &attr), 0);
  EXPECT_EQ(attr.is_global, 0);
  EXPECT_EQ(attr.dlid, 7);
}

}  // namespace
}  // namespace weft::test
