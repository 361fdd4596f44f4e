// Work requests as they stand in the queues of a queue pair, in RDMA words (RFC 5040 section 3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>

#include "base/types.h"

namespace weft::work {

// A scatter/gather element: local memory, named by the STag that its registration gave.
struct LocalSegment {
  uint64_t address = 0;
  uint32_t length = 0;
  Stag lkey;
};
static_assert(sizeof(LocalSegment) == 16);

inline constexpr uint32_t kMostSegments = 30;  // per WR (spec/abi 2.6)
inline constexpr uint32_t kAtomicBytes = 8;
inline constexpr uint64_t kMostMessage = 1U << 31;  // bytes

enum class Operation : uint8_t {
  write,
  write_immediate,
  send,
  send_immediate,
  send_invalidate,
  read,
  fetch_add,
  compare_swap,
  // Nothing on the wire; take effect in the order of the queue.
  local_invalidate,
  bind_window,
};
constexpr bool is_send(Operation op) {
  return op == Operation::send || op == Operation::send_immediate ||
         op == Operation::send_invalidate;
}
constexpr bool is_write(Operation op) {
  return op == Operation::write || op == Operation::write_immediate;
}
constexpr bool is_atomic(Operation op) {
  return op == Operation::fetch_add || op == Operation::compare_swap;
}
constexpr bool has_response(Operation op) {
  return op == Operation::read || is_atomic(op);
}
constexpr bool is_local(Operation op) {
  return op >= Operation::local_invalidate;
}

// How a work request ended. The names are those of the verbs completion codes.
enum class Status : uint8_t {
  success,
  local_length,
  local_qp_operation,
  local_protection,
  flushed,
  window_bind,
  remote_invalid_request,
  remote_access,
  remote_operation,
  remote_invalid_rd_request,
  retry_exceeded,
  rnr_retry_exceeded,
  fatal,
  general,
};
const char* to_string(Status s);

// Slot of a send queue. `payload()` holds LocalSegments, or the data itself when `inlined`, or what
// the consumer of a local operation put there.
struct SendWqe {
  uint64_t wr_id = 0;
  Operation operation{};
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  bool inlined = false;
  uint8_t segments = 0;
  bool answered = false;  // engine: its response is placed (Read, Atomic), it was executed (local)
  Status status{};        // engine: how it will complete
  uint32_t length = 0;    // bytes of payload
  Stag remote_stag;       // or the STag to invalidate
  TaggedOffset remote_to;
  uint32_t immediate = 0;  // the four bytes on the wire as a big-endian number
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  uint64_t last_message =
      0;  // engine: ordinal of its last request message on the stream (spec/rdmap 4.1)

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  const std::byte* payload() const { return reinterpret_cast<const std::byte*>(this + 1); }
  LocalSegment* segment() { return reinterpret_cast<LocalSegment*>(payload()); }
  const LocalSegment* segment() const { return reinterpret_cast<const LocalSegment*>(payload()); }
};
static_assert(sizeof(SendWqe) % alignof(LocalSegment) == 0);

// A receive, taken out of its queue: where one incoming message goes.
struct Receive {
  uint64_t wr_id = 0;
  uint32_t segments = 0;
  uint64_t length = 0;  // room, bytes
  std::array<LocalSegment, kMostSegments> segment;
};
// One, or none: it goes back to its queue without memory.
using TakenReceive = std::list<Receive>;

}  // namespace weft::work
