#include "wire/rdmap_messages.h"

#include <cstdio>

namespace weft::wire {

std::string ReadRequest::to_string() const {
  char text[160];
  std::snprintf(text, sizeof text, "sink 0x%08x at 0x%llx, %u bytes of source 0x%08x at 0x%llx",
                sink_stag.value(), static_cast<unsigned long long>(sink_to.value()), size,
                source_stag.value(), static_cast<unsigned long long>(source_to.value()));
  return text;
}

std::string AtomicRequest::to_string() const {
  char text[160];
  std::snprintf(text, sizeof text, "atomic %u id %u on 0x%08x at 0x%llx",
                static_cast<unsigned>(code), request_id, stag.value(),
                static_cast<unsigned long long>(to.value()));
  return text;
}

}  // namespace weft::wire
