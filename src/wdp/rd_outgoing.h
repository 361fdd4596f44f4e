// What this side of a channel has to say to its peer (spec/wdp-rd 4 to 6): messages and segments of
// clients, answers to the peer's, and who waits to say more.
//
//   clients ─► RdMessageWriter ─┐
//   respond() ─► RdAnswers ─────┴─► RdSendPath ─► trains;  RDACK ─► clients: delivered
#pragma once

#include <memory>

#include "wdp/rd_answers.h"
#include "wdp/rd_opening.h"
#include "wdp/rd_path_search.h"
#include "wdp/rd_waiters.h"
#include "wdp/resting_channel.h"

namespace weft::wdp {

// Of one channel. Engine holder only.
class RdOutgoing {
 public:
  // The references are kept. `ecn`: routers may mark its datagrams.
  RdOutgoing(RdShared& shared, RdChannelOwner& owner, const RdOpening& opening, Random& random,
             bool ecn, std::unique_ptr<Congestion> congestion);
  RdOutgoing(const RdOutgoing&) = delete;
  RdOutgoing& operator=(const RdOutgoing&) = delete;

  // --- messages of clients: as RdMessageWriter has them
  bool has_room(size_t length) const { return writer_.has_room(length); }
  std::byte* send(const RdMessage& message, ClientId client, uint64_t request);
  std::byte* send_shared(const RdMessage& message, ClientId client, uint64_t request);
  // It has no room in the datagram of those before it, as far as is known, and nobody has asked
  // what the path carries: segment_room() does.
  bool lacks_room(const RdMessage& message, ClientId client, uint64_t request);
  void take_back(const RdMessage& message) { writer_.take_back(message); }
  // --- of queue pairs of type RD, segment by segment
  std::byte* send(wire::WdpData& segment, bool first);
  void take_back(const wire::WdpData& segment, bool first) { writer_.take_back(segment, first); }
  // UDP payload of a segment. What the way does not take for certain the first call begins to find
  // out, and until that is known it is what each path carries.
  size_t segment_room(const PathRoom& room);
  // Long messages wait for it: who wants room is told. A second at most.
  bool finds_path() const { return search_.holds_up(); }
  // Tells the peer what became of a message of its: with what is sent next, after a while, or with
  // say_answers(). Of one that is being taken there is memory for it (reserve_answer()); else
  // throws std::bad_alloc, and nothing has changed then.
  void respond(const wire::WdpResponse& response);
  // Is there something to tell that waits for company?
  bool answers_wait() const { return open_ && answers_.wait(); }
  // It waits no longer.
  void say_answers();

  // has_room() said no, or the channel is not open yet: the client is to hear when there is.
  void want_room(ClientId client) { waiters_.want_room(client); }
  // The client is asked kWindowRests later whether it rests (RdClient::look_for_rest()).
  void want_rest(ClientId client) { waiters_.want_rest(client, active_); }

  // --- how it stands
  // May data go?
  bool is_open() const { return open_; }
  // When data came or went last.
  Time active_at() const { return active_; }
  // The peer lacks nothing.
  bool all_is_said() const { return sender_.idle() && answers_.empty(); }
  bool has_answers() const { return !answers_.empty(); }
  bool any_wants_room() const { return waiters_.any_wants_room(); }
  // Nothing is on its way, and nobody waits.
  bool is_at_rest() const {
    return open_ && sender_.is_at_rest() && answers_.empty() && waiters_.empty();
  }
  const RdSendPath& sender() const { return sender_; }
  const RdPathSearch& search() const { return search_; }
  // That their senders were told of as lost.
  uint64_t messages_lost() const { return messages_lost_; }

  // --- for its channel, from here on
  RdSendPath& sender() { return sender_; }
  RdPathSearch& search() { return search_; }
  // Something of the peer's came, or the channel begins.
  void is_active(Time now) { active_ = now; }
  // The peer is known, and has room.
  void opens(Time now);
  // Nothing is sent any more. Clients hear what became of their messages; room is there for all.
  void end(RdClient::End end);
  // The peer that was known has begun anew, and has taken nothing of what was sent since the
  // channel was at rest. Clients hear that; opens() follows.
  void begin_anew();
  // At rest (spec/wdp-rd 2.5): fills in what it knows, and takes it up again. opens() follows
  // wake().
  void rest(RestingChannel& as);
  void wake(RestingChannel& before);
  // Those who wait hear of it, if there is much.
  void tell_of_room();
  // The kernel has refused a larger datagram.
  void path_carries(size_t size);

  // Answers that need not wait become messages. `company`: something else goes.
  void write_answers(bool company, Time now);
  // A peer that does not acknowledge its answers must not make us keep more of them.
  bool may_answer() const { return !answers_.full(); }
  // There is memory for one more answer. Throws std::bad_alloc.
  void reserve_answer() { answers_.reserve(); }

  // Has it a datagram, or a question?
  bool ready(Time now) { return sender_.wants_to_ask() || sender_.ready(now); }
  // Data, into a train that is empty. `ack`: goes in the datagram that takes_ack() spoke of.
  void fill(Train& train, Time now, const wire::WdpAck* ack);
  // Is there one datagram to send, in which an RDACK has room besides?
  bool takes_ack() { return takes_bundles() && sender_.takes_tail(bundle_room()); }
  // Its traffic class is the channel's own, whatever ECN the program asked for.
  Path path_of_data() const;
  // An RDACK. Does it name anything for the first time?
  Result<bool, wire::WdpDrop> take_ack(const wire::WdpAck& ack, Time now);

  // Memory that rests goes back to the system then.
  Time deadline();
  // False: the peer has answered nothing for too long.
  bool tick(Time now);

 private:
  bool goes_by_ipv4() const { return opening_.path().to.address.is_ipv4(); }
  // Does the peer?
  bool takes_bundles() const { return opening_.peer().terms.responses; }
  // Bytes of a datagram that several messages share.
  size_t bundle_room() const { return search_.bundle_room(goes_by_ipv4()); }

  void messages_ended(const SentDatagram& d, RdClient::End end);

  RdShared& shared_;
  RdChannelOwner& owner_;
  const RdOpening& opening_;
  Random& random_;
  bool open_ = false;
  RdSendPath sender_;
  RdMessageWriter writer_;
  RdAnswers answers_;
  RdPathSearch search_;
  RdWaiters waiters_;
  Time active_;
  uint64_t messages_lost_ = 0;
};

}  // namespace weft::wdp
