// What came of a stream and what did not: puts packets into blocks, closes blocks in order, and
// tells late, missing, double and overtaken packets apart. One stream, one thread.
//
// Above 400 lines with its source: each packet changes counts, blocks and what is expected
// together, and the sums have to be right after each.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "stream/ring.h"

namespace weft::stream {

struct Counts {
  uint64_t received = 0;      // packets in blocks that consumers get
  uint64_t missing = 0;       // never came, of what the sender sent
  uint64_t late = 0;          // came when their block was closed; they are among the missing
  uint64_t duplicate = 0;     // came again
  uint64_t out_of_order = 0;  // came behind a later one, and in time
  uint64_t overrun = 0;       // came, and their block's memory was still being read
  uint64_t recovered = 0;     // of the received: found by their trailer
  uint64_t invalid = 0;       // no packets of this stream
  uint64_t flagged = 0;       // came, and their sender says that their samples are not valid
  uint64_t foreign = 0;       // of another station, board or clock than the stream's
  uint64_t control = 0;       // of the sender's, that are not meant to have samples
  uint64_t gap = 0;           // between a sender's end and the next one's begin
  uint64_t gap_sent = 0;      // of these: sent to a receiver that had no time to publish them
  uint64_t sessions = 0;      // senders that began
  uint64_t blocks = 0;        // published
};

struct LedgerRules {
  // Blocks that stay open behind the newest one, for packets that were overtaken.
  uint32_t hold = 1;
  // Blocks ahead of the newest one whose memory is made ready for Writes that land unasked; 0 where
  // nothing lands unasked.
  uint32_t guard = 0;
  // The sender waits for credit, so that no block is ever led away.
  bool credit = false;
};

// What lies in the place of a packet number.
using InPlace = std::function<Header(uint64_t)>;

enum class Arrival : uint8_t { taken, flagged, duplicate, late, overrun };

class Ledger {
 public:
  Ledger(BlockStore& store, const LedgerRules& rules);

  // Says whether packet `number` of a block that closes lies in its place after all. Unset: never.
  std::function<bool(uint64_t)> recover;
  // The header of the packet that lies in the place of packet `number`: where Writes land unasked,
  // a sender may have come round before this thread looked. Unset: it is always the right one.
  InPlace in_place;

  // A receiver before this one published packets before `end`, and none behind. Before any sender.
  void follow(uint64_t end);
  // The first number that a new sender may use, if it would like to begin with `wish`: not one of a
  // block that consumers have.
  uint64_t may_begin(uint64_t wish) const;
  // A sender begins with packet `first`. `resumed_from`: how far it says that it was, of a sender
  // that lost its receiver.
  void begin(uint64_t first, std::optional<uint64_t> resumed_from);
  // Its count begins anew with `first`: what lies between is nobody's packets.
  void begin_anew(uint64_t first);
  bool running() const { return running_; }
  // Accounts for a packet. Only one that is `taken` goes to its place, if it is not there already.
  // `flagged`: its samples are not valid.
  Arrival arrive(uint64_t number, bool flagged = false);
  // Publishes the oldest blocks if they are complete: to be called when what arrived is in place.
  void settle();
  // Where Writes land unasked: all that has come so far has arrived here.
  void caught_up();
  // The number whose low bits these are, closest to the newest packet's.
  uint64_t complete_number(uint64_t low, unsigned bits) const;
  // The same of a sender that may have been silent, or have begun anew: where no stream runs, `low`
  // itself unless the closest number lies within the ring of the newest one, or ahead of it by
  // `outage` at most.
  uint64_t complete_number(uint64_t low, unsigned bits, uint64_t outage) const;
  // Whether arrive() would have a place for it now, or not want it.
  bool has_room(uint64_t number) const;
  // The sender sent all before `end` and no more, or, without, as far as one can see. Closes all
  // blocks.
  void finish(std::optional<uint64_t> end);
  // Whether a sender can have come to `end`. Anybody may say anything.
  bool may_end(uint64_t end) const { return end >= first_ && end < next_ + kFarthestEnd; }
  // Whether every packet before `end` came that still can.
  bool all_here(uint64_t end) const;
  // The first number of the sender that runs, or ran last.
  uint64_t first() const { return first_; }
  // Whether a packet of this sender, or of one before, has come.
  bool any_came() const { return counts_.received > 0 || next_ > first_; }
  // The number behind the newest packet.
  uint64_t next() const { return next_; }
  // With credit: makes memory ready as far as it is free; the first number that has none.
  uint64_t extend();

  const Counts& counts() const { return counts_; }
  // Packets that lie in blocks that are not published yet. They are in no count of the others.
  uint64_t open() const;
  void count_invalid(uint64_t packets = 1) { counts_.invalid += packets; }
  void count_foreign() { ++counts_.foreign; }
  void count_control() { ++counts_.control; }
  void count_late() { ++counts_.late; }

 private:
  static constexpr uint64_t kFarthestEnd = uint64_t{1} << 32;
  struct Open {
    std::vector<uint8_t> seen;   // a bit for each packet that came
    std::vector<uint8_t> valid;  // of these, what consumers get
    uint32_t came = 0;
    uint32_t received = 0;
    bool overrun = false;
  };
  uint64_t block_of(uint64_t number) const { return number / packets_; }
  uint64_t end_of_open() const { return base_ + open_.size(); }
  // Writes land where they want.
  bool unasked() const { return rules_.guard > 0 && !rules_.credit; }
  void advance(uint64_t block);
  void start(uint64_t first);
  void open_next();
  void lead_up_to(uint64_t block);
  void close_oldest(uint64_t end);
  void close_all(std::optional<uint64_t> end);
  void look_for_stragglers(Open& open, uint64_t end);
  void look_at_what_lies_there(Open& open);
  void give_up(Open& open);
  void note_who_came_round();
  void shut_the_way_round();
  void lead_what_is_free();
  void say_what_is_led();

  BlockStore& store_;
  const LedgerRules rules_;
  const uint32_t packets_;
  Counts counts_;
  bool running_ = false;
  bool ever_ = false;
  uint64_t first_ = 0;  // of this sender
  uint64_t next_ = 0;
  uint64_t base_ = 0;       // the oldest open block
  uint64_t led_ = 0;        // blocks before this one are led somewhere
  uint64_t doubtful_ = 0;   // of those before this one a later turn's Writes may have got parts
  bool is_behind_ = false;  // the same of all, for the sender is a whole turn ahead
  std::deque<Open> open_;
  std::vector<Open> spare_;  // keeps memory constant
};

}  // namespace weft::stream
