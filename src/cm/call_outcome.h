// Which event a failed handshake of WDP becomes, and with which status. Pure.
//
//   what happened                      UC                            UD
//   the peer's application rejected    REJECTED, 28                  UNREACHABLE, 2 (reject)
//   nobody listens there for it        REJECTED, 8                   UNREACHABLE, 1 (unsupported)
//   the peer has no room               REJECTED, 3                   UNREACHABLE, 3 (no queue pair)
//   no answer in time                  UNREACHABLE, -ETIMEDOUT       the same
//   what came cannot be                CONNECT_ERROR, -EPROTO        UNREACHABLE, -EPROTO
//
// The numbers are InfiniBand's: reasons of a REJ (12.6.7.2), status of a SIDR_REP (12.11.2.2), and
// the events those of the kernel's rdma_cm. With the identity iwarp a rejection of UC has the
// status -ECONNREFUSED, as one of RC has.
#pragma once

#include "cm/active_start_outcome.h"
#include "wdp/handshake.h"

namespace weft::cm {

// Of a handshake that stands in State::failed.
FailureEvent uc_failure(const wdp::Handshake& handshake, config::Identity identity);
FailureEvent ud_failure(const wdp::Handshake& handshake);

}  // namespace weft::cm
