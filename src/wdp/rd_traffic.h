// What passes through a channel once its peer is known (spec/wdp-rd 4 to 6): messages and answers
// out, data in, and acknowledgements both ways.
//
//   RdMessageWriter, RdAnswers ─► RdSendPath ──────► trains
//                       RDACK ─► clients: delivered
//   RdDatagram ─► RdReceivePath ─► RdShared: the queue pairs
//                       └─► RDACK: in a bundle, behind data, or alone
//
// Above 400 lines with its source: each step in a channel's life has its function here, for all
// parts.
#pragma once

#include <memory>
#include <optional>

#include "wdp/rd_answers.h"
#include "wdp/rd_opening.h"
#include "wdp/rd_path_search.h"
#include "wdp/rd_receive_path.h"
#include "wdp/rd_waiters.h"
#include "wdp/resting_channel.h"

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

  // --- its life
  void begins(Time now) { active_ = now; }
  // The opening knows the peer: what it sends may be taken. Again where another one opens.
  void meets_peer();
  // Both may send.
  void opens(Time now);
  // --- at rest (spec/wdp-rd 2.5)
  // When it may rest, as far as is known: a while after it was active last. Never: something waits,
  // or who has sent by it keeps a pointer.
  Time rests_at() const;
  void keep_awake() { kept_awake_ = true; }
  // Fills in what it knows. It is of no use afterwards.
  void rest(RestingChannel& as);
  // Instead of all of the above.
  void wake(RestingChannel&& before, Time now);

  // The peer that was known has begun anew, and has taken nothing of what was sent since the
  // channel was at rest. Clients hear that; meets_peer() and opens() follow.
  void begin_anew();

  // Nothing is sent any more. Clients hear what became of their messages; room is there for all.
  void end(RdClient::End end);

  // --- out: as RdMessageWriter has them
  std::byte* send(const RdMessage& message, ClientId client, uint64_t request);
  std::byte* send(wire::WdpData& segment, bool first);
  RdMessageWriter& writer() { return writer_; }
  const RdMessageWriter& writer() const { return writer_; }
  // UDP payload of a segment. `most`: what the interface takes; `certain`: and so does the path.
  // Else the first call begins to find that out, and until it is known only what each path carries
  // is.
  size_t segment_room(size_t most, bool certain);
  RdPathSearch& search() { return search_; }
  const RdPathSearch& search() const { return search_; }
  // As RdAnswers has it. say_answers(): they wait no longer. write_answers(): those that need not.
  void respond(const wire::WdpResponse& response);
  void say_answers();
  void write_answers(Time now);
  const RdAnswers& answers() const { return answers_; }
  RdWaiters& waiters() { return waiters_; }
  const RdWaiters& waiters() const { return waiters_; }
  void tell_of_room();
  // The kernel has refused a larger datagram.
  void path_carries(size_t size) {
    sender_.path_carries(size);
    search_.limit(size);
  }

  // Has it a datagram, or a question? For fill() and acknowledge(), while it is open.
  bool ready(Time now);
  // Data, into a train that is empty.
  void fill(Train& train, Time now);
  // RDACK, behind them or alone, if one is due or costs nothing.
  void acknowledge(Train& train, Time now);
  bool ack_due(Time now) const { return receiver_ && receiver_->due(now); }

  // --- in
  // False: a peer that does not acknowledge its answers must not make us keep more and more of
  // them. The request is not acknowledged either, and comes again.
  bool may_take(const RdDatagram& d) const { return !d.wants_response() || !answers_.full(); }
  // One that was checked, RDACK excepted. Why it is dropped, if it is.
  Result<Ok, wire::WdpDrop> take(const RdDatagram& datagram, const UdReception& how, Time now);
  // An RDACK. Does it name anything for the first time?
  Result<bool, wire::WdpDrop> take_ack(const wire::WdpAck& ack, Time now);
  // The queue pair has receives, or is gone.
  void receives_posted(uint8_t index);
  // What is not acknowledged yet, or not answered, is to be, at once.
  void flush();

  // --- time, while it is open
  Time deadline();
  // False: the peer has answered nothing for too long.
  bool tick(Time now);

  // --- how it stands
  bool is_open() const { return open_; }
  // The peer lacks nothing.
  bool all_is_said() const { return sender_.idle() && answers_.empty(); }
  // When nothing will have passed, and nothing is held, for so long that the channel ends.
  Time idle_until() const {
    return sender_.idle() && receiver_->holds_nothing() ? active_ + kIdleChannel : Time::never();
  }
  // When data came or went last.
  Time active_at() const { return active_; }
  // As if it had.
  void is_active(Time now) { active_ = now; }
  RdSendPath& sender() { return sender_; }
  const RdSendPath& sender() const { return sender_; }
  // None before the peer is known.
  std::optional<RdReceivePath>& receiver() { return receiver_; }
  const std::optional<RdReceivePath>& receiver() const { return receiver_; }
  // All before it have come.
  Csn cum() const { return receiver_ ? receiver_->cum() : Csn{1}; }
  // That their senders were told of as lost.
  uint64_t messages_lost() const { return messages_lost_; }

 private:
  // RdSink
  bool take(const RdArrival& arrival, Bytes payload) override;
  bool goes_by_ipv4() const { return at_.opening.path().to.address.is_ipv4(); }
  // Does the peer?
  bool takes_bundles() const { return at_.opening.peer().terms.responses; }
  // Bytes of a datagram that several messages share.
  size_t bundle_room() const { return search_.bundle_room(goes_by_ipv4()); }
  Path path_of_data() const;
  wire::WdpAck acknowledgement(Time now);

  const Place at_;
  const size_t window_;
  bool open_ = false;
  RdSendPath sender_;
  RdMessageWriter writer_;
  RdAnswers answers_;
  RdPathSearch search_;
  RdWaiters waiters_;
  std::optional<RdReceivePath> receiver_;
  Time active_;
  bool kept_awake_ = false;
  uint64_t messages_lost_ = 0;
};

}  // namespace weft::wdp
