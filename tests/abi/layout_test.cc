// The structs that programs and libraries share (spec/abi 3.1), as Debian's
// headers lay them out. A header that disagrees belongs to another rdma-core, whose programs weft
// does not serve. Two structs have grown at their ends by rdma-core 56, which is in order: a
// program says how large its ibv_port_attr is, and asks for the operation at the end of ibv_qp_ex
// first.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <initializer_list>

namespace {

struct Layout {
  const char* what;
  size_t actual;
  size_t expected;
};
// clang-format off
#define SIZE(type, expected) {"sizeof " #type, sizeof(struct type), expected}
#define OFFSET(type, member, expected) {#type "." #member, offsetof(struct type, member), expected}
// clang-format on

void expect(std::initializer_list<Layout> layouts) {
  for (const Layout& l : layouts) EXPECT_EQ(l.actual, l.expected) << l.what;
}

TEST(Layout, Device) {
  expect({SIZE(ibv_device, 664),
          OFFSET(ibv_device, node_type, 16),
          OFFSET(ibv_device, transport_type, 20),
          OFFSET(ibv_device, name, 24),
          OFFSET(ibv_device, dev_name, 88),
          OFFSET(ibv_device, dev_path, 152),
          OFFSET(ibv_device, ibdev_path, 408),
          SIZE(ibv_context, 328),
          OFFSET(ibv_context, device, 0),
          OFFSET(ibv_context, ops, 8),
          OFFSET(ibv_context, cmd_fd, 264),
          OFFSET(ibv_context, async_fd, 268),
          OFFSET(ibv_context, num_comp_vectors, 272),
          OFFSET(ibv_context, mutex, 280),
          OFFSET(ibv_context, abi_compat, 320),
          SIZE(ibv_context_ops, 256),
          OFFSET(ibv_context_ops, poll_cq, 88),
          OFFSET(ibv_context_ops, req_notify_cq, 96),
          OFFSET(ibv_context_ops, post_srq_recv, 160),
          OFFSET(ibv_context_ops, post_send, 200),
          OFFSET(ibv_context_ops, post_recv, 208),
          SIZE(verbs_context, 648),
          OFFSET(verbs_context, query_port, 0),
          OFFSET(verbs_context, sz, 312),
          OFFSET(verbs_context, context, 320),
          SIZE(ibv_device_attr, 232),
          OFFSET(ibv_device_attr, node_guid, 64),
          OFFSET(ibv_device_attr, vendor_id, 96),
          OFFSET(ibv_device_attr, phys_port_cnt, 227),
          SIZE(ibv_device_attr_ex, 400),
          OFFSET(ibv_port_attr, lid, 34),
          OFFSET(ibv_port_attr, link_layer, 46),
          OFFSET(ibv_port_attr, port_cap_flags2, 48),
          SIZE(ibv_gid_entry, 32),
          OFFSET(ibv_gid_entry, gid_type, 24)});
}

TEST(Layout, Objects) {
  expect({SIZE(ibv_pd, 16),
          SIZE(ibv_mr, 48),
          OFFSET(ibv_mr, lkey, 36),
          OFFSET(ibv_mr, rkey, 40),
          SIZE(ibv_ah, 24),
          SIZE(ibv_ah_attr, 32),
          OFFSET(ibv_ah_attr, dlid, 24),
          OFFSET(ibv_ah_attr, is_global, 29),
          SIZE(ibv_srq, 128),
          SIZE(ibv_cq, 128),
          OFFSET(ibv_cq, cqe, 28),
          SIZE(ibv_cq_ex, 288),
          SIZE(ibv_qp, 160),
          OFFSET(ibv_qp, qp_num, 52),
          OFFSET(ibv_qp, state, 56),
          OFFSET(ibv_qp, qp_type, 60),
          OFFSET(ibv_qp_ex, wr_atomic_write, 344),
          OFFSET(ibv_qp_ex, wr_id, 168),
          SIZE(ibv_comp_channel, 16),
          OFFSET(ibv_comp_channel, fd, 8),
          OFFSET(ibv_comp_channel, refcnt, 12)});
}

TEST(Layout, WorkRequests) {
  expect({SIZE(ibv_wc, 48), OFFSET(ibv_wc, byte_len, 20), OFFSET(ibv_wc, qp_num, 28),
          OFFSET(ibv_wc, src_qp, 32), OFFSET(ibv_wc, wc_flags, 36), SIZE(ibv_send_wr, 128),
          OFFSET(ibv_send_wr, opcode, 28), OFFSET(ibv_send_wr, send_flags, 32),
          OFFSET(ibv_send_wr, wr, 40), SIZE(ibv_recv_wr, 32), SIZE(ibv_sge, 16),
          SIZE(ibv_qp_attr, 144), OFFSET(ibv_qp_attr, ah_attr, 56), SIZE(ibv_qp_init_attr, 64),
          SIZE(ibv_qp_init_attr_ex, 136), OFFSET(ibv_qp_init_attr_ex, pd, 64)});
}

TEST(Layout, ConnectionManager) {
  expect({SIZE(rdma_cm_id, 416), OFFSET(rdma_cm_id, verbs, 0), OFFSET(rdma_cm_id, channel, 8),
          OFFSET(rdma_cm_id, qp, 24), OFFSET(rdma_cm_id, route, 32),
          OFFSET(rdma_cm_id, send_cq, 368), SIZE(rdma_cm_event, 80),
          OFFSET(rdma_cm_event, param, 24), SIZE(rdma_conn_param, 24), SIZE(rdma_ud_param, 56),
          SIZE(rdma_addrinfo, 96), SIZE(rdma_event_channel, 4)});
}

// What inline functions of the header look for before they call an operation of verbs_context.
TEST(Extension, IsMarkedByAllOnes) {
  EXPECT_EQ(__VERBS_ABI_IS_EXTENDED, reinterpret_cast<void*>(UINTPTR_MAX));
  EXPECT_EQ(offsetof(verbs_context, context) + sizeof(ibv_context), sizeof(verbs_context));
}

}  // namespace
