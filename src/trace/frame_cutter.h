// Finds the frames in one direction of an MPA stream, the start-up frame and then FPDUs, and keeps
// the first bytes of each: for captures in which a frame is a packet (option trace_snap).
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/io_vec.h"

namespace weft::trace {

class FrameCutter {
 public:
  // Of each frame `keep` bytes. A stream that does not begin with a start-up frame has only FPDUs.
  FrameCutter(size_t keep, bool start_up) : keep_(keep), at_start_(start_up) {}

  // Bytes that came in one call, frame by frame.
  class Input {
   public:
    Input(std::span<const IoVec> pieces, size_t bytes) : pieces_(pieces), left_(bytes) {}
    bool empty() const { return left_ == 0; }
    size_t left() const { return left_; }
    // The next bytes that lie together, `most` of them at most.
    Bytes next(size_t most);

   private:
    std::span<const IoVec> pieces_;
    size_t offset_ = 0;
    size_t left_;
  };
  // Takes bytes until a frame is whole; false when the input is used up before that.
  bool take(Input& input);
  // After take() said yes, or at the end of the stream for what is there of a frame: its first
  // bytes and its size so far. And on to the next one.
  Bytes kept() const { return Bytes{head_}.first(std::min(keep_, head_.size())); }
  size_t size() const { return seen_; }
  void next();

  // What comes is no MPA stream, or one with markers (RFC 5044 section 4.3), in which lengths do
  // not tell where frames end: each input counts as a frame.
  void give_up() { opaque_ = true; }
  // The start-up frame of this direction asked for markers in the other one.
  bool asks_for_markers() const { return asks_for_markers_; }

 private:
  bool read_size();
  size_t size_at() const;  // bytes of a frame that tell its size

  size_t keep_;
  bool at_start_;
  bool opaque_ = false;
  bool asks_for_markers_ = false;
  std::vector<std::byte> head_;  // the first bytes of the frame
  size_t seen_ = 0;
  size_t expected_ = 0;  // 0: not known yet
};

}  // namespace weft::trace
