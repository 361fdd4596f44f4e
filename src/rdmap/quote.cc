#include "rdmap/quote.h"

#include <algorithm>

namespace weft::rdmap {

namespace term = wire::term;

wire::Terminate Quote::answer(wire::TermError error) const {
  wire::Terminate t{.error = error};
  const bool about_segment = error.layer != wire::Layer::llp && error != term::kLocalCatastrophic &&
                             error != term::kOperationVersion &&
                             error != term::kOperationUnexpectedOpcode &&
                             error != term::kTaggedVersion && error != term::kUntaggedVersion;
  if (!about_segment || segment == nullptr) return t;
  t.has_segment_length = true;
  t.segment_length = segment->ulpdu;
  const Bytes header = segment->header_bytes();
  t.ddp_header_size = static_cast<uint8_t>(header.size());
  std::copy(header.begin(), header.end(), t.ddp_header.begin());
  // Of a Read Request alone: RFC 5040 section 4.8, RFC 7306 section 8.1.
  if (error.layer == wire::Layer::rdmap && segment->control.opcode == wire::Opcode::read_request) {
    t.rdmap_header_size = static_cast<uint8_t>(request.size());
    std::copy(request.begin(), request.end(), t.rdmap_header.begin());
  }
  return t;
}

}  // namespace weft::rdmap
