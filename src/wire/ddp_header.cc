#include "wire/ddp_header.h"

#include <cstdio>

#include "wire/rdmap_messages.h"

namespace weft::wire {

std::string Control::to_string() const {
  char text[96];
  std::snprintf(text, sizeof text, "%s%s%s DV %u RV %u", wire::to_string(opcode),
                last ? ", last" : "", ack_wanted ? ", AW" : "", ddp_version, rdmap_version);
  return text;
}

std::string TaggedHeader::to_string() const {
  char text[160];
  std::snprintf(text, sizeof text, "tagged (%s) STag 0x%08x TO 0x%llx", control.to_string().c_str(),
                stag.value(), static_cast<unsigned long long>(to.value()));
  return text;
}

std::string UntaggedHeader::to_string() const {
  char text[192];
  std::snprintf(text, sizeof text, "untagged (%s) QN %u MSN %u MO %u ULP word 0x%08x",
                control.to_string().c_str(), qn.value(), msn.value(), mo.value(), ulp_word);
  return text;
}

size_t min_ulpdu(Opcode op) {
  switch (op) {
    case Opcode::write:
    case Opcode::read_response:
    case Opcode::delivered:
      return TaggedHeader::kSize;
    case Opcode::read_request:
      return UntaggedHeader::kSize + ReadRequest::kSize;
    case Opcode::terminate:
      return UntaggedHeader::kSize + 4;
    case Opcode::immediate:
    case Opcode::immediate_se:
      return UntaggedHeader::kSize + Immediate::kSize;
    case Opcode::atomic_request:
      return UntaggedHeader::kSize + AtomicRequest::kSize;
    case Opcode::atomic_response:
      return UntaggedHeader::kSize + AtomicResponse::kSize;
    default:
      return UntaggedHeader::kSize;
  }
}

}  // namespace weft::wire
