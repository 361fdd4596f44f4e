// The way through the states (InfiniBand 10.3.1, spec/rdmap 5.2).

#include <cinttypes>

#include "base/log.h"
#include "device/device.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {
namespace {

// Programs ask for every right that they know. A right to flush promises nothing here: only a
// region that has it too can be flushed, and there is none (memory_table.cc).
constexpr uint32_t kQpAccess = access::kRemoteWrite | access::kRemoteRead | access::kRemoteAtomic |
                               access::kLocalWrite | access::kMwBind | access::kFlushGlobal |
                               access::kFlushPersistent;

}  // namespace

Outcome<Ok> QueuePair::check_attributes(const QpAttributes& a, uint32_t mask) const {
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
                     number_.value(), r.name, r.value, r.least, r.most);
    return fail(Errc::invalid);
  }
  constexpr uint32_t kPossible = kQpAccess | access::kOptionalRange;
  if (set(qp_mask::kAccess) && (a.access & ~kPossible) != 0) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: qp_access_flags 0x%x; those of 0x%x are possible",
                     number_.value(), a.access, kPossible);
    return fail(Errc::invalid);
  }
  // The device does not claim IBV_DEVICE_AUTO_PATH_MIG.
  if (set(qp_mask::kAltPath) || (set(qp_mask::kPathMigState) && a.path_mig_state != 0)) {
    WEFT_LOG(info,
             "queue pair 0x%06x: there is no automatic path migration: leave out IBV_QP_ALT_PATH "
             "and every IBV_QP_PATH_MIG_STATE but IBV_MIG_MIGRATED",
             number_.value());
    return fail(Errc::invalid);
  }
  if (set(qp_mask::kAv)) {
    const AddressVector& av = a.av;
    if (av.port != 0 && av.port != device::kPort) {
      WEFT_LOG_REFUSAL("queue pair 0x%06x: ah_attr.port_num is %u; the device has port %u",
                       number_.value(), av.port, device::kPort);
      return fail(Errc::invalid);
    }
    if (av.global && context_.source(av.sgid_index) == nullptr) {
      WEFT_LOG_REFUSAL("queue pair 0x%06x: sgid_index is %u; the GID table has %zu entries",
                       number_.value(), av.sgid_index, context_.device().gids.size());
      return fail(Errc::invalid);
    }
    if (!context_.destination(av)) {
      WEFT_LOG(info,
               "queue pair 0x%06x: the address vector leads nowhere: neither a GID nor a LID that "
               "an IPv4 address "
               "of this host explains",
               number_.value());
      return fail(Errc::invalid);
    }
    // With the number 0 it is rdma_cm that connects, from an address that may be in no table.
    const Qpn peer = set(qp_mask::kDestQpn) ? a.dest_qpn : attributes_.dest_qpn;
    if (!cm_managed_ && peer != Qpn{} && !check_families(av)) return fail(Errc::invalid);
  }
  return Ok{};
}

// No connection leads from IPv4 to IPv6.
bool QueuePair::check_families(const AddressVector& av) const {
  const device::GidEntry* source = context_.source(av.global ? av.sgid_index : 0);
  const auto destination = context_.destination(av);
  if (source == nullptr || source->gid.is_ipv4() == destination->is_ipv4()) return true;
  WEFT_LOG(info,
           "queue pair 0x%06x: its own GID (sgid_index %u) is %s, and the peer's is %s: choose the "
           "sgid_index of an %s address",
           number_.value(), av.global ? av.sgid_index : 0, source->gid.to_string().c_str(),
           destination->to_string().c_str(), destination->is_ipv4() ? "IPv4" : "IPv6");
  return false;
}

void QueuePair::store_attributes(const QpAttributes& a, uint32_t mask) {
  const auto set = [mask](uint32_t bit) { return (mask & bit) != 0; };
  if (set(qp_mask::kAccess)) attributes_.access = a.access;
  if (set(qp_mask::kPkeyIndex)) attributes_.pkey_index = a.pkey_index;
  if (set(qp_mask::kPort)) attributes_.port = a.port;
  if (set(qp_mask::kQkey)) attributes_.qkey = a.qkey;
  if (set(qp_mask::kAv)) attributes_.av = a.av;
  if (set(qp_mask::kPathMtu)) attributes_.path_mtu = a.path_mtu;
  if (set(qp_mask::kTimeout)) attributes_.timeout = a.timeout;
  if (set(qp_mask::kRetryCnt)) attributes_.retry_cnt = a.retry_cnt;
  if (set(qp_mask::kRnrRetry)) attributes_.rnr_retry = a.rnr_retry;
  if (set(qp_mask::kRqPsn)) attributes_.rq_psn = a.rq_psn & 0xffffff;
  if (set(qp_mask::kSqPsn)) attributes_.sq_psn = a.sq_psn & 0xffffff;
  if (set(qp_mask::kMaxQpRdAtomic)) attributes_.max_rd_atomic = a.max_rd_atomic;
  if (set(qp_mask::kMaxDestRdAtomic)) attributes_.max_dest_rd_atomic = a.max_dest_rd_atomic;
  if (set(qp_mask::kMinRnrTimer)) attributes_.min_rnr_timer = a.min_rnr_timer;
  if (set(qp_mask::kDestQpn)) attributes_.dest_qpn = a.dest_qpn;
  if (set(qp_mask::kPathMigState)) attributes_.path_mig_state = a.path_mig_state;
  if (set(qp_mask::kEnSqdNotify)) attributes_.en_sqd_async_notify = a.en_sqd_async_notify;
}

Outcome<Ok> QueuePair::modify(const QpAttributes& a, uint32_t mask) {
  auto h = engine_.hold();
  Outcome<Ok> outcome{fail(Errc::no_memory)};
  // What has begun without memory for it does not come about by itself later.
  engine_.guard(
      h.token(), [&] { outcome = apply(h.token(), a, mask); },
      [&] {
        if (state() > QpState::init) leave_service(h.token());
      });
  publish(h.token());
  return outcome;
}

Outcome<Ok> QueuePair::apply(engine::Token& token, const QpAttributes& a, uint32_t mask) {
  const QpState from = state();
  const QpState to = (mask & qp_mask::kState) != 0 ? a.state : from;
  if ((mask & qp_mask::kCurState) != 0 && a.cur_state != from) return fail(Errc::invalid);
  if (!traits_.allows(from, to, mask)) return fail(Errc::invalid);
  if (auto good = check_attributes(a, mask); !good.ok()) return good;
  store_attributes(a, mask);
  BringUp* bring_up = adapter_.bring_up();
  switch (to) {
    case QpState::reset:
      reset(token);
      return Ok{};
    case QpState::err:
      // After disconnect() it cuts short what still goes out.
      if (from != QpState::err || draining()) leave_service(token);
      return Ok{};
    case QpState::sqd:
      if (from != QpState::sqd) attributes_.sq_draining = true;
      break;
    default:
      break;
  }
  // What was posted by now in SQE, and rang too late.
  if (from == QpState::sqe) flush_sends();
  attributes_.state = to;
  set_state(to);
  transport_->changed(token, from);
  if (to == QpState::sqd) check_drained();
  if ((to == QpState::rtr || to == QpState::rts) && from != to && bring_up != nullptr) {
    bring_up->state_changed(token, *this, from);
  }
  return Ok{};
}

QpAttributes QueuePair::query() {
  auto h = engine_.hold();
  QpAttributes a = attributes_;
  a.state = a.cur_state = state();
  transport_->tell_agreed(a);
  return a;
}

}  // namespace weft::verbs
