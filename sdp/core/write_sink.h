// Write ZCopy in the role of sink: the buffers that this side has advertised (spec/sdp 7).
//
//   event at the sink     buffer advertised                 none advertised
//   --------------------  --------------------------------  ----------------------------------
//   Data comes in         discards the oldest one           counts
//   RdmaWrCompl           completes the oldest one          ends the connection
//   SinkCancelAck         ends all, if a cancel was sent    ends the connection
//   DisConn               ends all                          nothing
//   change to Combined    ends all                          nothing
//   SrcAvail              the SrcAvail is dropped           the SrcAvail is held (sink.h)
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "sdp/wire/extended_headers.h"

namespace weft::sdp {

class WriteSink {
 public:
  // `most`: buffers that the peer lets this side advertise at a time.
  explicit WriteSink(uint32_t most) : most_(most) {}

  // Buffers that the peer may write to.
  bool advertising() const { return !advertised_.empty(); }
  // What became of each earlier buffer must have been asked for, or another thread that advertises
  // would take that for its own.
  bool may_advertise() const {
    return !cancelled_ && advertised_.size() + outcomes_.size() < most_;
  }
  // A SinkAvail goes out: its NonDiscards.
  uint32_t advertise(uint32_t length);
  // True: SinkAvailCancel has to go out. All buffers stay the peer's until they have an outcome.
  bool cancel();
  bool cancelled() const { return cancelled_; }

  // Data with payload came in.
  void on_data();
  // False: no buffer to which that could have been written.
  bool on_written(uint32_t bytes);
  bool on_cancel_ack();
  // The stream has ended, or may not be written to any more.
  void end_all();

  // How many bytes were written to the oldest buffer that is not advertised any more, once.
  std::optional<uint32_t> take_outcome();

 private:
  void end_oldest(uint32_t bytes);

  uint32_t most_;
  std::deque<uint32_t> advertised_;  // lengths
  std::deque<uint32_t> outcomes_;
  uint32_t taken_ = 0;  // Data messages that discarded nothing
  bool cancelled_ = false;
};

}  // namespace weft::sdp
