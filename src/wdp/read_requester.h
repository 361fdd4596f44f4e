// Reads of a UC queue pair, and their recovery (spec/wdp-uc 5). A Read is asked for in ranges; what
// does not come is asked for again, range by range, until everything is there or the retries are
// used up, which fails that Read and nothing else.
//
//   Read     ├── asked, complete ──┼── range ──┼─ range ─┼── not asked yet ────────┤
//                                        ▲ its lost segments become ranges of their own
//
// That a segment is lost is seen in two ways: what the responder sent later has come, and 250 us
// have passed since (the bound of spec/wdp-uc 3.3); or nothing new came for a time.
//
// Above 400 lines with its source: asking, taking answers and asking again move the same ranges
// between the same three lists.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "wdp/counters.h"
#include "wdp/rtt.h"
#include "wdp/segment_map.h"
#include "wdp/uc_consumer.h"
#include "wdp/uc_writer.h"

namespace weft::wdp {

class ReadRequester {
 public:
  // `seed`: RIDs begin there.
  ReadRequester(UcConsumer& consumer, const UcParameters& parameters, UcWriter& writer, Rtt& rtt,
                UcCounters& counters, uint32_t seed);

  // As many Reads as ORD allows are under way.
  bool full() const { return reads_.size() >= parameters_.ord; }
  size_t outstanding() const { return reads_.size(); }
  // `request`: index in the send queue.
  void add(uint64_t request, const work::SendWqe& w);

  // --- datagrams out
  bool ready() const;
  void fill(Train& train, Time now);

  // --- datagrams in
  Result<Ok, wire::WdpDrop> received(const wire::WdpData& d, Bytes payload, bool in_place,
                                     Time now);
  // Where the payload goes, when received() would take it. Changes nothing.
  bool direct(const wire::WdpData& d, PieceList& places);
  // The places that direct() named cannot be reached. Always fails.
  Result<Ok, wire::WdpDrop> unreachable(const wire::WdpData& d);
  // The peer refuses it (ERR). False when there is no such Read.
  bool refused(ReadId id);

  // Datagrams are to be smaller now: Reads that were to come in larger ones are asked for anew.
  void path_narrowed();

  // --- time
  Time deadline() const;
  void tick(Time now);

  // A Read ended since this was asked last: the send path may complete requests.
  bool take_news() { return std::exchange(news_, false); }
  // Our own program took the memory of a Read away: its request says so, and those behind it are
  // flushed.
  bool own_memory_gone() const { return own_memory_gone_; }
  // Forgets all Reads: their requests are flushed.
  void stop();

 private:
  struct Read {
    uint64_t request = 0;
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
  // Asked for, and not complete.
  struct Range {
    Read* read = nullptr;
    uint32_t begin = 0;
    uint32_t end = 0;
    uint64_t order = 0;  // of the request among all
    bool first_time = true;
    bool alone = false;  // nothing else was under way: its first segment gives a round-trip time
    Time asked_at;
  };
  // How far the answers have come: all that was asked for before and is missing is overdue.
  struct Horizon {
    uint64_t order = 0;
    uint32_t offset = 0;
    Time since;
  };

  Read* find(ReadId id);
  bool can_ask() const;
  Read* next_to_ask() const;
  uint64_t budget() const;
  void ask(Train& train, Range range, Time now);
  Result<Read*, wire::WdpDrop> admit(const wire::WdpData& d);
  void progress(Read& read, const wire::WdpData& d, Time now);
  void note_horizon(const Range& range, const wire::WdpData& d, Time now);
  void judge_horizon(Time now);
  void expire(Read& read, Time now);
  // What is missing of the range before `limit` is to be asked for again. True when nothing is
  // left of the range.
  bool split(Range& range, uint32_t limit);
  void forget_ranges(const Read& read);
  bool has_ranges(const Read& read, const std::vector<Range>& list) const;
  void finish(Read& read, work::Status status);
  wire::WdpDrop lose_sink(Read& read);
  Duration timeout() const;
  void measure(uint32_t bytes, Time now);

  UcConsumer& consumer_;
  const UcParameters& parameters_;
  UcWriter& writer_;
  Rtt& rtt_;
  UcCounters& counters_;
  std::vector<std::unique_ptr<Read>> reads_;  // in the order of their requests
  std::vector<Range> ranges_;                 // in the order of asking
  std::vector<Range> again_;                  // to be asked for again
  uint64_t outstanding_ = 0;                  // bytes of ranges_
  std::optional<Horizon> horizon_;
  ReadId next_id_;
  uint64_t next_order_ = 0;
  bool news_ = false;
  bool own_memory_gone_ = false;

  double bytes_per_ns_ = 0.0125;  // what answers have come with: 100 Mb/s before any has
  uint64_t measured_bytes_ = 0;
  Time measured_since_ = Time::never();
};

}  // namespace weft::wdp
