#include "stream/ledger.h"

#include <algorithm>
#include <utility>

namespace weft::stream {
namespace {

// Blocks that stay shut while all others may be free.
constexpr uint64_t kTripwire = 2;

}  // namespace

Ledger::Ledger(BlockStore& store, const LedgerRules& rules)
    : store_(store), rules_(rules), packets_(store.packets()) {}

void Ledger::follow(uint64_t end) {
  ever_ = true;
  first_ = next_ = end;
  base_ = (end + packets_ - 1) / packets_;
}

uint64_t Ledger::may_begin(uint64_t wish) const {
  // finish() closes what is open, and a block that is begun is closed as a whole.
  const uint64_t end = end_of_open() * packets_;
  // More than the ring behind it: somebody counts anew.
  const uint64_t ring = uint64_t{store_.blocks()} * packets_;
  if (!ever_ || wish + ring < end) return wish;
  return std::max(wish, end);
}

void Ledger::begin(uint64_t first, std::optional<uint64_t> resumed_from) {
  if (running_) finish(std::nullopt);
  if (ever_ && first > next_) {
    counts_.gap += first - next_;
    const uint64_t sent = std::min(resumed_from.value_or(0), first);
    if (sent > next_) counts_.gap_sent += sent - next_;
  } else if (!ever_ && resumed_from && first > *resumed_from) {
    counts_.gap += first - *resumed_from;
  }
  start(first);
}

void Ledger::begin_anew(uint64_t first) {
  if (running_) close_all(std::nullopt);
  start(first);
}

void Ledger::start(uint64_t first) {
  ++counts_.sessions;
  running_ = true;
  ever_ = true;
  first_ = next_ = first;
  base_ = led_ = block_of(first);
  doubtful_ = 0;
  is_behind_ = false;
  if (!unasked()) return;
  shut_the_way_round();
  // A sender that nobody announced has begun to write.
  for (; led_ < base_ + rules_.guard; ++led_) store_.lead(led_, true);
  say_what_is_led();
}

bool Ledger::all_here(uint64_t end) const {
  if (next_ < end) return false;
  // Nothing overtakes where nothing is held open.
  if (rules_.hold == 0) return true;
  const uint64_t from = std::max(first_, base_ * packets_);
  uint64_t here = 0;
  for (const Open& open : open_) here += open.came;
  return from + here >= end;
}

bool Ledger::has_room(uint64_t number) const {
  const uint64_t block = block_of(number);
  return block < end_of_open() || store_.is_free(block);
}

uint64_t Ledger::complete_number(uint64_t low, unsigned bits) const {
  return closest_number(next_, low, bits);
}

uint64_t Ledger::complete_number(uint64_t low, unsigned bits, uint64_t outage) const {
  if (!ever_) return low;
  const uint64_t near = complete_number(low, bits);
  const uint64_t ring = uint64_t{store_.blocks()} * packets_;
  const bool goes_on = running_ || (near + ring >= next_ && near <= next_ + outage);
  return goes_on ? near : low;
}

uint64_t Ledger::open() const {
  uint64_t packets = 0;
  for (const Open& open : open_) packets += open.received;
  return packets;
}

Arrival Ledger::arrive(uint64_t number, bool flagged) {
  const uint64_t block = block_of(number);
  if (number < first_ || block < base_) {
    if (store_.has(number)) {
      ++counts_.duplicate;
      return Arrival::duplicate;
    }
    ++counts_.late;
    return Arrival::late;
  }
  if (block >= end_of_open()) advance(block);
  Open& open = open_[block - base_];
  const uint64_t i = number % packets_;
  const auto bit = static_cast<uint8_t>(1U << (i % 8));
  if ((open.seen[i / 8] & bit) != 0) {
    ++counts_.duplicate;
    return Arrival::duplicate;
  }
  open.seen[i / 8] |= bit;
  ++open.came;
  if (number < next_) {
    ++counts_.out_of_order;
  } else {
    next_ = number + 1;
  }
  if (flagged) {
    ++counts_.flagged;
    return Arrival::flagged;
  }
  if (open.overrun) {
    ++counts_.overrun;
    return Arrival::overrun;
  }
  open.valid[i / 8] |= bit;
  ++open.received;
  return Arrival::taken;
}

void Ledger::settle() {
  while (!open_.empty() && open_.front().came == packets_) close_oldest(next_);
  if (!unasked()) return;
  if (running_) {
    lead_what_is_free();
  } else {
    store_.rest();
  }
}

// A packet of the block's next turn is here already, or the sender was here before the memory was
// made ready. With credit neither can be: the Write did not bring what it said. And what its sender
// says is not valid is told by its header alone.
void Ledger::look_at_what_lies_there(Open& open) {
  for (uint32_t i = 0; i < packets_; ++i) {
    const uint64_t number = base_ * packets_ + i;
    uint8_t& byte = open.valid[i / 8];
    const auto bit = static_cast<uint8_t>(1U << (i % 8));
    if ((byte & bit) == 0) continue;
    const Header found = in_place(number);
    if (found.is(number) && found.verdict == Verdict::good) continue;
    byte &= static_cast<uint8_t>(~bit);
    --open.received;
    if (found.is(number)) {
      ++counts_.flagged;
    } else if (rules_.credit) {
      ++counts_.invalid;
      --open.came;
    } else {
      // It went elsewhere while its memory was led away, or a later one came.
      ++counts_.overrun;
    }
  }
}

void Ledger::advance(uint64_t block) {
  while (!open_.empty() && base_ + rules_.hold < block) close_oldest(block * packets_);
  if (open_.empty() && base_ + rules_.hold < block) {
    // Blocks of which nothing came.
    const uint64_t resume = block - rules_.hold;
    const uint64_t from = std::max(first_, base_ * packets_);
    if (resume * packets_ > from) counts_.missing += resume * packets_ - from;
    base_ = resume;
    if (unasked()) shut_the_way_round();
  }
  while (end_of_open() <= block) open_next();
  if (unasked()) lead_up_to(block + rules_.guard);
}

void Ledger::open_next() {
  const uint64_t block = end_of_open();
  Open open;
  if (!spare_.empty()) {
    open = std::move(spare_.back());
    spare_.pop_back();
  }
  open.seen.assign((packets_ + 7) / 8, 0);
  open.valid.assign((packets_ + 7) / 8, 0);
  open.came = 0;
  open.received = 0;
  open.overrun = !store_.is_free(block);
  if (unasked()) {
    if (block >= led_) {
      // The sender was here before this thread looked.
      store_.lead(block, true);
      led_ = block + 1;
      say_what_is_led();
    }
    // Where its packets went was settled when it was led.
    open.overrun = !store_.is_led_here(block);
  }
  open_.push_back(std::move(open));
}

void Ledger::lead_up_to(uint64_t block) {
  for (; led_ < block; ++led_) store_.lead(led_);
  say_what_is_led();
}

// Blocks are shut when they are published. These were not, and nobody else shuts them before the
// sender may have come round.
void Ledger::shut_the_way_round() {
  for (uint64_t behind = 1; behind <= kTripwire; ++behind) {
    store_.settle(base_ + store_.blocks() - behind);
    store_.settled();
  }
}

// Further than has to be, so that this thread may be kept from running for longer. Some stay shut:
// who comes round writes to these first.
void Ledger::lead_what_is_free() {
  const uint64_t most = base_ + store_.blocks();
  const uint64_t before = led_;
  while (led_ + kTripwire < most && store_.is_free(led_)) store_.lead(led_++);
  if (led_ != before) say_what_is_led();
}

// A single block that is shut gets late packets as well.
void Ledger::say_what_is_led() {
  const bool can_tell = led_ + 1 < base_ + store_.blocks();
  store_.expect_nothing_for(can_tell ? std::optional{led_} : std::nullopt);
}

uint64_t Ledger::extend() {
  // Memory of open blocks is not free, though nobody reads it yet.
  const uint64_t most = std::max(base_, block_of(first_)) + store_.blocks();
  while (led_ < most && store_.is_free(led_)) store_.lead(led_++);
  return led_ * packets_;
}

void Ledger::look_for_stragglers(Open& open, uint64_t end) {
  for (uint32_t i = 0; i < packets_; ++i) {
    const uint64_t number = base_ * packets_ + i;
    const auto bit = static_cast<uint8_t>(1U << (i % 8));
    if ((open.seen[i / 8] & bit) != 0 || number < first_ || number >= end || !recover(number)) {
      continue;
    }
    open.seen[i / 8] |= bit;
    open.valid[i / 8] |= bit;
    ++open.came;
    ++open.received;
    ++counts_.recovered;
  }
}

// The sender went through all blocks that are shut while this thread did not look, and on into the
// open ones. A packet's header tells of that, but not where a datagram of it was lost.
void Ledger::note_who_came_round() {
  if (store_.is_ahead(base_ + store_.blocks() - 1)) is_behind_ = true;
}

// What is open now is of the sender's last turn, but for what it was writing when this thread came.
void Ledger::caught_up() {
  if (std::exchange(is_behind_, false)) doubtful_ = end_of_open();
}

void Ledger::give_up(Open& open) {
  counts_.overrun += open.received;
  open.received = 0;
  open.overrun = true;
}

// `end`: the sender got so far.
void Ledger::close_oldest(uint64_t end) {
  Open open = std::move(open_.front());
  open_.pop_front();
  if (unasked()) {
    store_.settle(base_);
    note_who_came_round();
    if ((is_behind_ || base_ < doubtful_) && !open.overrun) give_up(open);
  }
  const uint64_t from = std::max(first_, base_ * packets_);
  const uint64_t to = std::min(end, (base_ + 1) * packets_);
  const uint64_t sent = to > from ? to - from : 0;
  if (!open.overrun && in_place) look_at_what_lies_there(open);
  if (open.came < sent && !open.overrun && recover) look_for_stragglers(open, to);
  if (open.came < sent) counts_.missing += sent - open.came;
  if (open.received > 0 && !open.overrun) {
    counts_.received += open.received;
    store_.publish(base_, open.valid, open.received);
    ++counts_.blocks;
  }
  if (unasked()) store_.settled();
  weft_stream_state& state = store_.state();
  __atomic_store_n(&state.received, counts_.received, __ATOMIC_RELAXED);
  __atomic_store_n(&state.missing, counts_.missing, __ATOMIC_RELAXED);
  __atomic_store_n(&state.overrun_packets, counts_.overrun, __ATOMIC_RELAXED);
  spare_.push_back(std::move(open));
  ++base_;
}

void Ledger::finish(std::optional<uint64_t> end) {
  if (!running_) return;
  close_all(end);
  if (unasked()) store_.rest();
}

void Ledger::close_all(std::optional<uint64_t> end) {
  running_ = false;
  const uint64_t to = std::max(end.value_or(next_), next_);
  // The last ones may all be missing, and one of their blocks may have trailers to show.
  if (to > first_ && recover) {
    const uint64_t last = block_of(to - 1);
    if (last >= end_of_open() && last - base_ < rules_.guard) advance(last);
  }
  while (!open_.empty()) close_oldest(to);
  const uint64_t from = std::max(first_, base_ * packets_);
  if (to > from) counts_.missing += to - from;
  next_ = to;
  base_ = std::max(base_, (to + packets_ - 1) / packets_);
}

}  // namespace weft::stream
