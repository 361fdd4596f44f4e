#include "verbs/qp_types.h"

#include <gtest/gtest.h>

namespace weft::verbs {
namespace {

using namespace qp_mask;
using enum QpState;

constexpr uint32_t kAll = (1U << 21) - 1;

struct Row {
  const char* name;
  QpType type;
  QpState from;
  QpState to;
  uint32_t required;
  uint32_t optional;
};

// InfiniBand 11.2.4.2, table 91, as the verbs headers and the kernel's core read it.
constexpr Row kRows[] = {
    {"rc reset init", QpType::rc, reset, init, kPkeyIndex | kPort | kAccess, 0},
    {"uc reset init", QpType::uc, reset, init, kPkeyIndex | kPort | kAccess, 0},
    {"ud reset init", QpType::ud, reset, init, kPkeyIndex | kPort | kQkey, 0},
    {"rc init init", QpType::rc, init, init, 0, kPkeyIndex | kPort | kAccess},
    {"ud init init", QpType::ud, init, init, 0, kPkeyIndex | kPort | kQkey},
    {"rc init rtr", QpType::rc, init, rtr,
     kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer,
     kAltPath | kAccess | kPkeyIndex},
    {"uc init rtr", QpType::uc, init, rtr, kAv | kPathMtu | kDestQpn | kRqPsn,
     kAltPath | kAccess | kPkeyIndex},
    {"ud init rtr", QpType::ud, init, rtr, 0, kPkeyIndex | kQkey},
    {"rc rtr rts", QpType::rc, rtr, rts, kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxQpRdAtomic,
     kCurState | kAltPath | kAccess | kMinRnrTimer | kPathMigState},
    {"uc rtr rts", QpType::uc, rtr, rts, kSqPsn, kCurState | kAltPath | kAccess | kPathMigState},
    {"ud rtr rts", QpType::ud, rtr, rts, kSqPsn, kCurState | kQkey},
    {"rc rts rts", QpType::rc, rts, rts, 0,
     kCurState | kAccess | kAltPath | kPathMigState | kMinRnrTimer},
    {"uc rts rts", QpType::uc, rts, rts, 0, kCurState | kAccess | kAltPath | kPathMigState},
    {"ud rts rts", QpType::ud, rts, rts, 0, kCurState | kQkey},
    {"rc rts sqd", QpType::rc, rts, sqd, 0, kEnSqdNotify},
    {"uc rts sqd", QpType::uc, rts, sqd, 0, kEnSqdNotify},
    {"ud rts sqd", QpType::ud, rts, sqd, 0, kEnSqdNotify},
    {"rc sqd rts", QpType::rc, sqd, rts, 0,
     kCurState | kAccess | kAltPath | kPathMigState | kMinRnrTimer},
    {"ud sqd rts", QpType::ud, sqd, rts, 0, kCurState | kQkey},
    {"rc sqd sqd", QpType::rc, sqd, sqd, 0,
     kPort | kAv | kTimeout | kRetryCnt | kRnrRetry | kMaxQpRdAtomic | kMaxDestRdAtomic | kAltPath |
         kCurState | kAccess | kPkeyIndex | kMinRnrTimer | kPathMigState},
    {"ud sqd sqd", QpType::ud, sqd, sqd, 0, kPkeyIndex | kQkey},
    {"uc sqe rts", QpType::uc, sqe, rts, 0, kCurState | kAccess},
    {"ud sqe rts", QpType::ud, sqe, rts, 0, kCurState | kQkey},
    // weft's own (docs/rd.md): UD's, with rights and rnr_retry.
    {"rd reset init", QpType::rd, reset, init, kPkeyIndex | kPort | kQkey, kAccess},
    {"rd init rtr", QpType::rd, init, rtr, 0, kPkeyIndex | kQkey | kAccess},
    {"rd rtr rts", QpType::rd, rtr, rts, kSqPsn, kCurState | kQkey | kAccess | kRnrRetry},
    {"rd rts rts", QpType::rd, rts, rts, 0, kCurState | kQkey | kAccess | kRnrRetry},
};

TEST(QpTypes, EachTransition) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    const auto allowed = [&](uint32_t mask) {
      return find_type(row.type)->allows(row.from, row.to, mask | kState);
    };
    EXPECT_TRUE(allowed(row.required));
    EXPECT_TRUE(allowed(row.required | row.optional));
    for (uint32_t bit = 1; bit <= kAll; bit <<= 1) {
      if (bit == kState) continue;
      if ((row.required & bit) != 0) {
        EXPECT_FALSE(allowed(row.required & ~bit)) << "without required bit " << bit;
      } else {
        EXPECT_EQ(allowed(row.required | bit), (row.optional & bit) != 0) << "with bit " << bit;
      }
    }
  }
}

