// Ids whose queue pairs are not RC.
#pragma once

#include "tests/abi/cm_fixture.h"

namespace weft::test {

inline int create_qp(rdma_cm_id* id, ibv_qp_type type, uint32_t receives = 8) {
  ibv_qp_init_attr a = qp_attributes();
  a.qp_type = type;
  a.cap.max_recv_wr = receives;
  return rdma_create_qp(id, nullptr, &a);
}

// Whatever comes within `seconds`.
inline OwnedEvent late_event(rdma_event_channel* channel, int seconds) {
  pollfd p{channel->fd, POLLIN, 0};
  if (poll(&p, 1, seconds * 1000) != 1) return nullptr;
  rdma_cm_event* e = nullptr;
  return rdma_get_cm_event(channel, &e) == 0 ? OwnedEvent{e} : nullptr;
}

inline std::vector<uint8_t> datagram_data(const rdma_cm_event& e) {
  const auto* p = static_cast<const uint8_t*>(e.param.ud.private_data);
  return {p, p + e.param.ud.private_data_len};
}

constexpr size_t kGrh = 40;

// A UD queue pair's memory, with a receive posted for each of `slots` messages of up to 1000 bytes.
class Mailbox {
 public:
  Mailbox(rdma_cm_id* id, size_t slots) : id_(id), memory_(slots * kSlot + kSlot) {
    mr_ = rdma_reg_msgs(id, memory_.data(), memory_.size());
    EXPECT_NE(mr_, nullptr);
    for (size_t i = 0; i < slots; ++i) {
      EXPECT_OK(rdma_post_recv(id, slot(i), slot(i), kSlot, mr_));
    }
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    if (mr_ != nullptr) rdma_dereg_mr(mr_);
  }

  void send(ibv_ah* ah, uint32_t qpn, uint32_t q_key, const std::vector<uint8_t>& data) {
    uint8_t* out = slot(memory_.size() / kSlot - 1);
    std::copy(data.begin(), data.end(), out);
    ibv_sge piece{reinterpret_cast<uintptr_t>(out), static_cast<uint32_t>(data.size()), mr_->lkey};
    ibv_send_wr w{};
    w.sg_list = &piece;
    w.num_sge = 1;
    w.opcode = IBV_WR_SEND;
    w.send_flags = IBV_SEND_SIGNALED;
    w.wr.ud.ah = ah;
    w.wr.ud.remote_qpn = qpn;
    w.wr.ud.remote_qkey = q_key;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(id_->qp, &w, &bad), 0);
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_send_comp(id_, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  }

  // The next message, its completion and header; ten seconds at most.
  std::vector<uint8_t> receive(ibv_wc& wc, ibv_grh& grh) {
    const time_t until = time(nullptr) + 10;
    int n = 0;
    while ((n = ibv_poll_cq(id_->recv_cq, 1, &wc)) == 0 && time(nullptr) < until) {
    }
    EXPECT_EQ(n, 1) << "no message came";
    if (n != 1) return {};
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0U);
    const auto* p = reinterpret_cast<const uint8_t*>(wc.wr_id);
    std::memcpy(&grh, p, sizeof grh);
    return {p + kGrh, p + wc.byte_len};
  }
  std::vector<uint8_t> receive() {
    ibv_wc wc{};
    ibv_grh grh{};
    return receive(wc, grh);
  }
  bool empty() const {
    ibv_wc wc{};
    return ibv_poll_cq(id_->recv_cq, 1, &wc) == 0;
  }

 private:
  static constexpr size_t kSlot = kGrh + 1000;
  uint8_t* slot(size_t i) { return &memory_[i * kSlot]; }
  rdma_cm_id* id_;
  std::vector<uint8_t> memory_;
  ibv_mr* mr_ = nullptr;
};

struct DestroyAh {
  void operator()(ibv_ah* ah) const { EXPECT_EQ(ibv_destroy_ah(ah), 0); }
};
using OwnedAh = std::unique_ptr<ibv_ah, DestroyAh>;

}  // namespace weft::test
