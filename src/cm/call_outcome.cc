#include "cm/call_outcome.h"

#include <cerrno>

namespace weft::cm {
namespace {

using wdp::Handshake;
using wire::RejReason;

// InfiniBand 12.11.2.2, table 127.
constexpr int kSidrUnsupported = 1;
constexpr int kSidrReject = 2;
constexpr int kSidrNoQp = 3;

}  // namespace

FailureEvent uc_failure(const Handshake& handshake, config::Identity identity) {
  const bool iwarp = identity == config::Identity::iwarp;
  switch (handshake.failure()) {
    case Handshake::Failure::rejected:
      switch (static_cast<RejReason>(handshake.peer().reason)) {
        case RejReason::application:
          return {EventKind::rejected, iwarp ? -ECONNREFUSED : rej_reason::kConsumerDefined};
        case RejReason::no_listener:
        case RejReason::service_mismatch:
          return {EventKind::rejected, iwarp ? -ECONNREFUSED : rej_reason::kInvalidServiceId};
        case RejReason::no_resources:
          return {EventKind::rejected, iwarp ? -ECONNREFUSED : rej_reason::kNoResources};
        default:
          return {EventKind::connect_error, -EPROTO};
      }
    case Handshake::Failure::bad_parameters:
      return {EventKind::connect_error, -EPROTO};
    default:
      return {EventKind::unreachable, -ETIMEDOUT};
  }
}

FailureEvent ud_failure(const Handshake& handshake) {
  switch (handshake.failure()) {
    case Handshake::Failure::rejected:
      switch (static_cast<RejReason>(handshake.peer().reason)) {
        case RejReason::application:
          return {EventKind::unreachable, kSidrReject};
        case RejReason::no_listener:
        case RejReason::service_mismatch:
          return {EventKind::unreachable, kSidrUnsupported};
        case RejReason::no_resources:
          return {EventKind::unreachable, kSidrNoQp};
        default:
          return {EventKind::unreachable, -EPROTO};
      }
    case Handshake::Failure::bad_parameters:
      return {EventKind::unreachable, -EPROTO};
    default:
      return {EventKind::unreachable, -ETIMEDOUT};
  }
}

}  // namespace weft::cm
