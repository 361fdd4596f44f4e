#include "verbs/qp_attributes.h"

#include <cinttypes>

#include "base/log.h"
#include "device/device.h"
#include "verbs/address_handle.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {
namespace {

// Programs ask for every right that they know. A right to flush promises nothing here: only a
// region that has it too can be flushed, and there is none (memory_table.cc).
constexpr uint32_t kQpAccess = access::kRemoteWrite | access::kRemoteRead | access::kRemoteAtomic |
                               access::kLocalWrite | access::kMwBind | access::kFlushGlobal |
                               access::kFlushPersistent;
// One word of flags may be that of a region, too: these say nothing of a queue pair, and no driver
// looks at them.
constexpr uint32_t kOfRegions = access::kZeroBased | access::kOnDemand | access::kHugeTlb;

// No connection leads from IPv4 to IPv6.
bool check_families(const QueuePair& qp, const AddressVector& av) {
  const device::GidEntry* source = source_of(qp.context(), av);
  const auto destination = qp.context().destination(av);
  if (source == nullptr || source->gid.is_ipv4() == destination->is_ipv4()) return true;
  WEFT_LOG(info,
           "queue pair 0x%06x: its own GID (sgid_index %u) is %s, and the peer's is %s: choose the "
           "sgid_index of an %s address",
           qp.number().value(), av.sgid_index, source->gid.to_string().c_str(),
           destination->to_string().c_str(), destination->is_ipv4() ? "IPv4" : "IPv6");
  return false;
}

}  // namespace

Outcome<Ok> check_attributes(const QueuePair& qp, const QpAttributes& a, uint32_t mask) {
  const auto set = [mask](uint32_t bit) { return (mask & bit) != 0; };
  const struct {
    uint32_t bit;
    const char* name;
    uint64_t value, least, most;
  } ranges[] = {
      {qp_mask::kPort, "port_num", a.port, device::kPort, device::kPort},
      {qp_mask::kPkeyIndex, "pkey_index", a.pkey_index, 0, 0},
      {qp_mask::kPathMtu, "path_mtu", a.path_mtu, 1, 5},
      {qp_mask::kMaxQpRdAtomic, "max_rd_atomic", a.max_rd_atomic, 0, device::kMaxReads},
      {qp_mask::kMaxDestRdAtomic, "max_dest_rd_atomic", a.max_dest_rd_atomic, 0, device::kMaxReads},
      {qp_mask::kTimeout, "timeout", a.timeout, 0, 31},
      {qp_mask::kRetryCnt, "retry_cnt", a.retry_cnt, 0, 7},
      {qp_mask::kRnrRetry, "rnr_retry", a.rnr_retry, 0, 7},
      {qp_mask::kMinRnrTimer, "min_rnr_timer", a.min_rnr_timer, 0, 31},
      {qp_mask::kDestQpn, "dest_qp_num", a.dest_qpn.value(), 0, 0xffffff},
  };
  for (const auto& r : ranges) {
    if (!set(r.bit) || (r.value >= r.least && r.value <= r.most)) continue;
    WEFT_LOG_REFUSAL("queue pair 0x%06x: %s is %" PRIu64 "; %" PRIu64 " to %" PRIu64
                     " are possible",
                     qp.number().value(), r.name, r.value, r.least, r.most);
    return fail(Errc::invalid);
  }
  constexpr uint32_t kPossible = kQpAccess | kOfRegions | access::kOptionalRange;
  if (set(qp_mask::kAccess) && (a.access & ~kPossible) != 0) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: qp_access_flags 0x%x; those of 0x%x are possible",
                     qp.number().value(), a.access, kPossible);
    return fail(Errc::invalid);
  }
  // The device does not claim IBV_DEVICE_AUTO_PATH_MIG.
  if (set(qp_mask::kAltPath) || (set(qp_mask::kPathMigState) && a.path_mig_state != 0)) {
    WEFT_LOG(info,
             "queue pair 0x%06x: there is no automatic path migration: leave out IBV_QP_ALT_PATH "
             "and every IBV_QP_PATH_MIG_STATE but IBV_MIG_MIGRATED",
             qp.number().value());
    return fail(Errc::invalid);
  }
  if (set(qp_mask::kAv)) {
    const AddressVector& av = a.av;
    if (av.port != 0 && av.port != device::kPort) {
      WEFT_LOG_REFUSAL("queue pair 0x%06x: ah_attr.port_num is %u; the device has port %u",
                       qp.number().value(), av.port, device::kPort);
      return fail(Errc::invalid);
    }
    if (av.global && qp.context().source(av.sgid_index) == nullptr) {
      WEFT_LOG_REFUSAL("queue pair 0x%06x: sgid_index is %u; the GID table has %zu entries",
                       qp.number().value(), av.sgid_index, qp.context().device().gids.size());
      return fail(Errc::invalid);
    }
    if (!qp.context().destination(av)) {
      WEFT_LOG_REFUSAL(
          "queue pair 0x%06x: the address vector leads nowhere: neither a GID nor a LID that an "
          "IPv4 address of this host explains; set ah_attr.is_global and ah_attr.grh",
          qp.number().value());
      return fail(Errc::invalid);
    }
    // With the number 0 it is rdma_cm that connects, from an address that may be in no table.
    const Qpn peer = set(qp_mask::kDestQpn) ? a.dest_qpn : qp.attributes().dest_qpn;
    if (!qp.cm_managed() && peer != Qpn{} && !check_families(qp, av)) return fail(Errc::invalid);
  }
  return Ok{};
}

void store_attributes(QpAttributes& to, const QpAttributes& a, uint32_t mask) {
  const auto set = [mask](uint32_t bit) { return (mask & bit) != 0; };
  if (set(qp_mask::kAccess)) to.access = a.access;
  if (set(qp_mask::kPkeyIndex)) to.pkey_index = a.pkey_index;
  if (set(qp_mask::kPort)) to.port = a.port;
  if (set(qp_mask::kQkey)) to.qkey = a.qkey;
  if (set(qp_mask::kAv)) to.av = a.av;
  if (set(qp_mask::kPathMtu)) to.path_mtu = a.path_mtu;
  if (set(qp_mask::kTimeout)) to.timeout = a.timeout;
  if (set(qp_mask::kRetryCnt)) to.retry_cnt = a.retry_cnt;
  if (set(qp_mask::kRnrRetry)) to.rnr_retry = a.rnr_retry;
  if (set(qp_mask::kRqPsn)) to.rq_psn = a.rq_psn & 0xffffff;
  if (set(qp_mask::kSqPsn)) to.sq_psn = a.sq_psn & 0xffffff;
  if (set(qp_mask::kMaxQpRdAtomic)) to.max_rd_atomic = a.max_rd_atomic;
  if (set(qp_mask::kMaxDestRdAtomic)) to.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if (set(qp_mask::kMinRnrTimer)) to.min_rnr_timer = a.min_rnr_timer;
  if (set(qp_mask::kDestQpn)) to.dest_qpn = a.dest_qpn;
  if (set(qp_mask::kPathMigState)) to.path_mig_state = a.path_mig_state;
  if (set(qp_mask::kEnSqdNotify)) to.en_sqd_async_notify = a.en_sqd_async_notify;
}

}  // namespace weft::verbs
