#include "cm/active_start_outcome.h"

#include <cerrno>

namespace weft::cm {
namespace {

FailureEvent unreachable(int error) {
  switch (error) {
    case 0:
      return {EventKind::unreachable, -EHOSTUNREACH};
    case ECONNRESET:
      return {EventKind::rejected, -ECONNRESET};
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EADDRINUSE:
    case EADDRNOTAVAIL:
      return {EventKind::connect_error, -error};  // this side's trouble
    default:
      return {EventKind::unreachable, -error};
  }
}

}  // namespace

FailureEvent failure_event(const ActiveStartFailure& failure, config::Identity identity) {
  const bool iwarp = identity == config::Identity::iwarp;
  using Kind = ActiveStartFailure::Kind;
  switch (failure.kind) {
    case Kind::rejected:
      return {EventKind::rejected, iwarp ? -ECONNREFUSED : rej_reason::kConsumerDefined};
    case Kind::refused:
      return {EventKind::rejected, iwarp ? -ECONNREFUSED : rej_reason::kInvalidServiceId};
    case Kind::timed_out:
      return {EventKind::unreachable, -ETIMEDOUT};
    case Kind::unreachable:
      return unreachable(failure.error);
    case Kind::protocol:
      break;
  }
  if (failure.error == EPROTO) return {EventKind::connect_error, -EPROTO};
  // A peer that died or changed its mind: its socket was closed, with or without a reset.
  return {EventKind::rejected, -ECONNRESET};
}

}  // namespace weft::cm
