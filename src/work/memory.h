// How the protocol reaches memory: by STag, checked on every use, never by a pointer that outlives
// the engine's turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/types.h"

namespace weft::work {

// Rights to a registered region (RFC 5041 section 8.3.1, verbs access flags).
enum class Access : uint8_t {
  local_read = 0,
  local_write = 1,
  remote_write = 2,
  remote_read = 4,
  remote_atomic = 8,
};

enum class MemoryFault : uint8_t {
  invalid_stag,
  bounds,
  access,
  not_on_stream,
  wraps,
  cannot_invalidate,
  gone,  // registered, and not there any more (base/guarded.h)
};

// Implemented by the adapter, per queue pair, for rights depend on its protection domain. Engine
// holder only.
class Memory {
 public:
  virtual ~Memory() = default;
  // Local memory named by lkey: the address is one of this process.
  virtual Result<std::byte*, MemoryFault> local(Stag lkey, uint64_t address, uint64_t length,
                                                Access need) = 0;
  // Of a receive, where that is in a domain of its own.
  virtual Result<std::byte*, MemoryFault> receive_buffer(Stag lkey, uint64_t address,
                                                         uint64_t length) {
    return local(lkey, address, length, Access::local_write);
  }
  // Memory that the peer names.
  virtual Result<std::byte*, MemoryFault> remote(Stag stag, TaggedOffset to, uint64_t length,
                                                 Access need) = 0;
  // RFC 5040 sections 5.3 and 7.2: the peer's Send with Invalidate.
  virtual Result<Ok, MemoryFault> invalidate(Stag stag) = 0;
};

}  // namespace weft::work
