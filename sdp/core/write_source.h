// Write ZCopy in the role of source: the buffers that the peer, the sink, has advertised
// (spec/sdp 7). The source writes to the oldest one and says how much.
//
// Data and SinkAvails cross. Both sides count the Data messages that discarded no SinkAvail, and
// each SinkAvail has the sink's count in NonDiscards:
//
//   event at the source            buffer held              no buffer held
//   -----------------------------  -----------------------  -------------------------------------
//   Data goes out                  discards the oldest one  counts
//   SinkAvail, NonDiscards = own   is held, too             is held
//   SinkAvail, NonDiscards < own   stale: own count - 1     stale: own count - 1
//   SinkAvail, NonDiscards > own   ends the connection      ends the connection
//   SinkAvailCancel                drops all: an answer     nothing: the answer is on its way
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "sdp/wire/extended_headers.h"

namespace weft::sdp {

class WriteSource {
 public:
  // `most`: buffers that the peer may advertise at a time. `least`: bytes that each must have.
  WriteSource(uint32_t most, uint32_t least) : most_(most), least_(least) {}

  // Buffers to write to.
  bool holds() const { return !held_.empty(); }
  // RdmaWrCompl for the last Write has not gone out. Nothing with data may overtake it.
  bool completing() const { return written_ > 0; }

  // A Write to the oldest buffer, which is used up by it. Only when there is one, and not
  // completing().
  struct Piece {
    uint32_t stag = 0;
    uint64_t to = 0;
    uint32_t length = 0;
  };
  Piece start_write(uint32_t most);
  // The length that RdmaWrCompl has to tell.
  uint32_t take_completion() { return std::exchange(written_, 0); }

  // A Data message with payload goes out.
  void on_data();
  // A SinkAvail came in. `crossed`: its sender did not know yet that the half connection had left
  // Pipelined mode, which discards it.
  enum class Taken : uint8_t { held, stale, crossed, broken };
  Taken on_sink_avail(const SinkAvail& buffer, bool crossed);
  // True: a buffer was dropped, which SinkCancelAck has to tell.
  bool on_cancel();
  // The half connection leaves Pipelined mode. Only while it holds nothing.
  void on_leaving_pipelined() { behind_change_ = 0; }
  // The stream has ended.
  void drop_all() { held_.clear(); }

 private:
  uint32_t most_;
  uint32_t least_;
  std::deque<SinkAvail> held_;
  uint32_t sent_ = 0;           // Data messages that discarded nothing
  uint32_t behind_change_ = 0;  // those of them that went behind the last change to Combined
  uint32_t written_ = 0;
};

}  // namespace weft::sdp
