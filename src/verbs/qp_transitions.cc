#include "verbs/qp_transitions.h"

#include <array>

namespace weft::verbs {
namespace {

using namespace qp_mask;

struct Masks {
  uint32_t required;
  uint32_t optional;
};
struct Row {
  QpState from;
  QpState to;
  Masks rc;
  Masks uc;
  Masks ud;
};

constexpr uint32_t kRcSqd = kPort | kAv | kTimeout | kRetryCnt | kRnrRetry | kMaxQpRdAtomic |
                            kMaxDestRdAtomic | kAltPath | kCurState | kAccess | kPkeyIndex |
                            kMinRnrTimer | kPathMigState;
constexpr uint32_t kUcSqd =
    kPort | kAv | kAltPath | kCurState | kAccess | kPkeyIndex | kPathMigState;

constexpr std::array<Row, 11> kRows = {{
    {QpState::reset,
     QpState::init,
     {kPkeyIndex | kPort | kAccess, 0},
     {kPkeyIndex | kPort | kAccess, 0},
     {kPkeyIndex | kPort | kQkey, 0}},
    {QpState::init,
     QpState::init,
     {0, kPkeyIndex | kPort | kAccess},
     {0, kPkeyIndex | kPort | kAccess},
     {0, kPkeyIndex | kPort | kQkey}},
    {QpState::init,
     QpState::rtr,
     {kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
      kAltPath | kAccess | kPkeyIndex},
     {kAv | kPathMtu | kDestQpn | kRqPsn, kAltPath | kAccess | kPkeyIndex},
     {0, kPkeyIndex | kQkey}},
    {QpState::rtr,
     QpState::rts,
     {kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxQpRdAtomic,
      kCurState | kAltPath | kAccess | kMinRnrTimer | kPathMigState},
     {kSqPsn, kCurState | kAltPath | kAccess | kPathMigState},
     {kSqPsn, kCurState | kQkey}},
    {QpState::rts,
     QpState::rts,
     {0, kCurState | kAccess | kAltPath | kPathMigState | kMinRnrTimer},
     {0, kCurState | kAccess | kAltPath | kPathMigState},
     {0, kCurState | kQkey}},
    {QpState::rts, QpState::sqd, {0, kEnSqdNotify}, {0, kEnSqdNotify}, {0, kEnSqdNotify}},
    {QpState::sqd,
     QpState::rts,
     {0, kCurState | kAccess | kAltPath | kPathMigState | kMinRnrTimer},
     {0, kCurState | kAccess | kAltPath | kPathMigState},
     {0, kCurState | kQkey}},
    {QpState::sqd, QpState::sqd, {0, kRcSqd}, {0, kUcSqd}, {0, kPkeyIndex | kQkey}},
    {QpState::sqe, QpState::rts, {0, 0}, {0, kCurState | kAccess}, {0, kCurState | kQkey}},
    // Any state to RESET or ERR, see below.
    {QpState::reset, QpState::reset, {0, 0}, {0, 0}, {0, 0}},
    {QpState::err, QpState::err, {0, 0}, {0, 0}, {0, 0}},
}};

}  // namespace

bool transition_allowed(QpType type, QpState from, QpState to, uint32_t mask) {
  mask &= ~kState;
  // To RESET or ERR nothing else may be said; the current state may be repeated.
  if (to == QpState::reset || to == QpState::err) return (mask & ~kCurState) == 0;
  for (const Row& row : kRows) {
    if (row.from != from || row.to != to) continue;
    const Masks& m = type == QpType::rc ? row.rc : type == QpType::uc ? row.uc : row.ud;
    return (mask & m.required) == m.required && (mask & ~(m.required | m.optional)) == 0;
  }
  return false;
}

}  // namespace weft::verbs
