// What belongs together: objects of one open device, thread domains and parent domains.
#include <cstddef>
#include <utility>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace weft::test {
namespace {

class DomainTest : public DeviceTest {
 protected:
  ibv_pd* parent_of(ibv_pd* of, ibv_td* td = nullptr, uint32_t options = 0) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = of;
    attr.td = td;
    attr.comp_mask = options;
    return ibv_alloc_parent_domain(context.get(), &attr);
  }
  ibv_td* thread_domain(uint32_t options = 0) {
    ibv_td_init_attr attr{.comp_mask = options};
    return ibv_alloc_td(context.get(), &attr);
  }
};

TEST_F(DomainTest, ObjectsOfAnotherOpenDeviceAreRefused) {
  const Owned<ibv_context> other = open_device();
  const Owned<ibv_pd> other_pd{ibv_alloc_pd(other.get())};
  const Owned<ibv_cq> own_cq{ibv_create_cq(context.get(), 4, nullptr, nullptr, 0)};
  const Owned<ibv_cq> other_cq{ibv_create_cq(other.get(), 4, nullptr, nullptr, 0)};
  const Owned<ibv_comp_channel> other_channel{ibv_create_comp_channel(other.get())};
  EXPECT_NO_OBJECT(EINVAL, ibv_create_cq(context.get(), 4, nullptr, other_channel.get(), 0));

  ibv_qp_init_attr attr = rc_attributes(own_cq.get());
  EXPECT_NO_OBJECT(EINVAL, ibv_create_qp(other_pd.get(), &attr));
  attr.recv_cq = other_cq.get();
  EXPECT_NO_OBJECT(EINVAL, ibv_create_qp(pd.get(), &attr));
  attr = rc_attributes(own_cq.get());
  ibv_srq_init_attr srq_attr{};
  srq_attr.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  const Owned<ibv_srq> srq{ibv_create_srq(other_pd.get(), &srq_attr)};
  attr.srq = srq.get();
  EXPECT_NO_OBJECT(EINVAL, ibv_create_qp(pd.get(), &attr));

  ibv_qp_init_attr_ex ex{};
  ex.send_cq = ex.recv_cq = own_cq.get();
  ex.cap = attr.cap;
  ex.qp_type = IBV_QPT_RC;
  ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  ex.pd = other_pd.get();
  EXPECT_NO_OBJECT(EINVAL, ibv_create_qp_ex(context.get(), &ex));
  ibv_srq_init_attr_ex srq_ex{};
  srq_ex.attr = srq_attr.attr;
  srq_ex.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
  srq_ex.srq_type = IBV_SRQT_BASIC;
  srq_ex.pd = other_pd.get();
  EXPECT_NO_OBJECT(EINVAL, verbs_get_ctx(context.get())->create_srq_ex(context.get(), &srq_ex));
  EXPECT_NO_OBJECT(EINVAL, parent_of(other_pd.get()));
}

// Writes over a field of an object as long as it lives.
template <class Field>
class Damage {
 public:
  Damage(Field& field, Field with) : field_(field), before_(std::exchange(field, with)) {}
  ~Damage() { field_ = before_; }
  Damage(const Damage&) = delete;
  Damage& operator=(const Damage&) = delete;

 private:
  Field& field_;
  Field before_;
};
template <class Object>
Damage<uint32_t> damaged(Object* o) {
  return {o->handle, o->handle ^ 0x5a5a0000U};
}

