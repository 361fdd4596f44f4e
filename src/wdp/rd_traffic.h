// What passes through a channel once its peer is known (spec/wdp-rd 4 to 6): data out and in, and
// acknowledgements both ways.
//
//   RdOutgoing ──────────────────► trains
//   RdDatagram ─► RdReceivePath ─► RdShared: the queue pairs
//                       └─► RDACK: in a bundle, behind data, or alone
#pragma once

#include <memory>
#include <optional>

#include "wdp/rd_outgoing.h"
#include "wdp/rd_receive_path.h"

namespace weft::wdp {

// Engine holder only.
class RdTraffic final : private RdSink {
 public:
  // What it belongs to, all of which is kept.
  struct Place {
    RdShared& shared;
    RdChannel& channel;  // for `shared`
    RdChannelOwner& owner;
    const RdOpening& opening;
    Random& random;
  };
  // `window`: bytes that the socket has room for. `ecn`: routers may mark its datagrams.
  RdTraffic(const Place& place, size_t window, bool ecn, std::unique_ptr<Congestion> congestion);
  RdTraffic(const RdTraffic&) = delete;
  RdTraffic& operator=(const RdTraffic&) = delete;

  RdOutgoing& out() { return out_; }
  const RdOutgoing& out() const { return out_; }

  // --- its life
  void begins(Time now) { out_.is_active(now); }
  // The opening knows the peer: what it sends may be taken. Again where another one opens.
  void meets_peer();
  // Both may send.
  void opens(Time now) { out_.opens(now); }
  // --- at rest (spec/wdp-rd 2.5)
  // When it may rest, as far as is known: a while after it was active last. Never: something waits,
  // or who has sent by it keeps a pointer.
  Time rests_at() const;
  void keep_awake() { kept_awake_ = true; }
  // Fills in what it knows. It is of no use afterwards.
  void rest(RestingChannel& as);
  // Instead of all of the above.
  void wake(RestingChannel&& before, Time now);
  // As RdOutgoing has it; meets_peer() and opens() follow.
  void begin_anew() { out_.begin_anew(); }
  // As RdOutgoing has it, and nothing is acknowledged.
  void end(RdClient::End end);

  // --- datagrams out, while it is open
  // Has it one, or a question? For fill() and acknowledge().
  bool ready(Time now);
  // Answers that need not wait, or go with an RDACK.
  void write_answers(Time now) { out_.write_answers(receiver_->due(now), now); }
  // Data, into a train that is empty.
  void fill(Train& train, Time now);
  // RDACK, behind them or alone, if one is due or costs nothing.
  void acknowledge(Train& train, Time now);
  bool ack_due(Time now) const { return receiver_ && receiver_->due(now); }

  // --- in
  // False: a peer that does not acknowledge its answers must not make us keep more and more of
  // them. The request is not acknowledged either, and comes again.
  bool may_take(const RdDatagram& d) const { return !d.wants_response() || out_.may_answer(); }
  // One that was checked, RDACK excepted. Why it is dropped, if it is.
  Result<Ok, wire::WdpDrop> take(const RdDatagram& datagram, const UdReception& how, Time now);
  // The queue pair has receives, or is gone.
  void receives_posted(uint8_t index);
  // What is not acknowledged yet, or not answered, is to be, at once.
  void flush();

  // --- time, while it is open
  Time deadline();
  // False: the peer has answered nothing for too long.
  bool tick(Time now);

  // --- how it stands
  // When nothing will have passed, and nothing is held, for so long that the channel ends.
  Time idle_until() const {
    const bool idle = out_.sender().idle() && receiver_->holds_nothing();
    return idle ? out_.active_at() + kIdleChannel : Time::never();
  }
  // None before the peer is known.
  std::optional<RdReceivePath>& receiver() { return receiver_; }
  const std::optional<RdReceivePath>& receiver() const { return receiver_; }
  // All before it have come.
  Csn cum() const { return receiver_ ? receiver_->cum() : Csn{1}; }

 private:
  // RdSink
  bool take(const RdArrival& arrival, Bytes payload) override;
  wire::WdpAck acknowledgement(Time now);

  const Place at_;
  const size_t window_;
  RdOutgoing out_;
  std::optional<RdReceivePath> receiver_;
  bool kept_awake_ = false;
};

}  // namespace weft::wdp
