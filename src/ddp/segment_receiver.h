// Takes ULPDUs from MPA, checks what every DDP segment must satisfy, and asks the ULP where the
// payload belongs (RFC 5041 sections 5 to 7).
#pragma once

#include <array>

#include "ddp/segment.h"
#include "ddp/untagged_queue.h"
#include "mpa/ulpdu_sink.h"

namespace weft::ddp {

using mpa::Verdict;

// The upper layer protocol of a stream: RDMAP.
class Ulp {
 public:
  virtual ~Ulp() = default;
  // May a segment of this kind come on this queue? MSN and MO of untagged segments are checked
  // between this and open().
  virtual Verdict check(const Segment& s) = 0;
  // Its first look at a segment that is in order; takes what it needs to place it.
  virtual Verdict open(const Segment& s) = 0;
  virtual Verdict where(const Segment& s, size_t offset, size_t length, PieceList& places) = 0;
  // The memory that where() named cannot be reached: whose fault it is, and why the stream ends.
  virtual wire::TermError unreachable(const Segment& s) = 0;
  virtual Verdict deliver(const Segment& s) = 0;
};

class SegmentReceiver final : public mpa::UlpduSink {
 public:
  explicit SegmentReceiver(Ulp& ulp) : ulp_(ulp) {}

  size_t header_size(std::byte first) const override {
    return wire::ddp_header_size((std::to_integer<uint8_t>(first) & 0x80) != 0);
  }
  Verdict begin(Bytes start, size_t ulpdu) override;
  Verdict where(size_t offset, size_t length, PieceList& places) override {
    return ulp_.where(segment_, offset, length, places);
  }
  wire::TermError unreachable() override { return ulp_.unreachable(segment_); }
  Verdict deliver() override;

  // The segment that the last call was about: what a Terminate quotes. `valid` once its header was
  // read and its versions known.
  const Segment& segment() const { return segment_; }
  bool segment_valid() const { return valid_; }

 private:
  Ulp& ulp_;
  Segment segment_;
  bool valid_ = false;
  std::array<UntaggedQueue, 4> queues_;
};

}  // namespace weft::ddp
