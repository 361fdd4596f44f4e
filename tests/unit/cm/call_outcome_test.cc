#include "cm/call_outcome.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/append.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using config::Identity;
using wdp::Handshake;
using wire::RejReason;

// A handshake that has asked for `service`, and what becomes of it.
class Asked {
 public:
  explicit Asked(wire::CtlService service) {
    handshake_.connect({.service = service, .token = SessionToken{7}},
                       {.to = {Gid::from_ipv4(0x7f000001), 4791}, .from = {}}, Qpn{}, false, now_);
    wdp::Train train;
    handshake_.fill(train);
    std::vector<std::byte> sent;
    test::append(sent, train.pieces());
    request_ = *wire::WdpCtl::parse(sent);
    request_.private_data = {};
  }
  const Handshake& rejected(RejReason reason) {
    wire::WdpCtl rej = request_;
    rej.type = wire::CtlType::rej;
    rej.reason = static_cast<uint32_t>(reason);
    rej.source_token = {};
    (void)handshake_.received(rej, 64, now_);
    return handshake_;
  }
  const Handshake& unanswered() {
    handshake_.tick(now_ + 60s);
    return handshake_;
  }

 private:
  Time now_ = Time{} + 1s;
  SystemRandom random_;
  Handshake handshake_{random_};
  wire::WdpCtl request_;
};

FailureEvent uc(RejReason reason, Identity identity = Identity::ib) {
  return uc_failure(Asked{wire::CtlService::uc}.rejected(reason), identity);
}
FailureEvent ud(RejReason reason) {
  return ud_failure(Asked{wire::CtlService::ud_resolution}.rejected(reason));
}
void expect(const FailureEvent& e, EventKind kind, int status) {
  EXPECT_EQ(static_cast<int>(e.kind), static_cast<int>(kind));
  EXPECT_EQ(e.status, status);
}

TEST(CallOutcome, RejectionsOfConnectionsHaveTheReasonsOfTheTransport) {
  expect(uc(RejReason::application), EventKind::rejected, 28);
  expect(uc(RejReason::no_listener), EventKind::rejected, 8);
  expect(uc(RejReason::service_mismatch), EventKind::rejected, 8);
  expect(uc(RejReason::no_resources), EventKind::rejected, 3);
  expect(uc(RejReason::application, Identity::iwarp), EventKind::rejected, -ECONNREFUSED);
  expect(uc(RejReason::version), EventKind::connect_error, -EPROTO);
}

TEST(CallOutcome, RejectionsOfQuestionsHaveTheStatusOfTheTransport) {
  expect(ud(RejReason::application), EventKind::unreachable, 2);
  expect(ud(RejReason::no_listener), EventKind::unreachable, 1);
  expect(ud(RejReason::service_mismatch), EventKind::unreachable, 1);
  expect(ud(RejReason::no_resources), EventKind::unreachable, 3);
}

TEST(CallOutcome, SilenceIsATimeout) {
  expect(uc_failure(Asked{wire::CtlService::uc}.unanswered(), Identity::ib), EventKind::unreachable,
         -ETIMEDOUT);
  expect(ud_failure(Asked{wire::CtlService::ud_resolution}.unanswered()), EventKind::unreachable,
         -ETIMEDOUT);
}

}  // namespace
}  // namespace weft::cm
