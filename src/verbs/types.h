// Words of InfiniBand verbs, as weft's own types. Where a number also crosses the ABI its value is
// the one of <infiniband/verbs.h>; abi/ checks that.
#pragma once

#include <cstdint>

#include "base/gid.h"
#include "base/result.h"
#include "base/types.h"
#include "work/work_request.h"

namespace weft::work {
class SendQueue;
}

namespace weft::verbs {

// Why a call failed. abi/ makes an errno of it.
enum class Errc : uint8_t {
  invalid,        // EINVAL
  no_memory,      // ENOMEM: also "queue full"
  busy,           // EBUSY
  fault,          // EFAULT: memory is not mapped, or not writable
  not_supported,  // EOPNOTSUPP
  system,         // what the kernel said; it is in the log
};
template <class T>
using Outcome = Result<T, Errc>;

using Status = work::Status;
using work::LocalSegment;

// Access flags of a registration, a window or a queue pair.
namespace access {
inline constexpr uint32_t kLocalWrite = 1;
inline constexpr uint32_t kRemoteWrite = 2;
inline constexpr uint32_t kRemoteRead = 4;
inline constexpr uint32_t kRemoteAtomic = 8;
inline constexpr uint32_t kMwBind = 16;
inline constexpr uint32_t kZeroBased = 32;
inline constexpr uint32_t kOnDemand = 64;
inline constexpr uint32_t kHugeTlb = 128;
// A peer may ask whether what it wrote is to be seen by all, or survives a loss of power
// (IBV_WR_FLUSH, rdma-core 45 and later). This device has no such operation.
inline constexpr uint32_t kFlushGlobal = 0x100;
inline constexpr uint32_t kFlushPersistent = 0x200;
inline constexpr uint32_t kOptionalRange = 0x3ff00000;  // hints: unknown ones are ignored
inline constexpr uint32_t kKnown = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic |
                                   kMwBind | kZeroBased | kHugeTlb | kOptionalRange;
}  // namespace access

enum class WcOpcode : uint8_t {
  send = 0,
  rdma_write = 1,
  rdma_read = 2,
  comp_swap = 3,
  fetch_add = 4,
  bind_mw = 5,
  local_inv = 6,
  recv = 128,
  recv_rdma_with_imm = 129,
};
namespace wc_flag {
inline constexpr uint16_t kGrh = 1;
inline constexpr uint16_t kWithImm = 2;
inline constexpr uint16_t kWithInv = 8;
}  // namespace wc_flag

// A work completion.
struct Completion {
  uint64_t wr_id = 0;
  Status status = Status::success;
  WcOpcode opcode{};
  uint16_t flags = 0;
  uint32_t byte_len = 0;
  uint32_t imm_or_rkey = 0;  // immediate: the four bytes on the wire as a big-endian number
  Qpn qpn;
  Qpn source_qpn;           // UD, RD
  uint16_t source_lid = 0;  // UD, RD
  // UD: the port it came from, where that is not the one in `source_qpn` (a NAT); else 0.
  uint16_t source_port = 0;
  int64_t timestamp = 0;  // ns of CLOCK_REALTIME, only for queues that were created with timestamps
  work::SendQueue* slot_of = nullptr;  // that of a request, which has its slot until this is polled
};

// RD is IBV_QPT_DRIVER, the type of what verbs has no name for.
enum class QpType : uint8_t { rc = 2, uc = 3, ud = 4, rd = 0xff };
enum class QpState : uint8_t { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, err = 6 };

// Of the port there are none: an open device shows the host as it was (device.h).
enum class EventType : uint8_t {
  cq_err = 0,
  qp_fatal = 1,
  qp_req_err = 2,
  qp_access_err = 3,
  comm_est = 4,
  sq_drained = 5,
  srq_limit_reached = 15,
  qp_last_wqe_reached = 16,
};

// Where a queue pair's packets go.
struct AddressVector {
  bool global = false;  // GRH present: the GID counts, not the LID (spec/abi 2.5)
  Gid dgid;
  uint8_t sgid_index = 0;
  uint8_t hop_limit = 0;
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;
  uint16_t dlid = 0;
  uint8_t sl = 0;
  uint8_t src_path_bits = 0;
  uint8_t static_rate = 0;
  uint8_t port = 0;
};

// Bits of the modify and query mask.
namespace qp_mask {
inline constexpr uint32_t kState = 1 << 0;
inline constexpr uint32_t kCurState = 1 << 1;
inline constexpr uint32_t kEnSqdNotify = 1 << 2;
inline constexpr uint32_t kAccess = 1 << 3;
inline constexpr uint32_t kPkeyIndex = 1 << 4;
inline constexpr uint32_t kPort = 1 << 5;
inline constexpr uint32_t kQkey = 1 << 6;
inline constexpr uint32_t kAv = 1 << 7;
inline constexpr uint32_t kPathMtu = 1 << 8;
inline constexpr uint32_t kTimeout = 1 << 9;
inline constexpr uint32_t kRetryCnt = 1 << 10;
inline constexpr uint32_t kRnrRetry = 1 << 11;
inline constexpr uint32_t kRqPsn = 1 << 12;
inline constexpr uint32_t kMaxQpRdAtomic = 1 << 13;
inline constexpr uint32_t kAltPath = 1 << 14;
inline constexpr uint32_t kMinRnrTimer = 1 << 15;
inline constexpr uint32_t kSqPsn = 1 << 16;
inline constexpr uint32_t kMaxDestRdAtomic = 1 << 17;
inline constexpr uint32_t kPathMigState = 1 << 18;
inline constexpr uint32_t kCap = 1 << 19;
inline constexpr uint32_t kDestQpn = 1 << 20;
inline constexpr uint32_t kRateLimit = 1 << 25;
}  // namespace qp_mask

struct QpLimits {
  uint32_t max_send_wr = 0;
  uint32_t max_recv_wr = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_recv_sge = 0;
  uint32_t max_inline = 0;  // bytes
};

struct QpAttributes {
  QpState state = QpState::reset;
  QpState cur_state = QpState::reset;
  uint8_t path_mtu = 0;  // as ibv_mtu
  uint8_t path_mig_state = 0;
  uint32_t qkey = 0;
  uint32_t rq_psn = 0;
  uint32_t sq_psn = 0;
  Qpn dest_qpn;
  uint32_t access = 0;
  AddressVector av;
  uint16_t pkey_index = 0;
  uint8_t port = 0;
  uint8_t timeout = 0;
  uint8_t retry_cnt = 0;
  uint8_t rnr_retry = 0;
  uint8_t min_rnr_timer = 0;
  uint8_t max_rd_atomic = 0;       // ORD
  uint8_t max_dest_rd_atomic = 0;  // IRD
  bool en_sqd_async_notify = false;
  bool sq_draining = false;
};

}  // namespace weft::verbs
