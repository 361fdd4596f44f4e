// Whose fault a Terminate of the peer is: which work request gets which status (spec/errors 4).
#pragma once

#include "rdmap/send_path.h"
#include "wire/terminate.h"

namespace weft::rdmap {

work::Status status_of(wire::TermError error);
// Gives the request that the Terminate is about its status; the rest is left to be flushed.
// `extension`: of a weft peer, which has covered what was good.
void apply_blame(const wire::Terminate& t, bool extension, SendPath& send_path);

}  // namespace weft::rdmap
