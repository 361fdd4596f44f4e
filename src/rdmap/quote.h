// What a Terminate quotes of the segment at fault (RFC 5040 section 4.8).
#pragma once

#include "base/bytes.h"
#include "ddp/segment.h"
#include "wire/terminate.h"

namespace weft::rdmap {

struct Quote {
  // None: there is no segment to quote.
  const ddp::Segment* segment = nullptr;
  // Where that is a Read or Atomic Request, its own header.
  Bytes request;

  // The Terminate that says so to the peer.
  wire::Terminate answer(wire::TermError error) const;
};

}  // namespace weft::rdmap
