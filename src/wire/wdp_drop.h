// Why a WDP datagram is dropped. WDP answers bad datagrams with silence, so a counter for each
// reason is all that tells (wire.md 8 to 11, part IV). The parsers of this layer give the reasons
// of the first half; those of the second half are found by the rules for receiving and are named
// here so that all of them count in one table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire {

enum class WdpDrop : uint8_t {
  // Any class (wire.md 8, 8.1, 16).
  too_short,
  not_wdp,
  other_version,
  unknown_class,
  wrong_class,
  crc_missing,
  bad_crc,
  length_mismatch,
  // Data and UD headers (wire.md 8.2, 10).
  ddp_version,
  rdmap_version,
  bad_opcode,
  tag_mismatch,
  bad_stride,
  misaligned_offset,
  offset_beyond_message,
  last_mismatch,
  message_length,
  read_range,
  index_mismatch,
  // CTL (wire.md 9.1).
  unknown_ctl_type,
  request_not_padded,
  private_data_too_long,
  parts_too_long,
  bad_tlv,
  zero_token,
  wait_too_long,
  // RDACK (wire.md 11.1).
  too_many_sack_words,

  // Whom it is for (wire.md 9.1, 9.2 rule 1, 10).
  unknown_token,
  wrong_address,
  wrong_index,
  no_such_qp,
  wrong_q_key,
  not_for_multicast,
  own_multicast,
  stale_handshake,
  unwanted_ctl,
  // UC (wire.md 9.2).
  duplicate,
  stale_psn,
  psn_jump,
  stale_msn,
  msn_jump,
  superseded,
  context_mismatch,
  too_many_segments,
  no_receive,
  receive_too_small,
  protection,
  own_memory,
  not_negotiated,
  // UC Read (wire.md 9.3).
  stale_read,
  duplicate_segment,
  repeated_read,
  too_many_reads,
  read_queue_full,
};

inline constexpr size_t kWdpDropCount = static_cast<size_t>(WdpDrop::read_queue_full) + 1;

// One sentence for people.
const char* to_string(WdpDrop why);
// The enumerator's name, for counters. "?" for what is none.
const char* counter_name(WdpDrop why);

}  // namespace weft::wire