TEST(QpTypes, NoOtherWay) {
  constexpr QpState kStates[] = {reset, init, rtr, rts, sqd, sqe, err};
  for (const QpTypeTraits& type : qp_types()) {
    for (const QpState from : kStates) {
      for (const QpState to : kStates) {
        if (to == reset || to == err) continue;
        bool known = false;
        for (const auto& [f, t] : {std::pair{reset, init},
                                   {init, init},
                                   {init, rtr},
                                   {rtr, rts},
                                   {rts, rts},
                                   {rts, sqd},
                                   {sqd, rts},
                                   {sqd, sqd},
                                   {sqe, rts}}) {
          known |= f == from && t == to;
        }
        if (known) continue;
        for (const uint32_t mask : {0U, kAll}) {
          EXPECT_FALSE(type.allows(from, to, mask | kState))
              << type.name << ": " << static_cast<int>(from) << " to " << static_cast<int>(to);
        }
      }
    }
  }
}

TEST(QpTypes, ResetAndErrorFromEverywhere) {
  for (const QpState from : {reset, init, rtr, rts, sqd, sqe, err}) {
    for (const QpState to : {reset, err}) {
      for (const QpTypeTraits& type : qp_types()) {
        EXPECT_TRUE(type.allows(from, to, kState)) << type.name;
        EXPECT_TRUE(type.allows(from, to, kState | kCurState)) << type.name;
        EXPECT_FALSE(type.allows(from, to, kState | kAccess)) << type.name;
      }
    }
  }
}

// What a user reads who has got a mask wrong.
TEST(QpTypes, EachRefusalSaysWhatIsWrong) {
  const QpTypeTraits& rc = *find_type(QpType::rc);
  EXPECT_EQ(rc.why_not(init, rtr, kState | kPathMtu | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer),
            "the transition from INIT to RTR also needs IBV_QP_AV, IBV_QP_DEST_QPN");
  EXPECT_EQ(rc.why_not(rts, rts, kState | kQkey | kCap),
            "the transition from RTS to RTS does not take IBV_QP_QKEY, IBV_QP_CAP");
  EXPECT_EQ(rc.why_not(rts, err, kState | kCurState | kPort),
            "the transition from RTS to ERR does not take IBV_QP_PORT");
  EXPECT_EQ(rc.why_not(reset, rts, kState | kAv),
            "there is no transition from RESET to RTS; it goes to INIT, RESET and ERR");
  EXPECT_EQ(rc.why_not(err, rts, kState),
            "there is no transition from ERR to RTS; it goes to RESET and ERR");
}

// Exactly what is not allowed has a reason. Each bit is named once.
TEST(QpTypes, NoRefusalIsWithoutReason) {
  for (const QpTypeTraits& type : qp_types()) {
    for (const QpState from : {reset, init, rtr, rts, sqd, sqe, err}) {
      for (const QpState to : {reset, init, rtr, rts, sqd, sqe, err}) {
        SCOPED_TRACE(std::string{type.name} + name_of(from) + name_of(to));
        const QpTransition* t = type.find(from, to);
        const uint32_t required = t == nullptr ? 0 : t->required;
        for (uint32_t bit = 1; bit < kAll; bit <<= 1) {
          for (const uint32_t mask : {required | bit, required & ~bit}) {
            EXPECT_EQ(type.why_not(from, to, mask).empty(), type.allows(from, to, mask)) << bit;
            EXPECT_FALSE(type.why_not(from, to, mask).ends_with(' ')) << "a bit without a name";
          }
        }
      }
    }
  }
}

// InfiniBand 11.4.1.1, table 95 (which operation goes with which type), as weft has it:
// spec/wdp-uc 2.2, spec/wdp-ud 4, spec/wdp-rd 6.1.
TEST(QpTypes, EachOperation) {
  using enum work::Operation;
  const struct {
    work::Operation operation;
    bool rc, uc, ud, rd;
  } rows[] = {
      {send, true, true, true, true},
      {send_immediate, true, true, true, true},
      {send_invalidate, true, true, false, false},
      {write, true, true, false, true},
      {write_immediate, true, true, false, true},
      {read, true, true, false, true},
      {fetch_add, true, false, false, true},
      {compare_swap, true, false, false, true},
      {local_invalidate, true, true, false, false},
      {bind_window, true, true, false, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.operation));
    EXPECT_EQ(find_type(QpType::rc)->has(row.operation), row.rc);
    EXPECT_EQ(find_type(QpType::uc)->has(row.operation), row.uc);
    EXPECT_EQ(find_type(QpType::ud)->has(row.operation), row.ud);
    EXPECT_EQ(find_type(QpType::rd)->has(row.operation), row.rd);
  }
}

// A slot has room for a destination exactly where each send names one.
TEST(QpTypes, EachRowIsComplete) {
  for (const QpTypeTraits& type : qp_types()) {
    SCOPED_TRACE(type.name);
    EXPECT_EQ(find_type(type.type), &type);
    EXPECT_NE(*type.name, 0);
    EXPECT_NE(type.make_transport, nullptr);
    EXPECT_EQ(type.addressed, type.slot_extra != 0);
    for (const QpTransition& t : type.transitions) {
      EXPECT_EQ(type.find(t.from, t.to), &t) << "a transition stands there twice";
      EXPECT_EQ(t.required & t.optional, 0U);
    }
  }
  EXPECT_EQ(find_type(0), nullptr);
  EXPECT_EQ(find_type(8), nullptr);  // IBV_QPT_RAW_PACKET
  EXPECT_EQ(find_type(256 + 2), nullptr);
}

}  // namespace
}  // namespace weft::verbs
