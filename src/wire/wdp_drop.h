// Why a WDP datagram is dropped. WDP answers bad datagrams with silence, so a counter for each
// reason is all that tells (spec/wdp 2.6). The parsers of this layer give the reasons
// of the first half; those of the second half are found by the rules for receiving and are named
// here so that all of them count in one table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::wire {

enum class WdpDrop : uint8_t {
  // Any class (spec/wdp 2.2, 2.3).
  too_short,
  not_wdp,
  other_version,
  unknown_class,
  wrong_class,
  crc_missing,
  bad_crc,
  length_mismatch,
  // Data and UD headers (spec/wdp-uc 2.1, spec/wdp-ud 2).
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
  // CTL (spec/wdp 3.6).
  unknown_ctl_type,
  request_not_padded,
  private_data_too_long,
  parts_too_long,
  bad_tlv,
  zero_token,
  wait_too_long,
  // RDACK (spec/wdp-rd 4).
  too_many_sack_words,

  // Whom it is for (spec/wdp 2.5).
  unknown_token,
  wrong_address,
  wrong_index,
  no_such_qp,
  wrong_q_key,
  not_for_multicast,
  own_multicast,
  stale_handshake,
  unwanted_ctl,
  // UC (spec/wdp-uc 3).
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
  // UC Read (spec/wdp-uc 5).
  stale_read,
  duplicate_segment,
  repeated_read,
  too_many_reads,
  read_queue_full,
  // Channels (spec/wdp-rd 4, 5).
  window_exceeded,
  ack_beyond_sent,
};

inline constexpr size_t kWdpDropCount = static_cast<size_t>(WdpDrop::ack_beyond_sent) + 1;

// One sentence for people.
const char* to_string(WdpDrop why);
// The enumerator's name, for counters. "?" for what is none.
const char* counter_name(WdpDrop why);

}  // namespace weft::wire
