// What a channel has sent or is about to send, until the peer has it: which are lost (RFC 9002
// section 6.1, with the order of transmissions for packet numbers, for a CSN may be sent again),
// and what is under way.
//
//      front: CUM                        next_                     end
//   ...|  under way, lost or acknowledged  |  not sent yet          |
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/fixed_ring.h"
#include "base/types.h"
#include "wdp/rd_limits.h"
#include "wdp/round_trip.h"
#include "wdp/spare_buffers.h"
#include "wire/wdp_ack.h"

namespace weft::wdp {

// Who wants to know what became of a message; names a RdClient.
using ClientId = uint32_t;
// Of a message whose sender does not wait for what becomes of it.
inline constexpr ClientId kNoClient = 0;

struct SentDatagram {
  enum class State : uint8_t { waiting, under_way, lost, acknowledged };
  std::unique_ptr<std::byte[]> bytes;  // none once it is acknowledged
  uint32_t size = 0;
  uint32_t room = 0;   // of `bytes`
  uint32_t train = 0;  // that its bytes were lent to last
  State state = State::waiting;
  bool repeated = false;
  bool shared = false;    // others may join it until it is sent (RdSendPath::append_shared())
  uint16_t messages = 1;  // in it
  ClientId client = 0;
  uint64_t request = 0;  // of the first message; those behind it have the next ones
  uint64_t order = 0;    // among all transmissions, the last of it
  Time sent;             // the last time
  Time first_sent;
  uint32_t times = 0;  // sent

  // May the client's message join it?
  bool takes(ClientId by, uint64_t number) const {
    return shared && client == by && (by == kNoClient || number == request + messages);
  }
  // The receiver may have to keep each of its messages by itself.
  size_t weight() const { return size + messages * kDatagramOverhead; }
};

// Of one channel. Not thread-safe.
class SentLog {
 public:
  explicit SentLog(Csn first) : front_(first) {}

  // --- what is to be sent. Throws std::bad_alloc, and nothing has changed then.
  // Its bytes are to be filled in.
  SentDatagram& append(size_t size, ClientId client, uint64_t request);
  // The last one is not wanted after all; it was not sent.
  void take_back();
  // The last one, if it was not sent yet.
  SentDatagram* last_waiting() { return has_waiting() ? &kept_->log.back() : nullptr; }
  // One more message: it is to have so many bytes, those that it has behind the first `front`.
  // Throws std::bad_alloc, and nothing has changed then. `most`: it will not have more.
  void grow_last(size_t size, size_t front, size_t most);
  // One less.
  void cut_last(size_t size);
  Csn end() const { return front_ + static_cast<uint32_t>(stored()); }
  size_t stored_bytes() const { return stored_; }
  size_t stored() const { return kept_ ? kept_->log.size() : 0; }

  // The next one that is lost, or else has not been sent; nullptr: none.
  bool has_lost();
  bool has_waiting() const { return next_ < stored(); }
  struct Next {
    Csn csn;
    SentDatagram* datagram = nullptr;
  };
  Next next_lost();
  Next next_waiting();
  // The oldest that is under way: to ask with.
  Next oldest();
  // It goes out now.
  void transmitted(Csn csn, Time now);

  // --- bytes that a train refers to, instead of a copy. They stay where they are until it is gone,
  // whatever the peer has meanwhile. Throws std::bad_alloc, and nothing is lent then.
  void lend(SentDatagram& d);
  // The train is gone.
  void train_gone();

  // --- what the peer says
  // Calls gone(const SentDatagram&), which appends nothing, for each that it has for the first
  // time. `newest`: sent last of these, for the round trip; nothing where that is not known.
  struct Outcome {
    uint32_t acknowledged = 0;  // datagrams
    std::optional<Time> newest_sent;
    std::optional<Time> newest_repeated;  // the same of those that were sent again
    bool impossible = false;              // it has what was never sent
  };
  template <class F>
  Outcome acknowledge(const wire::WdpAck& ack, Duration least_round_trip, Time now, F&& gone);

  // Calls lost(const SentDatagram&) for each that is lost by now.
  template <class F>
  void find_lost(const RoundTrip& rtt, Time now, F&& lost);
  // When the next one will be, if nothing comes.
  Time loss_time() const { return loss_time_; }

  // Nobody has taken any of them: the CSNs begin where the oldest one was.
  template <class F>
  void restart(F&& gone) {
    const Csn first = front_;
    abandon(gone);
    front_ = first;
  }

  // --- how much
  size_t in_flight() const { return in_flight_; }      // bytes and overhead, not lost nor come
  size_t outstanding() const { return outstanding_; }  // of all from CUM on that were sent
  size_t sent_count() const { return next_; }
  // Sent so often, and for the first time so long ago, and the peer lacks it yet.
  bool is_hopeless(uint32_t times, Time before) const {
    return next_ > 0 && kept_->log.front().times >= times &&
           kept_->log.front().first_sent <= before;
  }
  Time last_sent() const { return last_sent_; }
  // Nothing is in it, and it has memory that rest() gives back.
  bool may_rest() const { return kept_ && kept_->log.empty() && kept_->lent.empty(); }
  // Not whenever it is empty: one that is busy would need the memory again each time.
  void rest() { kept_.reset(); }
  // Everybody is told by gone(const SentDatagram&), which appends nothing; nothing is sent any
  // more.
  template <class F>
  void abandon(F&& gone);

