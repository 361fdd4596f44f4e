#include "cm/active_start_outcome.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::cm {

bool operator==(const FailureEvent& a, const FailureEvent& b) {
  return a.kind == b.kind && a.status == b.status;
}
void PrintTo(const FailureEvent& e, std::ostream* out) {
  *out << "event " << static_cast<int>(e.kind) << ", status " << e.status;
}

namespace {

using config::Identity;
using Kind = ActiveStartFailure::Kind;

FailureEvent event(Kind kind, int error, Identity identity) {
  return failure_event({.kind = kind, .error = error}, identity);
}

TEST(ActiveStartOutcome, RejectionHasTheReasonOfTheTransport) {
  EXPECT_EQ(event(Kind::rejected, ECONNREFUSED, Identity::ib),
            (FailureEvent{EventKind::rejected, 28}));
  EXPECT_EQ(event(Kind::rejected, ECONNREFUSED, Identity::ib_lid),
            (FailureEvent{EventKind::rejected, 28}));
  EXPECT_EQ(event(Kind::rejected, ECONNREFUSED, Identity::iwarp),
            (FailureEvent{EventKind::rejected, -ECONNREFUSED}));
}

TEST(ActiveStartOutcome, NobodyListening) {
  EXPECT_EQ(event(Kind::refused, ECONNREFUSED, Identity::ib),
            (FailureEvent{EventKind::rejected, 8}));
  EXPECT_EQ(event(Kind::refused, ECONNREFUSED, Identity::iwarp),
            (FailureEvent{EventKind::rejected, -ECONNREFUSED}));
}

TEST(ActiveStartOutcome, PeerThatDiesInTheMiddleRejects) {
  for (const int error : {ECONNRESET, EPIPE}) {
    EXPECT_EQ(event(Kind::protocol, error, Identity::ib),
              (FailureEvent{EventKind::rejected, -ECONNRESET}));
  }
  EXPECT_EQ(event(Kind::unreachable, ECONNRESET, Identity::ib),
            (FailureEvent{EventKind::rejected, -ECONNRESET}));
}

TEST(ActiveStartOutcome, PeerThatSpeaksSomethingElse) {
  EXPECT_EQ(event(Kind::protocol, EPROTO, Identity::ib),
            (FailureEvent{EventKind::connect_error, -EPROTO}));
}

TEST(ActiveStartOutcome, NoAnswerAndNoWay) {
  EXPECT_EQ(event(Kind::timed_out, ETIMEDOUT, Identity::ib),
            (FailureEvent{EventKind::unreachable, -ETIMEDOUT}));
  EXPECT_EQ(event(Kind::unreachable, ENETUNREACH, Identity::ib),
            (FailureEvent{EventKind::unreachable, -ENETUNREACH}));
  EXPECT_EQ(event(Kind::unreachable, 0, Identity::ib),
            (FailureEvent{EventKind::unreachable, -EHOSTUNREACH}));
}

TEST(ActiveStartOutcome, WhatIsMissingHereIsNotThePeersFault) {
  for (const int error : {EMFILE, ENFILE, EADDRINUSE, EADDRNOTAVAIL}) {
    EXPECT_EQ(event(Kind::unreachable, error, Identity::ib),
              (FailureEvent{EventKind::connect_error, -error}));
  }
}

}  // namespace
}  // namespace weft::cm
