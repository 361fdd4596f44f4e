// The states that a peer can bring a stream to, and the way there with valid bytes.
#pragma once

#include <memory>

#include "fuzz/rdmap/session.h"
#include "fuzz/support/input.h"

namespace weft::fuzz {

enum class Start : uint8_t {
  initiator,           // nothing said on either side
  responder,           // silent until the first FPDU
  rtr_write_due,       // Responder, waits for the RTR of kind C
  rtr_read_due,        // D
  rtr_fpdu_due,        // B
  rtr_read_out,        // Initiator, its RTR read is not answered
  rtr_fpdu_out,        // Initiator, its first FPDU was the empty one
  between_fpdus,       // both sides have spoken
  in_length,           // one byte of an FPDU is in
  in_header,           // of DDP
  in_payload,          // of an FPDU that is gathered
  in_crc,              //
  in_placed_write,     // the rest is received straight to its place
  in_placed_send,      //
  in_placed_response,  //
  in_placed_early,     // Send without a receive: its place is a buffer of the stream
  in_placed_crc,       // payload in, trailer not
  in_send,             // between the segments of a Send
  in_early_send,       // the same, without a receive
  in_write,            // between the segments of a Write
  in_response,         // between the segments of a Read Response
  read_out,            // a Read has no answer yet
  atomic_out,          //
  reads_out,           // as many as the ORD allows, and one more waits
  sends_out,           // Sends that nothing covers
  not_ready_told,      // the peer has no receive for the first of them
  reads_to_answer,     // as many as the IRD allows
  parked,              // Send, Immediate, Read and Atomic wait for a receive
  closing,             // close() was called, a Read is out
  shut,                // our FIN is out
  leaving,             // the queue pair is gone
  terminate_due,       // the peer broke a rule; our Terminate is not out
  terminate_sent,      //
  terminate_received,  //
  local_error,         // one of our own requests was at fault
};
inline constexpr Start kLastStart = Start::local_error;

struct Setup {
  Start start{};
  std::unique_ptr<Session> session;
};

// Reads two bytes: the state, and what the start-up agreed on.
Setup begin(Input& input);

}  // namespace weft::fuzz
