#include "abi/ibverbs/attributes.h"

#include <cstring>

#include "abi/ibverbs/enums.h"
#include "base/log.h"

namespace weft::abi {
namespace {

namespace qp_mask = verbs::qp_mask;
static_assert(qp_mask::kState == IBV_QP_STATE && qp_mask::kCurState == IBV_QP_CUR_STATE &&
              qp_mask::kEnSqdNotify == IBV_QP_EN_SQD_ASYNC_NOTIFY &&
              qp_mask::kAccess == IBV_QP_ACCESS_FLAGS && qp_mask::kPkeyIndex == IBV_QP_PKEY_INDEX &&
              qp_mask::kPort == IBV_QP_PORT && qp_mask::kQkey == IBV_QP_QKEY &&
              qp_mask::kAv == IBV_QP_AV && qp_mask::kPathMtu == IBV_QP_PATH_MTU &&
              qp_mask::kTimeout == IBV_QP_TIMEOUT && qp_mask::kRetryCnt == IBV_QP_RETRY_CNT &&
              qp_mask::kRnrRetry == IBV_QP_RNR_RETRY && qp_mask::kRqPsn == IBV_QP_RQ_PSN &&
              qp_mask::kMaxQpRdAtomic == IBV_QP_MAX_QP_RD_ATOMIC &&
              qp_mask::kAltPath == IBV_QP_ALT_PATH &&
              qp_mask::kMinRnrTimer == IBV_QP_MIN_RNR_TIMER && qp_mask::kSqPsn == IBV_QP_SQ_PSN &&
              qp_mask::kMaxDestRdAtomic == IBV_QP_MAX_DEST_RD_ATOMIC &&
              qp_mask::kPathMigState == IBV_QP_PATH_MIG_STATE && qp_mask::kCap == IBV_QP_CAP &&
              qp_mask::kDestQpn == IBV_QP_DEST_QPN && qp_mask::kRateLimit == IBV_QP_RATE_LIMIT);

constexpr bool same(verbs::QpState a, ibv_qp_state b) {
  return static_cast<int>(a) == b;
}
static_assert(same(verbs::QpState::reset, IBV_QPS_RESET) &&
              same(verbs::QpState::init, IBV_QPS_INIT) && same(verbs::QpState::rtr, IBV_QPS_RTR) &&
              same(verbs::QpState::rts, IBV_QPS_RTS) && same(verbs::QpState::sqd, IBV_QPS_SQD) &&
              same(verbs::QpState::sqe, IBV_QPS_SQE) && same(verbs::QpState::err, IBV_QPS_ERR));
static_assert(sizeof(Gid) == sizeof(ibv_gid));

}  // namespace

Gid to_gid(const ibv_gid& gid) {
  Gid out;
  std::memcpy(out.raw.data(), gid.raw, out.raw.size());
  return out;
}

verbs::AddressVector to_vector(const ibv_ah_attr& attr) {
  verbs::AddressVector v;
  v.global = attr.is_global != 0;
  if (v.global) {
    v.dgid = to_gid(attr.grh.dgid);
    v.sgid_index = attr.grh.sgid_index;
    v.hop_limit = attr.grh.hop_limit;
    v.traffic_class = attr.grh.traffic_class;
    v.flow_label = attr.grh.flow_label;
  }
  v.dlid = attr.dlid;
  v.sl = attr.sl;
  v.src_path_bits = attr.src_path_bits;
  v.static_rate = attr.static_rate;
  v.port = attr.port_num;
  return v;
}

ibv_ah_attr to_ah_attr(const verbs::AddressVector& v) {
  ibv_ah_attr attr{};
  std::memcpy(attr.grh.dgid.raw, v.dgid.raw.data(), sizeof attr.grh.dgid.raw);
  attr.grh.sgid_index = v.sgid_index;
  attr.grh.hop_limit = v.hop_limit;
  attr.grh.traffic_class = v.traffic_class;
  attr.grh.flow_label = v.flow_label;
  attr.dlid = v.dlid;
  attr.sl = v.sl;
  attr.src_path_bits = v.src_path_bits;
  attr.static_rate = v.static_rate;
  attr.is_global = v.global ? 1 : 0;
  attr.port_num = v.port;
  return attr;
}

bool to_attributes(const ibv_qp_attr& attr, uint32_t mask, verbs::QpAttributes& out) {
  const auto set = [mask](uint32_t bit) { return (mask & bit) != 0; };
  const struct {
    uint32_t bit;
    const char* name;
    int value, least, most;
  } enums[] = {
      {IBV_QP_STATE, "qp_state", number_of(attr.qp_state), IBV_QPS_RESET, IBV_QPS_ERR},
      {IBV_QP_CUR_STATE, "cur_qp_state", number_of(attr.cur_qp_state), IBV_QPS_RESET, IBV_QPS_ERR},
      {IBV_QP_PATH_MTU, "path_mtu", number_of(attr.path_mtu), IBV_MTU_256, IBV_MTU_4096},
      {IBV_QP_PATH_MIG_STATE, "path_mig_state", number_of(attr.path_mig_state), IBV_MIG_MIGRATED,
       IBV_MIG_ARMED},
  };
  for (const auto& e : enums) {
    if (!set(e.bit) || (e.value >= e.least && e.value <= e.most)) continue;
    WEFT_LOG_REFUSAL("ibv_modify_qp: %s is %d; its enumeration has %d to %d", e.name, e.value,
                     e.least, e.most);
    return false;
  }
  if (set(IBV_QP_STATE)) out.state = static_cast<verbs::QpState>(attr.qp_state);
  if (set(IBV_QP_CUR_STATE)) out.cur_state = static_cast<verbs::QpState>(attr.cur_qp_state);
  if (set(IBV_QP_PATH_MTU)) out.path_mtu = static_cast<uint8_t>(attr.path_mtu);
  if (set(IBV_QP_PATH_MIG_STATE)) out.path_mig_state = static_cast<uint8_t>(attr.path_mig_state);
  out.qkey = attr.qkey;
  out.rq_psn = attr.rq_psn;
  out.sq_psn = attr.sq_psn;
  out.dest_qpn = Qpn{attr.dest_qp_num};
  out.access = attr.qp_access_flags;
  if (set(IBV_QP_AV)) out.av = to_vector(attr.ah_attr);
  out.pkey_index = attr.pkey_index;
  out.port = attr.port_num;
  out.timeout = attr.timeout;
  out.retry_cnt = attr.retry_cnt;
  out.rnr_retry = attr.rnr_retry;
  out.min_rnr_timer = attr.min_rnr_timer;
  out.max_rd_atomic = attr.max_rd_atomic;
  out.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  out.en_sqd_async_notify = attr.en_sqd_async_notify != 0;
  return true;
}

void to_qp_attr(const verbs::QpAttributes& a, ibv_qp_attr& out) {
  out = {};
  out.qp_state = static_cast<ibv_qp_state>(a.state);
  out.cur_qp_state = static_cast<ibv_qp_state>(a.cur_state);
  out.path_mtu = static_cast<ibv_mtu>(a.path_mtu);
  out.path_mig_state = static_cast<ibv_mig_state>(a.path_mig_state);
  out.qkey = a.qkey;
  out.rq_psn = a.rq_psn;
  out.sq_psn = a.sq_psn;
  out.dest_qp_num = a.dest_qpn.value();
  out.qp_access_flags = a.access;
  out.ah_attr = to_ah_attr(a.av);
  out.pkey_index = a.pkey_index;
  out.en_sqd_async_notify = a.en_sqd_async_notify ? 1 : 0;
  out.sq_draining = a.sq_draining ? 1 : 0;
  out.max_rd_atomic = a.max_rd_atomic;
  out.max_dest_rd_atomic = a.max_dest_rd_atomic;
  out.min_rnr_timer = a.min_rnr_timer;
  out.port_num = a.port;
  out.timeout = a.timeout;
  out.retry_cnt = a.retry_cnt;
  out.rnr_retry = a.rnr_retry;
}

ibv_qp_cap to_cap(const verbs::QpLimits& l) {
  return {.max_send_wr = l.max_send_wr,
          .max_recv_wr = l.max_recv_wr,
          .max_send_sge = l.max_send_sge,
          .max_recv_sge = l.max_recv_sge,
          .max_inline_data = l.max_inline};
}

verbs::QpLimits to_limits(const ibv_qp_cap& c) {
  return {.max_send_wr = c.max_send_wr,
          .max_recv_wr = c.max_recv_wr,
          .max_send_sge = c.max_send_sge,
          .max_recv_sge = c.max_recv_sge,
          .max_inline = c.max_inline_data};
}

}  // namespace weft::abi