// The kernel looks objects up by their handles. What it does not find is refused and stays.
TEST_F(DomainTest, ObjectsWithAnotherHandleAreNotFound) {
  std::vector<std::byte> memory(64);
  const Owned<ibv_pd> domain{ibv_alloc_pd(context.get())};
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 4, nullptr, nullptr, 0)};
  ibv_srq_init_attr srq_attr{};
  srq_attr.attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0};
  const Owned<ibv_srq> srq{ibv_create_srq(domain.get(), &srq_attr)};
  const Owned<ibv_mr> mr{
      ibv_reg_mr(domain.get(), memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE)};
  const Owned<ibv_mw> mw{ibv_alloc_mw(domain.get(), IBV_MW_TYPE_1)};
  ibv_ah_attr address{};
  address.port_num = 1;
  address.is_global = 1;
  ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &address.grh.dgid), 0);
  const Owned<ibv_ah> ah{ibv_create_ah(domain.get(), &address)};
  ibv_qp_init_attr attr = rc_attributes(cq.get());
  attr.srq = srq.get();
  const Owned<ibv_qp> qp{ibv_create_qp(domain.get(), &attr)};
  ASSERT_TRUE(srq && mr && mw && ah && qp);

  {
    const auto d = damaged(domain.get());
    EXPECT_REFUSED(ENOENT, ibv_dealloc_pd(domain.get()));
    EXPECT_NO_OBJECT(ENOENT, ibv_reg_mr(domain.get(), memory.data(), memory.size(), 0));
    EXPECT_NO_OBJECT(ENOENT, ibv_alloc_mw(domain.get(), IBV_MW_TYPE_2));
    EXPECT_NO_OBJECT(ENOENT, ibv_create_ah(domain.get(), &address));
    EXPECT_NO_OBJECT(ENOENT, ibv_create_srq(domain.get(), &srq_attr));
    EXPECT_NO_OBJECT(ENOENT, ibv_create_qp(domain.get(), &attr));
  }
  {
    const auto d = damaged(mr.get());
    EXPECT_REFUSED(ENOENT, ibv_dereg_mr(mr.get()));
  }
  {
    const auto d = damaged(mw.get());
    EXPECT_REFUSED(ENOENT, ibv_dealloc_mw(mw.get()));
  }
  {
    const auto d = damaged(ah.get());
    EXPECT_REFUSED(ENOENT, ibv_destroy_ah(ah.get()));
  }
  {
    const auto d = damaged(cq.get());
    EXPECT_REFUSED(ENOENT, ibv_destroy_cq(cq.get()));
    EXPECT_NO_OBJECT(ENOENT, ibv_create_qp(domain.get(), &attr));
  }
  {
    const auto d = damaged(srq.get());
    EXPECT_REFUSED(ENOENT, ibv_destroy_srq(srq.get()));
    EXPECT_NO_OBJECT(ENOENT, ibv_create_qp(domain.get(), &attr));
  }
  {
    const auto d = damaged(qp.get());
    ibv_qp_attr state{};
    state.qp_state = IBV_QPS_ERR;
    EXPECT_REFUSED(ENOENT, ibv_modify_qp(qp.get(), &state, IBV_QP_STATE));
    EXPECT_REFUSED(ENOENT, ibv_query_qp(qp.get(), &state, IBV_QP_STATE, &attr));
    EXPECT_REFUSED(ENOENT, ibv_destroy_qp(qp.get()));
  }
}

TEST_F(DomainTest, ADomainOfAnotherOpenDeviceIsNotFound) {
  const Owned<ibv_context> other = open_device();
  Owned<ibv_pd> domain{ibv_alloc_pd(context.get())};
  {
    const Damage<ibv_context*> d{domain->context, other.get()};
    EXPECT_REFUSED(ENOENT, ibv_dealloc_pd(domain.get()));
  }
  EXPECT_EQ(ibv_dealloc_pd(domain.release()), 0);
}

