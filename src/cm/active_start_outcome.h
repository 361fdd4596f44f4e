// Which event a failed active start becomes, and with which status. Pure.
//
//   what happened                      event          status: identity ib, ib-lid   iwarp
//   the peer's application rejected    REJECTED       28, consumer defined          -ECONNREFUSED
//   nobody listens                     REJECTED       8, invalid service id         -ECONNREFUSED
//   the peer closed before its Reply   REJECTED       -ECONNRESET                   the same
//   no answer in time                  UNREACHABLE    -ETIMEDOUT                    the same
//   no route, host down                UNREACHABLE    -EHOSTUNREACH, ...            the same
//   no descriptor or port left here    CONNECT_ERROR  -EMFILE, ...                  the same
//   what came was no MPA               CONNECT_ERROR  -EPROTO                       the same
//
// The kernel's rdma_cm does the same for its two transports (cma_iw_handler, cma_ib_handler),
// except that InfiniBand has no word for a host that is known to be down.
#pragma once

#include "cm/active_start.h"
#include "cm/service.h"
#include "config/options.h"

namespace weft::cm {

// Reasons of InfiniBand's REJ (12.6.7.2, table 108), which are the status of a rejection.
namespace rej_reason {
inline constexpr int kNoResources = 3;
inline constexpr int kInvalidServiceId = 8;
inline constexpr int kConsumerDefined = 28;
}  // namespace rej_reason

struct FailureEvent {
  EventKind kind{};
  int status = 0;
};

FailureEvent failure_event(const ActiveStartFailure& failure, config::Identity identity);

}  // namespace weft::cm
