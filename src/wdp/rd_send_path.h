// What a channel sends (spec/wdp-rd 5): datagrams within three windows, again when they are lost,
// and questions when nothing comes.
//
//   append() ─► SentLog ─ congestion, RWND, CSNs, pace ─► fill()
//                 ▲  └─ lost ──────────────────────────────►
//   RDACK ────────┘
//
// Above 400 lines with its source: three windows and one clock, which all look at the same log.
#pragma once

#include <memory>
#include <utility>

#include "wdp/congestion.h"
#include "wdp/ecn.h"
#include "wdp/rd_budget.h"
#include "wdp/sent_log.h"
#include "wdp/train.h"
#include "wire/wdp_drop.h"

namespace weft::wdp {

// All only grow.
struct RdSendCounters {
  uint64_t sent = 0;      // datagrams, for the first time
  uint64_t repeated = 0;  // those sent again
  uint64_t lost = 0;      // found to be lost
  uint64_t probes = 0;    // questions after a pause
  uint64_t marked = 0;    // datagrams that the peer got marked (ecn.h)
};

// Of one channel. Not thread-safe.
class RdSendPath {
 public:
  // `ecn`: routers may mark its datagrams. `extra`: for what is kept beyond kChannelStore.
  RdSendPath(Csn first, std::unique_ptr<Congestion> congestion, bool ecn, RdExtra extra = {})
      : log_(first), congestion_(std::move(congestion)), extra_(std::move(extra)), ecn_(ecn) {}

  // --- at rest (spec/wdp-rd 2.5). The congestion window begins anew (RFC 5681 4.1).
  struct Resting {
    Csn next;
    uint32_t peer_clock = 0;
    uint32_t marked = 0;
    bool peer_told = false;
    EcnValidation ecn{false};
    uint32_t peer_window = 0;
    uint32_t whole = 0;
    RoundTrip rtt;
  };
  bool is_at_rest() const { return idle() && !asks_ && !probe_due_; }
  Resting resting() const {
    const auto bytes = [](size_t n) {
      return static_cast<uint32_t>(std::min<size_t>(n, UINT32_MAX));
    };
    return {.next = next_csn(),
            .peer_clock = peer_clock_,
            .marked = marked_,
            .peer_told = peer_told_,
            .ecn = ecn_,
            .peer_window = bytes(peer_window_),
            .whole = bytes(whole_),
            .rtt = rtt_};
  }
  // open() follows.
  void wake(const Resting& before);

  // --- messages. A datagram of so many bytes finds room?
  bool has_room(size_t size) const {
    return log_.stored() < kCsnWindow &&
           log_.stored_bytes() + size + kDatagramOverhead <= kChannelStore + extra_.bytes();
  }
  // The datagram's bytes are to be filled in, header and all, with end() for its CSN; token, flags
  // of the channel's own and CRC are added when it is sent.
  SentDatagram& append(size_t size, ClientId client, uint64_t request) {
    return log_.append(size, client, request);
  }
  // The same for one that may share a datagram: that of its client's messages before it, which were
  // not sent yet, while that has `most` bytes at most. A client that wants to know what becomes of
  // them has given them numbers in a row.
  std::byte* append_shared(size_t size, size_t most, ClientId client, uint64_t request);
  // How large that datagram would be with one more message; 0: there is none that takes it.
  size_t size_with(size_t size, ClientId client, uint64_t request);
  // The last message is not wanted after all.
  void take_back_shared(size_t size);
  // What was appended last takes no more messages.
  void shut() {
    if (SentDatagram* const last = log_.last_waiting()) last->shared = false;
  }
  // Is there something that was never sent?
  bool has_new() const { return log_.has_waiting(); }
  Csn next_csn() const { return log_.end(); }

  // --- once the peer's token is known
  void open(SessionToken peer, bool crc, Time now);
  bool ready(Time now);
  // Adds what may go to the train, which is empty; bytes of large datagrams are referred to, and
  // stay until train_gone() or the next call.
  // `tail` goes at the end of the first datagram; takes_tail() said yes.
  void fill(Train& train, const Path& path, Time now, const wire::WdpAck* tail = nullptr);
  // Will that write one datagram and nothing else, in which an RDACK fits besides, as parts of a
  // bundle of `most` bytes?
  bool takes_tail(size_t most);
  void train_gone() { log_.train_gone(); }
  // The kernel has refused a larger one.
  void path_carries(size_t size) { whole_ = std::min(whole_, size); }
  // A question is due, and there is no datagram to ask with: the receiver's window is closed.
  bool wants_to_ask() const { return asks_; }
  void asked() { asks_ = false; }

  // --- what the peer says. gone(const SentDatagram&) for each that it has.
  template <class F>
  Result<Ok, wire::WdpDrop> received(const wire::WdpAck& ack, Time now, F&& gone);
  // It lives, whatever it has received.
  void heard() { unanswered_ = 0; }
  // Questions in a row without an answer.
  uint32_t unanswered() const { return unanswered_; }
  template <class F>
  void abandon(F&& gone) {
    log_.abandon(gone);
  }

