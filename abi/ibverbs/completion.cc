#include "abi/ibverbs/completion.h"

#include <arpa/inet.h>

namespace weft::abi {
namespace {

constexpr bool same(verbs::WcOpcode a, ibv_wc_opcode b) {
  return static_cast<int>(a) == b;
}
static_assert(same(verbs::WcOpcode::send, IBV_WC_SEND) &&
              same(verbs::WcOpcode::rdma_write, IBV_WC_RDMA_WRITE) &&
              same(verbs::WcOpcode::rdma_read, IBV_WC_RDMA_READ) &&
              same(verbs::WcOpcode::comp_swap, IBV_WC_COMP_SWAP) &&
              same(verbs::WcOpcode::fetch_add, IBV_WC_FETCH_ADD) &&
              same(verbs::WcOpcode::bind_mw, IBV_WC_BIND_MW) &&
              same(verbs::WcOpcode::local_inv, IBV_WC_LOCAL_INV) &&
              same(verbs::WcOpcode::recv, IBV_WC_RECV) &&
              same(verbs::WcOpcode::recv_rdma_with_imm, IBV_WC_RECV_RDMA_WITH_IMM));
static_assert(verbs::wc_flag::kGrh == IBV_WC_GRH && verbs::wc_flag::kWithImm == IBV_WC_WITH_IMM &&
              verbs::wc_flag::kWithInv == IBV_WC_WITH_INV);

}  // namespace

ibv_wc_status to_status(verbs::Status s) {
  switch (s) {
    case verbs::Status::success:
      return IBV_WC_SUCCESS;
    case verbs::Status::local_length:
      return IBV_WC_LOC_LEN_ERR;
    case verbs::Status::local_qp_operation:
      return IBV_WC_LOC_QP_OP_ERR;
    case verbs::Status::local_protection:
      return IBV_WC_LOC_PROT_ERR;
    case verbs::Status::flushed:
      return IBV_WC_WR_FLUSH_ERR;
    case verbs::Status::window_bind:
      return IBV_WC_MW_BIND_ERR;
    case verbs::Status::remote_invalid_request:
      return IBV_WC_REM_INV_REQ_ERR;
    case verbs::Status::remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case verbs::Status::remote_operation:
      return IBV_WC_REM_OP_ERR;
    case verbs::Status::remote_invalid_rd_request:
      return IBV_WC_REM_INV_RD_REQ_ERR;
    case verbs::Status::retry_exceeded:
      return IBV_WC_RETRY_EXC_ERR;
    case verbs::Status::rnr_retry_exceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case verbs::Status::fatal:
      return IBV_WC_FATAL_ERR;
    case verbs::Status::general:
      return IBV_WC_GENERAL_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

__be32 immediate_or_rkey(const verbs::Completion& c) {
  return (c.flags & verbs::wc_flag::kWithImm) != 0 ? htonl(c.imm_or_rkey) : c.imm_or_rkey;
}

uint16_t observed_port(const ibv_wc& wc) {
  return wc.status == IBV_WC_SUCCESS ? static_cast<uint16_t>(wc.vendor_err) : uint16_t{0};
}

void to_wc(const verbs::Completion& c, ibv_wc& out) {
  out.wr_id = c.wr_id;
  out.status = to_status(c.status);
  out.opcode = static_cast<ibv_wc_opcode>(c.opcode);
  out.vendor_err = c.source_port;
  out.byte_len = c.byte_len;
  out.imm_data = immediate_or_rkey(c);
  out.qp_num = c.qpn.value();
  out.src_qp = c.source_qpn.value();
  out.wc_flags = c.flags;
  out.pkey_index = 0;
  out.slid = c.source_lid;
  out.sl = 0;
  out.dlid_path_bits = 0;
}

}  // namespace weft::abi
