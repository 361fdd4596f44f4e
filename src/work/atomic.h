// Atomic operations on memory that a peer names (RFC 7306 section 5), for each protocol that has
// them.
#pragma once

#include "base/result.h"
#include "wire/rdmap_messages.h"
#include "work/memory.h"

namespace weft::work {

// Why an atomic did not take place.
struct AtomicFault {
  enum class Kind : uint8_t { code, memory, misaligned };
  Kind kind{};
  MemoryFault memory{};  // with Kind::memory
};

// Atomic also against the program's own threads and the other engines. The value that was there.
// Engine holder.
Result<uint64_t, AtomicFault> execute_atomic(Memory& memory, const wire::AtomicRequest& request);

}  // namespace weft::work
