// What a session (an RDMAP stream, a UC session of WDP) needs from the queue pair that it serves.
// The narrow place between protocol and adapter.
#pragma once

#include <cstdint>

#include "wire/terminate.h"
#include "work/memory.h"
#include "work/send_queue.h"
#include "work/work_request.h"

namespace weft::work {

// A message that arrived and took a receive.
struct Arrival {
  bool write_with_immediate = false;  // else a Send
  bool solicited = false;
  bool has_immediate = false;
  bool invalidated = false;
  uint32_t length = 0;
  uint32_t immediate = 0;  // as a big-endian number
  Stag invalidated_stag;
};

// Why a stream is over.
struct StreamEnd {
  enum class Kind : uint8_t {
    peer_closed,     // FIN between FPDUs
    closed,          // our own orderly close is through
    terminated,      // the peer sent a Terminate
    protocol_error,  // the peer broke the protocol or the rules of access; it is told by a
                     // Terminate
    local_error,     // one of our own work requests was at fault
    lost,            // the connection broke: reset, FIN inside an FPDU
    unanswered,      // the same of TCP: this host's kernel gave up a peer that was silent
  };
  Kind kind{};
  bool broke() const { return kind == Kind::lost || kind == Kind::unanswered; }
  wire::TermError error;  // of the Terminate sent or received
};

// Implemented by the adapter. All calls come from the engine holder, from inside a call into the
// stream.
class Consumer {
 public:
  virtual ~Consumer() = default;
  virtual Memory& memory() = 0;
  virtual SendQueue& send_queue() = 0;

  // Takes the next receive, from the receive queue or a shared one. False when there is none.
  virtual bool take_receive(Receive& out) = 0;
  virtual void receive_done(const Receive& receive, Status status, const Arrival& arrival) = 0;
  // The request at the head of the send queue is complete; the stream frees its slot afterwards.
  virtual void send_done(const SendWqe& wqe, Status status) = 0;
  // Carries out a local operation in its turn.
  virtual Status execute(SendWqe& wqe) = 0;

  // The stream may carry requests in both directions from now on: RTR or first FPDU was seen where
  // one is required.
  virtual void stream_ready() = 0;
  // Last call about the stream's life. Requests that stand in the send queue carry the status to
  // give the one at fault; the others are to be flushed.
  virtual void stream_ended(const StreamEnd& end) = 0;
};

}  // namespace weft::work
