// The half connection in which this side is the sink: its mode, its end, and what the source has to
// hear of either side's buffers before this side may advertise one (spec/sdp 5 to 8). Sink and
// WriteSink keep the buffers of each kind of zero copy.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "sdp/core/owed.h"
#include "sdp/core/sink.h"
#include "sdp/core/violation.h"
#include "sdp/core/write_sink.h"

namespace weft::sdp {

class ReceivingHalf {
 public:
  // `most`: buffers that the peer lets this side advertise at a time.
  explicit ReceivingHalf(uint32_t most) : write_sink_(most) {}

  // Messages of the peer: which of their payload belongs to the stream.
  Result<Bytes, Violation> on_data(Bytes payload);
  Result<Bytes, Violation> on_src_avail(const SrcAvail& buffer, Bytes payload);
  // What is left to do for it: to hold its acknowledgement back while a Read goes on.
  Sink::Cancel on_src_avail_cancel();
  bool on_mode_change(Mode mode);
  bool on_written(uint32_t bytes) { return write_sink_.on_written(bytes); }
  bool on_sink_cancel_ack() { return write_sink_.on_cancel_ack(); }
  // False: it has come before.
  bool on_end();
  bool got_end() const { return got_end_; }

  // The peer's buffer.
  const Sink& sink() const { return sink_; }
  Sink::Piece start_read(uint32_t most) { return sink_.start_read(most); }
  void finish_read(uint32_t bytes);
  void refuse();

  // Own buffers. A side that holds its peer's, or has not told yet what became of it, advertises
  // none (spec/sdp 7, 4). A SinkAvail that goes out has advertise() as its NonDiscards.
  bool may_advertise() const;
  uint32_t advertise(uint32_t length) { return write_sink_.advertise(length); }
  void cancel() { cancel_ = write_sink_.cancel() || cancel_; }
  bool advertising() const { return write_sink_.advertising(); }
  std::optional<uint32_t> take_written() { return write_sink_.take_outcome(); }

  // The next message that waits for a credit, or nothing for now. It is taken for sent.
  std::optional<Owed> next();

 private:
  Sink sink_;
  WriteSink write_sink_;
  uint32_t bytes_read_ = 0;  // RdmaRdCompl
  bool send_sm_ = false;
  bool cancel_ = false;  // SinkAvailCancel
  bool got_end_ = false;
};

}  // namespace weft::sdp
