// Which check of the receiving side ended a stream. Finer than the Terminate that answers it, for
// several checks have the same answer (spec/errors 3). Each has a counter, so that a user sees what
// the peer did.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire {

enum class Refusal : uint8_t {
  other,
  // FPDU (spec/mpa 3.3).
  crc,
  empty_ulpdu,
  header_cut,
  ulpdu_too_short,
  ulpdu_too_long,
  // DDP and RDMAP headers (spec/rdmap 1, 2.1, 2.2).
  ddp_version,
  rdmap_version,
  queue_number,
  msn,
  message_offset,
  message_too_long,
  unknown_opcode,
  opcode_not_negotiated,
  opcode_in_wrong_segment,
  opcode_changed,
  behind_terminate,
  terminate_malformed,
  delivered_malformed,
  delivered_beyond_sent,
  // Messages do not interleave (spec/rdmap 2.2).
  write_inside_send,
  request_inside_send,
  request_malformed,
  // Write (spec/errors 3).
  write_invalid_stag,
  write_bounds,
  write_access,
  write_not_on_stream,
  write_wrap,
  write_gone,
  // Send.
  no_receive_in_time,
  receive_too_short,
  credit_exceeded,
  invalidate_not_allowed,
  invalidate_impossible,
  // Read and Atomic Requests.
  read_invalid_stag,
  read_bounds,
  read_access,
  read_not_on_stream,
  read_wrap,
  read_gone,
  reads_beyond_ird,
  atomic_code,
  atomic_misaligned,
  // Responses.
  read_response_unasked,
  read_response_misfit,
  atomic_response_unasked,
  // This side's own program is at fault.
  own_receive_memory,
  own_sink_memory,
};

inline constexpr size_t kRefusalCount = static_cast<size_t>(Refusal::own_sink_memory) + 1;

// One sentence for people.
const char* to_string(Refusal why);
// The enumerator's name, for counters. "?" for what is none.
const char* counter_name(Refusal why);

}  // namespace weft::wire
