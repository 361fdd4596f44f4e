// Reads of a UC queue pair, and their recovery (spec/wdp-uc 5). A Read is asked for in ranges; what
// does not come is asked for again, range by range, until everything is there or the retries are
// used up, which fails that Read and nothing else.
//
// That a segment is lost is seen in two ways: what the responder sent later has come, and 250 us
// have passed since (the bound of spec/wdp-uc 3.3; wdp/read_ranges.h); or nothing new came for a
// time.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "wdp/answer_rate.h"
#include "wdp/counters.h"
#include "wdp/read_ranges.h"
#include "wdp/rtt.h"
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
  using Read = PendingRead;
  using Range = ReadRanges::Range;

  Read* find(ReadId id);
  bool can_ask() const;
  Read* next_to_ask() const;
  uint64_t budget() const;
  void ask(Train& train, const Range& range, Time now);
  Result<Read*, wire::WdpDrop> admit(const wire::WdpData& d);
  void progress(Read& read, const wire::WdpData& d, Time now);
  // Nothing new came for so long: all that is under way is lost.
  void expire(Read& read, Time now);
  void finish(Read& read, work::Status status);
  wire::WdpDrop lose_sink(Read& read);
  Duration timeout() const;

  UcConsumer& consumer_;
  const UcParameters& parameters_;
  UcWriter& writer_;
  Rtt& rtt_;
  UcCounters& counters_;
  std::vector<std::unique_ptr<Read>> reads_;  // in the order of their requests
  ReadRanges ranges_;
  AnswerRate rate_;
  ReadId next_id_;
  bool news_ = false;
  bool own_memory_gone_ = false;
};

}  // namespace weft::wdp
