#include "wire/refusal.h"

#include <iterator>

namespace weft::wire {
namespace {

struct Row {
  Refusal why;
  const char* name;
  const char* sentence;
};

// In the order of the enumeration.
constexpr Row kRows[] = {
    {Refusal::other, "other", "for a reason that has no counter of its own"},
    {Refusal::crc, "crc", "the CRC of an FPDU does not match"},
    {Refusal::empty_ulpdu, "empty_ulpdu", "an FPDU without a ULPDU that does not open the stream"},
    {Refusal::header_cut, "header_cut", "a ULPDU shorter than its DDP header"},
    {Refusal::ulpdu_too_short, "ulpdu_too_short", "a ULPDU shorter than its opcode needs"},
    {Refusal::ulpdu_too_long, "ulpdu_too_long", "a ULPDU longer than any in shared memory"},
    {Refusal::ddp_version, "ddp_version", "DDP version is not 1"},
    {Refusal::rdmap_version, "rdmap_version", "RDMAP version is not 1"},
    {Refusal::queue_number, "queue_number",
     "an untagged queue that does not exist or is not the opcode's"},
    {Refusal::msn, "msn", "MSN is not the next one of its queue"},
    {Refusal::message_offset, "message_offset", "MO does not continue the message"},
    {Refusal::message_too_long, "message_too_long", "a message of more than 2^32 - 1 bytes"},
    {Refusal::unknown_opcode, "unknown_opcode", "an opcode that does not exist"},
    {Refusal::opcode_not_negotiated, "opcode_not_negotiated",
     "an opcode of weft's extension that was not agreed on"},
    {Refusal::opcode_in_wrong_segment, "opcode_in_wrong_segment",
     "an opcode in a tagged segment that belongs in an untagged one, or the reverse"},
    {Refusal::opcode_changed, "opcode_changed", "another opcode in the middle of a Send"},
    {Refusal::behind_terminate, "behind_terminate", "a segment behind the peer's Terminate"},
    {Refusal::terminate_malformed, "terminate_malformed",
     "a Terminate that is cut in pieces or too long"},
    {Refusal::delivered_malformed, "delivered_malformed", "a Delivered with payload or without L"},
    {Refusal::delivered_beyond_sent, "delivered_beyond_sent",
     "a Delivered that covers more than was sent"},
    {Refusal::write_inside_send, "write_inside_send", "a Write in the middle of a Send"},
    {Refusal::request_inside_send, "request_inside_send",
     "a request or an Immediate in the middle of a Send"},
    {Refusal::request_malformed, "request_malformed",
     "a request, an Atomic Response or an Immediate of the wrong size"},
    {Refusal::write_invalid_stag, "write_invalid_stag", "a Write to an STag that is not in use"},
    {Refusal::write_bounds, "write_bounds", "a Write beyond its region"},
    {Refusal::write_access, "write_access",
     "a Write to a region that does not allow remote writing"},
    {Refusal::write_not_on_stream, "write_not_on_stream",
     "a Write to a region of another protection domain or a window of another queue pair"},
    {Refusal::write_wrap, "write_wrap", "a Write whose offset wraps"},
    {Refusal::write_gone, "write_gone",
     "a Write to registered memory that the program has unmapped or protected"},
    {Refusal::no_receive_in_time, "no_receive_in_time",
     "a plain peer's Send found no receive within option rnr_wait"},
    {Refusal::receive_too_short, "receive_too_short", "a Send longer than its receive"},
    {Refusal::credit_exceeded, "credit_exceeded",
     "more Sends without a receive than weft's credit allows"},
    {Refusal::invalidate_not_allowed, "invalidate_not_allowed",
     "a Send with Invalidate of an STag that is not the stream's"},
    {Refusal::invalidate_impossible, "invalidate_impossible",
     "a Send with Invalidate of an STag that cannot be invalidated"},
    {Refusal::read_invalid_stag, "read_invalid_stag",
     "a Read or an Atomic of an STag that is not in use"},
    {Refusal::read_bounds, "read_bounds", "a Read or an Atomic beyond its region"},
    {Refusal::read_access, "read_access", "a Read or an Atomic of a region that does not allow it"},
    {Refusal::read_not_on_stream, "read_not_on_stream",
     "a Read or an Atomic of a region of another protection domain or a window of another queue "
     "pair"},
    {Refusal::read_wrap, "read_wrap", "a Read or an Atomic whose offset wraps"},
    {Refusal::read_gone, "read_gone",
     "a Read or an Atomic of registered memory that the program has unmapped or protected"},
    {Refusal::reads_beyond_ird, "reads_beyond_ird",
     "more Reads and Atomics at once than were agreed on"},
    {Refusal::atomic_code, "atomic_code", "an Atomic that is neither FetchAdd nor CmpSwap"},
    {Refusal::atomic_misaligned, "atomic_misaligned", "an Atomic on no multiple of 8"},
    {Refusal::read_response_unasked, "read_response_unasked",
     "a Read Response that answers no Read"},
    {Refusal::read_response_misfit, "read_response_misfit",
     "a Read Response that does not continue the one before it"},
    {Refusal::atomic_response_unasked, "atomic_response_unasked",
     "an Atomic Response that answers no Atomic"},
    {Refusal::own_receive_memory, "own_receive_memory",
     "this side's own receive names memory that is not accessible"},
    {Refusal::own_sink_memory, "own_sink_memory",
     "this side's own Read or Atomic names memory that is not accessible any more"},
};
static_assert(std::size(kRows) == kRefusalCount);

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].why != static_cast<Refusal>(i)) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

const char* to_string(Refusal why) {
  const auto i = static_cast<size_t>(why);
  return i < kRefusalCount ? kRows[i].sentence : "?";
}
const char* counter_name(Refusal why) {
  const auto i = static_cast<size_t>(why);
  return i < kRefusalCount ? kRows[i].name : "?";
}

}  // namespace weft::wire
