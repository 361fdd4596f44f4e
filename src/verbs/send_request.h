// Requests to send as a program states them, and why one is not taken.
#pragma once

#include "verbs/memory_table.h"
#include "verbs/types.h"

namespace weft::verbs {

struct AddressHandle;

// Pointers are read during the call only.
struct SendRequest {
  uint64_t wr_id = 0;
  work::Operation operation{};
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  bool inlined = false;  // copy the data of `segments` now; their lkeys are not looked at
  const LocalSegment* segments = nullptr;
  uint32_t count = 0;
  Stag remote_stag;  // or the STag to invalidate
  TaggedOffset remote_to;
  uint32_t immediate = 0;  // the four bytes on the wire as a big-endian number
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  // Where it goes, for the types whose requests say so (QpTypeTraits::addressed), and there it must
  // be.
  const AddressHandle* handle = nullptr;
  Qpn remote_qpn;
  QKey remote_q_key;
};

// What a bind asks for (memory windows). A length of 0 unbinds one of type 1.
struct BindRequest {
  WindowId window;
  Stag old_stag;
  Stag fresh_stag;
  Stag lkey;  // of the region
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;
  bool type_2 = false;
};

// Why a queue pair does not take a request: the rule, and the number beside its limit.
struct PostFault {
  enum class Rule : uint8_t {
    none,
    full,              // `asked` and `limit`: requests
    state,             // `asked`: the QpState
    segments,          // their number, and max_send_sge or max_recv_sge
    message_length,    // bytes
    inline_length,     // bytes, and max_inline
    inline_operation,  // what a response comes to cannot be inline
    operation,         // of another type of queue pair
    atomic_length,     // bytes, and those that an atomic needs
    shared_receives,   // they are the shared queue's
  };
  Rule rule = Rule::none;
  uint64_t asked = 0;
  uint64_t limit = 0;
};

}  // namespace weft::verbs
