#include "wire/wdp_drop.h"

#include <iterator>

namespace weft::wire {
namespace {

struct Row {
  WdpDrop why;
  const char* name;
  const char* sentence;
};

// In the order of the enumeration.
constexpr Row kRows[] = {
    {WdpDrop::too_short, "too_short", "shorter than the header of its class"},
    {WdpDrop::not_wdp, "not_wdp", "does not begin with WDP's magic"},
    {WdpDrop::other_version, "other_version", "another version of WDP"},
    {WdpDrop::unknown_class, "unknown_class", "a class that does not exist"},
    {WdpDrop::wrong_class, "wrong_class", "a class that does not belong here"},
    {WdpDrop::crc_missing, "crc_missing", "without the CRC that it has to have"},
    {WdpDrop::bad_crc, "bad_crc", "CRC does not match"},
    {WdpDrop::length_mismatch, "length_mismatch", "not as long as its header says"},
    {WdpDrop::ddp_version, "ddp_version", "DDP version is not 1"},
    {WdpDrop::rdmap_version, "rdmap_version", "RDMAP version is not 1"},
    {WdpDrop::bad_opcode, "bad_opcode", "an opcode that its class does not have"},
    {WdpDrop::tag_mismatch, "tag_mismatch", "tagged where its opcode is not, or the reverse"},
    {WdpDrop::bad_stride, "bad_stride", "STRIDE is 0 or above 65456"},
    {WdpDrop::misaligned_offset, "misaligned_offset", "MO is no multiple of STRIDE"},
    {WdpDrop::offset_beyond_message, "offset_beyond_message", "MO is not inside the message"},
    {WdpDrop::last_mismatch, "last_mismatch", "L disagrees with the place in the message"},
    {WdpDrop::message_length, "message_length", "MLEN is not what its opcode has in one datagram"},
    {WdpDrop::read_range, "read_range", "the range asked for is not inside the Read"},
    {WdpDrop::index_mismatch, "index_mismatch", "index byte disagrees with the header"},
    {WdpDrop::unknown_ctl_type, "unknown_ctl_type", "a CTL type that does not exist"},
    {WdpDrop::request_not_padded, "request_not_padded", "a REQ of less than 256 bytes"},
    {WdpDrop::private_data_too_long, "private_data_too_long", "more than 512 bytes private data"},
    {WdpDrop::parts_too_long, "parts_too_long", "the parts of a CTL message do not fit into it"},
    {WdpDrop::bad_tlv, "bad_tlv", "TLVs that cannot be told apart"},
    {WdpDrop::zero_token, "zero_token", "announces token 0"},
    {WdpDrop::wait_too_long, "wait_too_long", "a WAIT of more than 30 seconds"},
    {WdpDrop::too_many_sack_words, "too_many_sack_words", "more than 32 SACK words"},
    {WdpDrop::unknown_token, "unknown_token", "a token that is not in use"},
    {WdpDrop::wrong_address, "wrong_address", "from another address than the session's"},
    {WdpDrop::wrong_index, "wrong_index", "index is not that of the token's queue pair"},
    {WdpDrop::no_such_qp, "no_such_qp", "no such queue pair"},
    {WdpDrop::wrong_q_key, "wrong_q_key", "Q_Key does not match"},
    {WdpDrop::not_for_multicast, "not_for_multicast", "not UD, on a multicast port"},
    {WdpDrop::own_multicast, "own_multicast", "the queue pair's own multicast"},
    {WdpDrop::stale_handshake, "stale_handshake", "answers a handshake that is over"},
    {WdpDrop::unwanted_ctl, "unwanted_ctl", "CTL that means nothing in this state"},
    {WdpDrop::duplicate, "duplicate", "came before"},
    {WdpDrop::stale_psn, "stale_psn", "PSN is older than the window"},
    {WdpDrop::psn_jump, "psn_jump", "PSN is too far ahead"},
    {WdpDrop::stale_msn, "stale_msn", "MSN is older than the window"},
    {WdpDrop::msn_jump, "msn_jump", "MSN is further ahead than its PSN"},
    {WdpDrop::superseded, "superseded", "of a message that a newer one took the place of"},
    {WdpDrop::context_mismatch, "context_mismatch", "disagrees with its message's other segments"},
    {WdpDrop::too_many_segments, "too_many_segments", "of a message of more than 2^21 segments"},
    {WdpDrop::no_receive, "no_receive", "no receive was posted"},
    {WdpDrop::receive_too_small, "receive_too_small", "longer than the posted receive"},
    {WdpDrop::protection, "protection", "memory that the sender may not use so"},
    {WdpDrop::own_memory, "own_memory", "memory of the receive or Read it is for is gone"},
    {WdpDrop::not_negotiated, "not_negotiated", "needs a feature that was not agreed on"},
    {WdpDrop::stale_read, "stale_read", "response to a Read that is not outstanding"},
    {WdpDrop::duplicate_segment, "duplicate_segment", "a segment of the Read that is there"},
    {WdpDrop::repeated_read, "repeated_read", "a Read Request that was answered"},
    {WdpDrop::too_many_reads, "too_many_reads", "more ranges outstanding than IRD"},
    {WdpDrop::read_queue_full, "read_queue_full", "too many bytes of responses are queued"},
    {WdpDrop::window_exceeded, "window_exceeded", "beyond what the channel's receiver takes"},
    {WdpDrop::ack_beyond_sent, "ack_beyond_sent", "acknowledges what was never sent"},
};

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<size_t>(kRows[i].why) != i) return false;
  }
  return true;
}
static_assert(std::size(kRows) == kWdpDropCount && in_order());

}  // namespace

const char* to_string(WdpDrop why) {
  const auto i = static_cast<size_t>(why);
  return i < kWdpDropCount ? kRows[i].sentence : "?";
}

const char* counter_name(WdpDrop why) {
  const auto i = static_cast<size_t>(why);
  return i < kWdpDropCount ? kRows[i].name : "?";
}

}  // namespace weft::wire