// A parent domain is another name for its protection domain.
TEST_F(DomainTest, AParentDomainStandsForItsProtectionDomain) {
  Owned<ibv_pd> parent{parent_of(pd.get())};
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "the parent domain is in it";
  std::vector<uint8_t> memory(4096);
  const Owned<ibv_mr> mr{ibv_reg_mr(pd.get(), memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE)};
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 8, nullptr, nullptr, 0)};
  ibv_qp_init_attr attr = rc_attributes(cq.get());
  const Owned<ibv_qp> qp{ibv_create_qp(parent.get(), &attr)};
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(qp->pd, parent.get());
  // A Send to itself, from and to memory of the protection domain.
  ASSERT_EQ(to_init(qp.get()), 0);
  ASSERT_EQ(to_rtr(qp.get(), qp->qp_num), 0);
  ASSERT_EQ(to_rts(qp.get()), 0);
  fill(memory.data(), 100, 3);
  ibv_sge to{reinterpret_cast<uintptr_t>(&memory[1000]), 100, mr->lkey};
  ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &to, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(qp.get(), &receive, &bad), 0);
  ibv_sge from{reinterpret_cast<uintptr_t>(memory.data()), 100, mr->lkey};
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(ibv_post_send(qp.get(), &send, &bad_send), 0);
  EXPECT_EQ(next_completion(cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(filled(&memory[1000], 100, 3));
}

TEST_F(DomainTest, WindowsOutliveTheParentDomainTheyWereMadeIn) {
  Owned<ibv_pd> parent{parent_of(pd.get())};
  const Owned<ibv_mw> window{ibv_alloc_mw(parent.get(), IBV_MW_TYPE_2)};
  ASSERT_NE(window, nullptr);
  parent.reset();
  EXPECT_EQ(ibv_dealloc_pd(pd.get()), EBUSY) << "the window is in it";
}

TEST_F(DomainTest, ThreadDomains) {
  EXPECT_NO_OBJECT(EINVAL, thread_domain(1));
  ibv_td* td = thread_domain();
  ASSERT_NE(td, nullptr);
  EXPECT_EQ(td->context, context.get());
  {
    const Owned<ibv_pd> parent{parent_of(pd.get(), td)};
    ASSERT_NE(parent, nullptr);
    EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
  }
  EXPECT_EQ(ibv_dealloc_td(td), 0);
}

TEST_F(DomainTest, OptionsOfAParentDomain) {
  EXPECT_NO_OBJECT(EINVAL, parent_of(nullptr));
  EXPECT_NO_OBJECT(EOPNOTSUPP, parent_of(pd.get(), nullptr, 1U << 2));
  const Owned<ibv_pd> parent{parent_of(pd.get(), nullptr, IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)};
  EXPECT_NE(parent, nullptr);
}

// As an adapter that keeps its queues elsewhere: it takes them, and calls them for nothing.
TEST_F(DomainTest, AllocatorsOfAParentDomain) {
  EXPECT_NO_OBJECT(EINVAL, parent_of(pd.get(), nullptr, IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS));
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd.get();
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  int calls = 0;
  attr.pd_context = &calls;
  attr.alloc = [](ibv_pd*, void* counter, size_t, size_t, uint64_t) {
    ++*static_cast<int*>(counter);
    return IBV_ALLOCATOR_USE_DEFAULT;
  };
  EXPECT_NO_OBJECT(EINVAL, ibv_alloc_parent_domain(context.get(), &attr));  // no free
  attr.free = [](ibv_pd*, void* counter, void*, uint64_t) { ++*static_cast<int*>(counter); };
  const Owned<ibv_pd> parent{ibv_alloc_parent_domain(context.get(), &attr)};
  ASSERT_NE(parent, nullptr);
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 8, nullptr, nullptr, 0)};
  ibv_qp_init_attr qp_attr = rc_attributes(cq.get());
  EXPECT_NE(Owned<ibv_qp>{ibv_create_qp(parent.get(), &qp_attr)}, nullptr);
  EXPECT_EQ(calls, 0);
}

TEST_F(DomainTest, CompletionQueuesOfAParentDomain) {
  const Owned<ibv_pd> parent{parent_of(pd.get())};
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 4;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = parent.get();
  const Owned<ibv_cq_ex> cq{ibv_create_cq_ex(context.get(), &attr)};
  EXPECT_NE(cq, nullptr);
  attr.parent_domain = pd.get();
  EXPECT_NO_OBJECT(EINVAL, ibv_create_cq_ex(context.get(), &attr));
}

// A hint, which costs nothing to take.
TEST_F(DomainTest, CompletionModerationIsAccepted) {
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 8, nullptr, nullptr, 0)};
  ibv_modify_cq_attr attr{.attr_mask = IBV_CQ_ATTR_MODERATE,
                          .moderate = {.cq_count = 16, .cq_period = 10}};
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
}

// Who is refused is told why, without having asked for it: once for each kind of mistake.
TEST_F(DomainTest, TheFirstRefusalOfAKindIsAWarning) {
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 8, nullptr, nullptr, 0)};
  ibv_modify_cq_attr attr{.attr_mask = 1 << 7, .moderate = {}};
  testing::internal::CaptureStderr();
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), EINVAL);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("attr_mask 0x80"), std::string::npos) << said;
  testing::internal::CaptureStderr();
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), EINVAL);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace weft::test
