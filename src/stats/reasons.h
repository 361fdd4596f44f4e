// What can happen to a connection besides carrying data: how it is made, how it ends, which faults
// were injected. One counter for each; their names and
// sentences are in table.cc, in the same order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::stats {

// A connection that came in ends without a Reply of the application's (spec/mpa 2).
enum class StartRefusal : uint8_t {
  bad_key,
  bad_revision,
  private_data_too_long,
  enhanced_block_missing,
  bytes_behind_request,
  fpdu_before_reply,
  request_late,
  peer_left,
  reply_unsent,
  no_memory,
};
inline constexpr size_t kStartRefusals = static_cast<size_t>(StartRefusal::no_memory) + 1;

// A Reply that this side cannot live with.
enum class ReplyRefusal : uint8_t {
  bad_key,
  bad_revision,
  private_data_too_long,
  enhanced_block_missing,
  insufficient_ird,
  no_matching_rtr,
};
inline constexpr size_t kReplyRefusals = static_cast<size_t>(ReplyRefusal::no_matching_rtr) + 1;

// Why connections wait in the kernel's queue.
enum class AcceptPause : uint8_t { half_open, backlog, no_descriptor, no_memory };
inline constexpr size_t kAcceptPauses = static_cast<size_t>(AcceptPause::no_memory) + 1;

// How an active start failed.
enum class DialEnd : uint8_t {
  nobody_listens,
  unreachable,
  timed_out,
  rejected,
  no_reply,
  bad_reply,
  to_itself,
  no_memory,
};
inline constexpr size_t kDialEnds = static_cast<size_t>(DialEnd::no_memory) + 1;

// A connection on which the peer answers nothing.
enum class Silence : uint8_t { connecting, stream, datagrams };
inline constexpr size_t kSilences = static_cast<size_t>(Silence::datagrams) + 1;

// Why rdma_cm says no to a Request.
enum class CmRejection : uint8_t { by_program, channel_gone, id_gone, no_memory };
inline constexpr size_t kCmRejections = static_cast<size_t>(CmRejection::no_memory) + 1;

// Why an IB-style bring-up is refused here (spec/addressing 5.2).
enum class BringUpRefusal : uint8_t {
  no_block,
  other_version,
  no_such_qp,
  qp_in_error,
  already_connected,
  duplicate,
  not_your_peer,
  other_user,
  role_conflict,
  parked_too_many,
  parked_too_long,
  qp_left,
  no_memory,
};
inline constexpr size_t kBringUpRefusals = static_cast<size_t>(BringUpRefusal::no_memory) + 1;

// What the other side said to ours: codes 1 to 6 of WFRC; 0 is for what is no such answer.
inline constexpr size_t kBringUpAnswers = 7;

// What a call over datagrams failed by (spec/wdp 3.5): the reasons of wire::RejReason, which begin
// with 1, and behind them what is none of these.
inline constexpr size_t kRejReasons = 10;
enum class CallEnd : uint8_t { other_reason = kRejReasons, bad_answer, timed_out };
inline constexpr size_t kCallEnds = static_cast<size_t>(CallEnd::timed_out) + 1;

// Why two processes on one host stay with TCP (spec/same-host 2).
enum class SameHostRefusal : uint8_t {
  off,
  recorded,
  disturbed,
  not_weft,
  network_namespace,
  no_segment,
  not_allowed,
  foreign_segment,
  by_peer,
};
inline constexpr size_t kSameHostRefusals = static_cast<size_t>(SameHostRefusal::by_peer) + 1;

// What was done on purpose (WEFT_FAULT, docs/faults.md).
enum class InjectedFault : uint8_t {
  datagrams_out,  // that a decision was made for
  datagrams_in,
  lost_out,
  lost_in,
  duplicated_out,
  duplicated_in,
  reordered_out,
  reordered_in,
  corrupted_out,
  corrupted_in,
  overflowed_out,
  overflowed_in,
  unsent,
  stream_split,
  stream_delayed,
};
inline constexpr size_t kInjectedFaults = static_cast<size_t>(InjectedFault::stream_delayed) + 1;

// Why a stream is over: as work::StreamEnd::Kind.
inline constexpr size_t kStreamEnds = 7;
// As work::Status, from the one behind success on.
inline constexpr size_t kErrorStatuses = 13;

}  // namespace weft::stats
