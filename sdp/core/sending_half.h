// The half connection in which this side is the source: its mode, its end, and when Data, an
// advertised buffer and a Write may go, so that none overtakes what the sink has to hear first
// (spec/sdp 5 to 8). Source and WriteSource keep the buffers of each kind of zero copy.
#pragma once

#include <cstdint>
#include <optional>

#include "sdp/core/credits.h"
#include "sdp/core/owed.h"
#include "sdp/core/source.h"
#include "sdp/core/violation.h"
#include "sdp/core/write_source.h"

namespace weft::sdp {

class SendingHalf {
 public:
  // `most`: buffers that the peer may advertise at a time. `least`: bytes that each must have.
  SendingHalf(uint32_t most, uint32_t least) : write_source_(most, least) {}

  // Credits apart: these say what the state of the half connection allows.
  bool may_send_data() const { return !sent_end_ && source_.may_send_data() && !owes_sink(); }
  bool may_advertise() const {
    return may_send_data() && source_.may_advertise() && !write_source_.holds() && !next_mode_;
  }
  bool may_write() const { return write_source_.holds() && !owes_sink(); }

  // What goes out. A SrcAvail is message `mseq`.
  void on_data_sent() { write_source_.on_data(); }
  void advertise(uint32_t length, uint32_t mseq) { source_.advertise(length, mseq); }
  void cancel() { cancel_ = source_.cancel() || cancel_; }
  WriteSource::Piece start_write(uint32_t most) { return write_source_.start_write(most); }

  const Source& source() const { return source_; }
  std::optional<Source::Outcome> take_outcome() { return source_.take_outcome(); }
  bool advertising() const { return !source_.may_send_data(); }

  // The mode changes as soon as nothing is advertised any more. False: there is no such change.
  bool change_mode(Mode mode);

  // Messages of the peer. False: of a buffer that is not advertised, or a change that is none.
  bool on_read(uint32_t bytes) { return source_.on_read(bytes); }
  bool on_send_sm();
  bool on_mode_change(Mode mode) { return source_.on_mode_change(mode); }
  // The peer lets this side write to a buffer. `acknowledged` is the message's MSeqAck.
  std::optional<Violation> on_sink_avail(const SinkAvail& buffer, uint32_t acknowledged);
  void on_sink_avail_cancel() { sink_cancel_ack_ = write_source_.on_cancel() || sink_cancel_ack_; }

  // The next message that waits for a credit, or nothing for now. It is taken for sent, with the
  // number behind that of the last one in `credits`.
  std::optional<Owed> next(const Credits& credits);

  // DisConn goes when nothing is advertised any more. The user sends nothing more then.
  bool end_may_go() const { return !sent_end_ && !advertising(); }
  void end();
  bool sent_end() const { return sent_end_; }

 private:
  bool mode_may_change_now(const Credits& credits) const;
  Owed change_mode_now(uint32_t mseq);
  // An answer to a SinkAvail that Data must not overtake, nor a SrcAvail: the peer would take its
  // buffer for discarded, or drop the SrcAvail.
  bool owes_sink() const { return write_source_.completing() || sink_cancel_ack_; }

  Source source_;
  WriteSource write_source_;
  bool cancel_ = false;            // SrcAvailCancel
  bool sink_cancel_ack_ = false;   // SinkCancelAck
  std::optional<Mode> next_mode_;  // ModeChange
  uint32_t left_pipelined_ = 0;    // the last ModeChange that left Pipelined mode
  bool sent_end_ = false;
};

}  // namespace weft::sdp
