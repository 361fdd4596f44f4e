// A DDP segment as the layers above see it: one header, tagged or untagged, and how much payload
// follows (RFC 5041 section 4).
#pragma once

#include <array>

#include "base/bytes.h"
#include "base/types.h"
#include "wire/ddp_header.h"

namespace weft::ddp {

struct Segment {
  wire::Control control;
  // Tagged.
  Stag stag;
  TaggedOffset to;
  // Untagged.
  uint32_t ulp_word = 0;
  QueueNumber qn;
  Msn msn;
  MessageOffset mo;

  uint32_t payload = 0;                // bytes
  uint16_t ulpdu = 0;                  // header and payload, as a Terminate says it
  std::array<std::byte, 18> header{};  // as it came, for a Terminate

  Bytes header_bytes() const { return Bytes{header}.first(wire::ddp_header_size(control.tagged)); }
  // Becomes the segment whose whole header stands in `start`. In place, for there is one of these
  // for every segment that comes.
  void read(Bytes start, size_t ulpdu_size);
};

}  // namespace weft::ddp