  // The same where another process answers, which has taken none of them. open() follows.
  template <class F>
  void restart(F&& gone) {
    log_.restart(gone);
    open_ = peer_told_ = probe_due_ = asks_ = false;
    marked_ = 0;
    peer_window_ = Congestion::kFirst;
    probes_ = unanswered_ = 0;
  }

  // --- time
  Time deadline();
  // False: the peer has answered nothing for too long.
  bool tick(Time now);

  bool idle() const { return log_.stored() == 0; }
  // Idle, with memory that rest() gives back.
  bool may_rest() const { return log_.may_rest(); }
  void rest() { log_.rest(); }
  // Do its datagrams say ECT(0)?
  bool says_ect() const { return ecn_.may_say(); }
  const RoundTrip& round_trip() const { return rtt_; }
  const Congestion& congestion() const { return *congestion_; }
  const RdSendCounters& counters() const { return counters_; }

 private:
  bool network_allows() const {
    return log_.in_flight() == 0 || log_.in_flight() < congestion_->window();
  }
  bool receiver_allows(const SentDatagram& d) const;
  void pace(const Congestion::Departure& datagram, Time now);
  bool may_send(Time now);
  bool put(Train& train, const Path& path, const SentLog::Next& what, bool ask, Time now,
           const wire::WdpAck* tail = nullptr);
  // Returns the size of the datagram.
  size_t copy_with(const wire::WdpAck& tail, const SentDatagram& d, Csn csn, wire::WdpFlags flags,
                   Train& train) const;
  void probe(Train& train, const Path& path, Time now);
  bool waits_for_peer() { return open_ && (log_.in_flight() > 0 || log_.has_waiting()); }
  Time probe_time();
  // True: there were some.
  bool find_lost(Time now);
  void heed_marks(uint32_t marked, Time newest_sent, Time now);
  void size_store();
  bool is_to_be_cut(const SentDatagram& d, const Path& path) const;

  // That a sender which comes late to its turn may make good for.
  static constexpr Duration kCatchUp = 1ms;

  SentLog log_;
  RoundTrip rtt_;
  const std::unique_ptr<Congestion> congestion_;
  RdExtra extra_;
  size_t whole_ = SIZE_MAX;  // bytes of a datagram that the path carries, as far as is known
  EcnValidation ecn_;
  bool open_ = false;
  bool crc_ = false;
  bool limited_ = false;  // by the congestion window, or the pace that follows from it
  bool paced_ = false;    // something would be sent before pace_
  bool probe_due_ = false;
  bool asks_ = false;
  bool peer_told_ = false;
  SessionToken peer_;
  uint32_t peer_clock_ = 0;                  // TS of the newest RDACK
  uint32_t marked_ = 0;                      // datagrams, as the peer said last
  size_t peer_window_ = Congestion::kFirst;  // bytes from CUM on
  Time pace_;                                // nothing is sent before
  uint32_t probes_ = 0;                      // in a row without news
  uint32_t unanswered_ = 0;                  // in a row without an answer
  Time probe_since_;
  RdSendCounters counters_;
};

template <class F>
Result<Ok, wire::WdpDrop> RdSendPath::received(const wire::WdpAck& ack, Time now, F&& gone) {
  const auto outcome = log_.acknowledge(ack, rtt_.least(), now, [&](const SentDatagram& d) {
    // Its copies as a whole were lost, and parts of it were not.
    if (d.times > kWholeCopies) path_carries(d.size - 1);
    congestion_->carried(d.size + kDatagramOverhead);
    congestion_->acknowledged(d.weight(), d.sent, limited_, rtt_.least(), rtt_.latest(), now);
    gone(d);
  });
  if (outcome.impossible) return fail(wire::WdpDrop::ack_beyond_sent);
  const uint32_t asked = probes_;
  heard();
  if (outcome.acknowledged > 0) {
    ecn_.arrived();
    probes_ = 0;
    probe_since_ = now;
  }
  if (outcome.newest_sent) {
    heed_marks(ack.ce, *outcome.newest_sent, now);
    // RFC 9002 5.1: the one that was sent last counts. That it waited for a copy of another one
    // says how long acknowledgements were lost.
    if (!outcome.newest_repeated || *outcome.newest_repeated < *outcome.newest_sent) {
      rtt_.sample(now - *outcome.newest_sent, std::chrono::microseconds{ack.delay_us()});
    }
  }
  // An older one that comes late takes nothing back.
  if (!peer_told_ || static_cast<int32_t>(ack.timestamp - peer_clock_) >= 0) {
    peer_told_ = true;
    peer_clock_ = ack.timestamp;
    const size_t window = size_t{ack.window} * 1024;
    // Only news ends the pauses between questions: a peer may answer for hours that it is full.
    if (window > peer_window_) probes_ = 0;
    peer_window_ = window;
  }
  size_store();
  // RFC 9002 7.6: nothing came through for so long, and that was loss. A peer that had no CPU for a
  // while is no congestion.
  if (find_lost(now) && asked >= kProbesToCollapse) congestion_->collapsed(now);
  return Ok{};
}

}  // namespace weft::wdp