 private:
  // What is there from append() to rest().
  struct Kept {
    FixedRing<SentDatagram> log{kCsnWindow};
    FixedRing<Csn> lost{2 * kCsnWindow};  // one that was sent meanwhile, to ask, may be there twice
    std::vector<DatagramBuffer> lent;     // a place for each that the train refers to
    SpareBuffers spares;
  };
  // While there are any, as in all but append().
  SentDatagram& at(Csn csn) { return kept_->log[csn.value() - front_.value()]; }
  bool is_lent(const SentDatagram& d) const { return !kept_->lent.empty() && d.train == train_; }
  void give_back(SentDatagram& d);
  template <class F>
  void take(SentDatagram& d, bool newest_there, Duration least_round_trip, Time now,
            Outcome& outcome, F&& gone);
  void pop_front();

  Csn front_;
  uint32_t train_ = 1;
  std::unique_ptr<Kept> kept_;
  size_t next_ = 0;  // in the log
  uint64_t orders_ = 0;
  uint64_t newest_ = 0;  // order of the newest that has come
  Time loss_time_ = Time::never();
  Time last_sent_;
  size_t stored_ = 0;
  size_t in_flight_ = 0;
  size_t outstanding_ = 0;
};

// --- templates

template <class F>
void SentLog::take(SentDatagram& d, bool newest_there, Duration least_round_trip, Time now,
                   Outcome& outcome, F&& gone) {
  using State = SentDatagram::State;
  if (d.state == State::acknowledged || d.state == State::waiting) return;
  if (d.state == State::under_way) in_flight_ -= d.weight();
  d.state = State::acknowledged;
  ++outcome.acknowledged;
  // Which of its copies came is not known. One that was sent less than the least round trip ago is
  // still on its way (RFC 8985 6.2 step 2; Karn). Nor was it the last copy if something else came
  // after it: a peer that stood still for a while reads the first copies, and would make all lost
  // that was sent before a probe.
  if (!d.repeated) {
    if (!outcome.newest_sent || *outcome.newest_sent < d.sent) outcome.newest_sent = d.sent;
    newest_ = std::max(newest_, d.order);
  } else {
    if (newest_there && now - d.sent >= least_round_trip) newest_ = std::max(newest_, d.order);
    outcome.newest_repeated = std::max(outcome.newest_repeated, std::optional{d.sent});
  }
  gone(static_cast<const SentDatagram&>(d));
  stored_ -= d.weight();
  give_back(d);
}

template <class F>
SentLog::Outcome SentLog::acknowledge(const wire::WdpAck& ack, Duration least_round_trip, Time now,
                                      F&& gone) {
  Outcome outcome;
  const int32_t passed = distance(front_, ack.cum);
  if (passed < 0) return outcome;  // an older one came late
  if (passed > static_cast<int32_t>(next_)) {
    outcome.impossible = true;
    return outcome;
  }
  for (int32_t i = 0; i < passed; ++i) {
    take(kept_->log.front(), front_ == ack.trigger, least_round_trip, now, outcome, gone);
    pop_front();
  }
  for (uint32_t w = 0; w < ack.words; ++w) {
    for (uint32_t bits = ack.sack[w]; bits != 0;) {
      const auto bit = static_cast<uint32_t>(__builtin_clz(bits));
      bits &= ~(uint32_t{1} << (31 - bit));
      const size_t at = size_t{w} * 32 + bit + 1;
      if (at >= next_) {
        outcome.impossible = true;
        return outcome;
      }
      const bool newest_there = front_ + static_cast<uint32_t>(at) == ack.trigger;
      take(kept_->log[at], newest_there, least_round_trip, now, outcome, gone);
    }
  }
  return outcome;
}

template <class F>
void SentLog::find_lost(const RoundTrip& rtt, Time now, F&& lost) {
  using State = SentDatagram::State;
  loss_time_ = Time::never();
  const Duration delay = rtt.loss_delay();
  // Of what is farther from CUM no RDACK can speak: it may have come, and long ago.
  const size_t spoken_of = std::min<size_t>(next_, 1 + 32 * wire::WdpAck::kMaxWords);
  for (size_t i = 0; i < spoken_of; ++i) {
    SentDatagram& d = kept_->log[i];
    if (d.state != State::under_way) continue;
    if (d.order > newest_) {
      if (!d.repeated) return;  // those behind it were sent later
      continue;
    }
    if (newest_ - d.order >= kReorderedDatagrams || d.sent + delay <= now) {
      kept_->lost.push_back(front_ + static_cast<uint32_t>(i));
      d.state = State::lost;
      in_flight_ -= d.weight();
      lost(static_cast<const SentDatagram&>(d));
    } else {
      loss_time_ = std::min(loss_time_, d.sent + delay);
    }
  }
}

template <class F>
void SentLog::abandon(F&& gone) {
  if (!kept_) return;
  for (size_t i = 0; i < stored(); ++i) {
    SentDatagram& d = kept_->log[i];
    if (d.state == SentDatagram::State::acknowledged) continue;
    gone(static_cast<const SentDatagram&>(d));
    give_back(d);
  }
  front_ = end();
  kept_->spares.clear();
  kept_->log.clear();
  kept_->lost.clear();
  next_ = stored_ = in_flight_ = outstanding_ = 0;
  loss_time_ = Time::never();
}

}  // namespace weft::wdp
