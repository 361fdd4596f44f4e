#include "verbs/qp_types.h"

#include <algorithm>
#include <array>
#include <utility>

#include "verbs/destination.h"
#include "verbs/rc_transport.h"
#include "verbs/rd_transport.h"
#include "verbs/uc_transport.h"
#include "verbs/ud_transport.h"

namespace weft::verbs {
namespace {

using namespace qp_mask;
using enum QpState;
using work::Operation;

// --- operations

constexpr uint32_t kSends = bit_of(Operation::send) | bit_of(Operation::send_immediate);
constexpr uint32_t kAtomics = bit_of(Operation::fetch_add) | bit_of(Operation::compare_swap);
constexpr uint32_t kConnected = kSends | bit_of(Operation::send_invalidate) |
                                bit_of(Operation::write) | bit_of(Operation::write_immediate) |
                                bit_of(Operation::read) | bit_of(Operation::local_invalidate) |
                                bit_of(Operation::bind_window);

// --- attributes

constexpr std::array<std::pair<uint32_t, const char*>, 22> kAttributeNames = {{
    {kState, "IBV_QP_STATE"},
    {kCurState, "IBV_QP_CUR_STATE"},
    {kEnSqdNotify, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    {kAccess, "IBV_QP_ACCESS_FLAGS"},
    {kPkeyIndex, "IBV_QP_PKEY_INDEX"},
    {kPort, "IBV_QP_PORT"},
    {kQkey, "IBV_QP_QKEY"},
    {kAv, "IBV_QP_AV"},
    {kPathMtu, "IBV_QP_PATH_MTU"},
    {kTimeout, "IBV_QP_TIMEOUT"},
    {kRetryCnt, "IBV_QP_RETRY_CNT"},
    {kRnrRetry, "IBV_QP_RNR_RETRY"},
    {kRqPsn, "IBV_QP_RQ_PSN"},
    {kMaxQpRdAtomic, "IBV_QP_MAX_QP_RD_ATOMIC"},
    {kAltPath, "IBV_QP_ALT_PATH"},
    {kMinRnrTimer, "IBV_QP_MIN_RNR_TIMER"},
    {kSqPsn, "IBV_QP_SQ_PSN"},
    {kMaxDestRdAtomic, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    {kPathMigState, "IBV_QP_PATH_MIG_STATE"},
    {kCap, "IBV_QP_CAP"},
    {kDestQpn, "IBV_QP_DEST_QPN"},
    {kRateLimit, "IBV_QP_RATE_LIMIT"},
}};

std::string names_of(uint32_t mask) {
  std::string names;
  for (const auto& [bit, name] : kAttributeNames) {
    if ((mask & bit) == 0) continue;
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

// --- transitions

constexpr std::array<QpTransition, 9> kRc = {{
    {reset, init, kPkeyIndex | kPort | kAccess, 0},
    {init, init, 0, kPkeyIndex | kPort | kAccess},
    {init, rtr, kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
     kAltPath | kAccess | kPkeyIndex},
    {rtr, rts, kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxQpRdAtomic,
     kCurState | kAltPath | kAccess | kMinRnrTimer | kPathMigState},
    {rts, rts, 0, kCurState | kAccess | kAltPath | kPathMigState | kMinRnrTimer},
    {rts, sqd, 0, kEnSqdNotify},
    {sqd, rts, 0, kCurState | kAccess | kAltPath | kPathMigState | kMinRnrTimer},
    {sqd, sqd, 0,
     kPort | kAv | kTimeout | kRetryCnt | kRnrRetry | kMaxQpRdAtomic | kMaxDestRdAtomic | kAltPath |
         kCurState | kAccess | kPkeyIndex | kMinRnrTimer | kPathMigState},
    {sqe, rts, 0, 0},
}};

constexpr std::array<QpTransition, 9> kUc = {{
    {reset, init, kPkeyIndex | kPort | kAccess, 0},
    {init, init, 0, kPkeyIndex | kPort | kAccess},
    {init, rtr, kAv | kPathMtu | kDestQpn | kRqPsn, kAltPath | kAccess | kPkeyIndex},
    {rtr, rts, kSqPsn, kCurState | kAltPath | kAccess | kPathMigState},
    {rts, rts, 0, kCurState | kAccess | kAltPath | kPathMigState},
    {rts, sqd, 0, kEnSqdNotify},
    {sqd, rts, 0, kCurState | kAccess | kAltPath | kPathMigState},
    {sqd, sqd, 0, kPort | kAv | kAltPath | kCurState | kAccess | kPkeyIndex | kPathMigState},
    {sqe, rts, 0, kCurState | kAccess},
}};

constexpr std::array<QpTransition, 9> kUd = {{
    {reset, init, kPkeyIndex | kPort | kQkey, 0},
    {init, init, 0, kPkeyIndex | kPort | kQkey},
    {init, rtr, 0, kPkeyIndex | kQkey},
    {rtr, rts, kSqPsn, kCurState | kQkey},
    {rts, rts, 0, kCurState | kQkey},
    {rts, sqd, 0, kEnSqdNotify},
    {sqd, rts, 0, kCurState | kQkey},
    {sqd, sqd, 0, kPkeyIndex | kQkey},
    {sqe, rts, 0, kCurState | kQkey},
}};

// EFA's queue pairs of type SRD take these; UD's with access flags and rnr_retry, if a program has
// anything to say about them.
constexpr std::array<QpTransition, 9> kRd = {{
    {reset, init, kPkeyIndex | kPort | kQkey, kAccess},
    {init, init, 0, kPkeyIndex | kPort | kQkey | kAccess},
    {init, rtr, 0, kPkeyIndex | kQkey | kAccess},
    {rtr, rts, kSqPsn, kCurState | kQkey | kAccess | kRnrRetry},
    {rts, rts, 0, kCurState | kQkey | kAccess | kRnrRetry},
    {rts, sqd, 0, kEnSqdNotify},
    {sqd, rts, 0, kCurState | kQkey | kAccess | kRnrRetry},
    {sqd, sqd, 0, kPkeyIndex | kQkey | kAccess | kRnrRetry},
    {sqe, rts, 0, kCurState | kQkey},
}};

// --- transports

std::unique_ptr<Transport> make_rc(engine::Token&, QueuePair& qp) {
  return std::make_unique<RcTransport>(qp);
}
// On the UDP port that the queue pair's number names.
template <class T>
std::unique_ptr<Transport> make_on_port(engine::Token& token, QueuePair& qp) {
  return std::make_unique<T>(qp, qp.adapter().ports().datagrams(token, qp.number()));
}

// UC has no atomics (spec/wdp-uc 2.2), UD has Sends alone (spec/wdp-ud 4).
constexpr std::array<QpTypeTraits, 4> kTypes = {{
    {.type = QpType::rc,
     .name = "RC",
     .operations = kConnected | kAtomics,
     .transitions = kRc,
     .make_transport = make_rc},
    {.type = QpType::uc,
     .name = "UC",
     .operations = kConnected,
     .transitions = kUc,
     .make_transport = make_on_port<UcTransport>},
    {.type = QpType::ud,
     .name = "UD",
     .operations = kSends,
     .addressed = true,
     .slot_extra = kDestinationBytes,
     .transitions = kUd,
     .make_transport = make_on_port<UdTransport>},
    {.type = QpType::rd,
     .name = "RD",
     .operations = kSends | bit_of(Operation::write) | bit_of(Operation::write_immediate) |
                   bit_of(Operation::read) | kAtomics,
     .addressed = true,
     .slot_extra = kDestinationBytes,
     .access = access::kRemoteWrite | access::kRemoteRead | access::kRemoteAtomic,
     .rnr_retry = wdp::kRnrForEver,
     .transitions = kRd,
     .make_transport = make_on_port<RdTransport>},
}};

}  // namespace

const QpTransition* QpTypeTraits::find(QpState from, QpState to) const {
  const auto it = std::find_if(transitions.begin(), transitions.end(),
                               [&](const QpTransition& t) { return t.from == from && t.to == to; });
  return it != transitions.end() ? &*it : nullptr;
}

const char* name_of(QpState state) {
  constexpr std::array kNames{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames.at(static_cast<size_t>(state));
}

std::string QpTypeTraits::why_not(QpState from, QpState to, uint32_t mask) const {
  mask &= ~kState;
  const std::string way = std::string{name_of(from)} + " to " + name_of(to);
  const bool ends = to == reset || to == err;
  const QpTransition* t = find(from, to);
  if (t == nullptr && !ends) {
    std::string others;
    for (const QpTransition& other : transitions) {
      if (other.from == from && other.to != from) others += std::string{name_of(other.to)} + ", ";
    }
    return "there is no transition from " + way + "; it goes to " + others + "RESET and ERR";
  }
  const uint32_t required = t == nullptr || ends ? 0 : t->required;
  const uint32_t possible = ends ? kCurState : required | t->optional;
  if ((mask & required) != required)
    return "the transition from " + way + " also needs " + names_of(required & ~mask);
  if ((mask & ~possible) != 0)
    return "the transition from " + way + " does not take " + names_of(mask & ~possible);
  return {};
}

bool QpTypeTraits::allows(QpState from, QpState to, uint32_t mask) const {
  mask &= ~kState;
  // To RESET or ERR nothing else may be said; the current state may be repeated.
  if (to == reset || to == err) return (mask & ~kCurState) == 0;
  const QpTransition* t = find(from, to);
  return t != nullptr && (mask & t->required) == t->required &&
         (mask & ~(t->required | t->optional)) == 0;
}

const QpTypeTraits* find_type(int number) {
  const auto it = std::find_if(kTypes.begin(), kTypes.end(), [&](const QpTypeTraits& t) {
    return static_cast<int>(t.type) == number;
  });
  return it != kTypes.end() ? &*it : nullptr;
}

std::span<const QpTypeTraits> qp_types() {
  return kTypes;
}

}  // namespace weft::verbs
