#include "kit/queue_pair.h"

#include <algorithm>

namespace weft::kit {
namespace {

constexpr uint8_t kPort = 1;

}  // namespace

ibv_context* open_first_device(const VerbsLibrary& verbs) {
  int count = 0;
  ibv_device** list = needed(verbs.get_device_list(&count), "ibv_get_device_list");
  ibv_context* device = count > 0 ? verbs.open_device(list[0]) : nullptr;
  verbs.free_device_list(list);
  if (count == 0) throw Failure{"the library shows no device; see 'weft doctor'"};
  return needed(device, "ibv_open_device");
}

RawGid own_gid(const VerbsLibrary& verbs, ibv_context* device) {
  ibv_gid gid{};
  needed(verbs.query_gid(device, kPort, 0, &gid), "ibv_query_gid");
  return std::to_array(gid.raw);
}

ibv_ah_attr path_to(const RawGid& peer) {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = kPort;
  path.grh.hop_limit = 64;
  std::copy(peer.begin(), peer.end(), path.grh.dgid.raw);
  return path;
}

void to_init(const VerbsLibrary& verbs, ibv_qp* qp, unsigned access, uint32_t qkey) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qkey = qkey;
  attr.qp_access_flags = access;
  int own = IBV_QP_ACCESS_FLAGS;
  if (qp->qp_type == IBV_QPT_UD) own = IBV_QP_QKEY;
  if (qp->qp_type == IBV_QPT_DRIVER) own |= IBV_QP_QKEY;
  needed(verbs.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own),
         "ibv_modify_qp to INIT");
}

void to_rts(const VerbsLibrary& verbs, ibv_qp* qp, const RawGid& peer, uint32_t peer_qpn,
            uint8_t reads) {
  const bool datagrams = qp->qp_type == IBV_QPT_UD || qp->qp_type == IBV_QPT_DRIVER;
  const bool reliable = qp->qp_type == IBV_QPT_RC;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer_qpn;
  attr.max_dest_rd_atomic = reads;
  attr.min_rnr_timer = 12;
  attr.ah_attr = path_to(peer);
  int what = IBV_QP_STATE;
  if (!datagrams) what |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (reliable) what |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  needed(verbs.modify_qp(qp, &attr, what), "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = reads;
  what = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable) {
    what |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  needed(verbs.modify_qp(qp, &attr, what), "ibv_modify_qp to RTS");
}

}  // namespace weft::kit
