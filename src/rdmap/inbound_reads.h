// Reads and atomics of the peer that are accepted and not answered yet: the responder's side of
// IRD/ORD (RFC 5040 section 6.1). One is accepted if the IRD allows it and its memory is there; an
// atomic is executed at that moment. Answers go out in the order of the requests.
#pragma once

#include <array>

#include "base/fixed_ring.h"
#include "ddp/segment.h"
#include "mpa/ulpdu_sink.h"
#include "wire/rdmap_messages.h"
#include "work/memory.h"

namespace weft::rdmap {

struct InboundRead {
  bool atomic = false;
  // Read.
  wire::ReadRequest request;
  uint32_t sent = 0;  // bytes already in FPDUs
  // The request's own headers, for a Terminate if its memory goes away before the answer is out.
  std::array<std::byte, wire::UntaggedHeader::kSize + wire::ReadRequest::kSize> headers{};
  // Atomic: already done.
  wire::AtomicResponse response;
};

class InboundReads : public FixedRing<InboundRead> {
 public:
  using FixedRing<InboundRead>::FixedRing;

  // The payload of a Read Request, which came behind this header.
  mpa::Verdict accept_read(work::Memory& memory, Bytes header, Bytes payload);
  mpa::Verdict accept_atomic(work::Memory& memory, Bytes payload);
};

}  // namespace weft::rdmap
