// What the Reads of a UC queue pair have under way, range by range, and which of it is lost
// (spec/wdp-uc 5.5).
//
//   Read     ├── asked, complete ──┼── range ──┼─ range ─┼── not asked yet ────────┤
//                                        ▲ its lost segments become ranges of their own
//
// Ranges only: which Reads there are, and what is said to the peer, is their owner's
// (wdp/read_requester.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "wdp/segment_map.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

// One Read, as far as it has come.
struct PendingRead {
  uint64_t request = 0;  // index in the send queue
  ReadId id;
  uint32_t length = 0;
  Stag stag;
  TaggedOffset to;
  uint64_t asked = 0;   // bytes from the front; length + 1 when an empty one was
  uint16_t stride = 0;  // of the response; 0: none has come
  SegmentMap came;
  uint32_t attempt = 0;
  uint32_t expiries = 0;  // in a row
  Duration timeout{0};
  Time expires = Time::never();
};

class ReadRanges {
 public:
  struct Range {
    PendingRead* read = nullptr;  // its owner calls forget() before it goes
    uint32_t begin = 0;
    uint32_t end = 0;
    uint64_t order = 0;  // of the request among all
    bool first_time = true;
    bool alone = false;  // nothing else was under way: its first segment gives a round-trip time
    Time asked_at;
  };

  // It is asked for now.
  void add(Range range, Time now);
  bool none_out() const { return out_.empty(); }
  // Of those that are out.
  uint64_t bytes_out() const { return bytes_out_; }
  bool any_lost() const { return !lost_.empty(); }
  // Out, and lost.
  size_t size() const { return out_.size() + lost_.size(); }
  // The one that was lost first, to be asked for again. There has to be one.
  Range take_lost();

  // A segment of the Read has come, and its map knows of it: ranges that are complete go. When the
  // range that it answers was asked for, if that was alone.
  std::optional<Time> answered(const PendingRead& read, const wire::WdpData& d, Time now);

  bool is_out(const PendingRead& read) const { return has(out_, read); }
  bool is_lost(const PendingRead& read) const { return has(lost_, read); }
  // Nothing new came for so long that all of it that is out is lost.
  void lose(PendingRead& read);
  void forget(const PendingRead& read);
  void clear();

  // When tick() has something to do.
  Time deadline() const;
  // What was asked for before the answers that have come, and is still missing, is lost.
  void tick(Time now);

 private:
  // How far the answers have come: all that was asked for before and is missing is overdue.
  struct Horizon {
    uint64_t order = 0;
    uint32_t offset = 0;
    Time since;
  };

  static bool has(const std::vector<Range>& list, const PendingRead& read);
  void note_horizon(const Range& range, const wire::WdpData& d, Time now);
  // What is missing of the range before `limit` is lost. True when nothing is left of the range.
  bool split(Range& range, uint32_t limit);

  std::vector<Range> out_;   // in the order of asking
  std::vector<Range> lost_;  // in the order of their loss
  uint64_t bytes_out_ = 0;
  std::optional<Horizon> horizon_;
  uint64_t next_order_ = 0;
};

}  // namespace weft::wdp
