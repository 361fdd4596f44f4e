// The channel between two sockets that carries reliable datagrams (spec/wdp-rd): its handshake,
// what it sends and receives, and its end.
//
//   calls      ─► Handshake (active)  ─REP─► open ──close(), idle for 120 s──► closing ─► gone
//   is called  ─► Handshake (passive) ─RTU, data─► open ──DREQ, no answers──────────────► gone
//   calls      ─► REJ ─► refused: the peer has none
//
// Above 400 lines with its source: it is one machine.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "wdp/rd_answers.h"
#include "wdp/rd_goodbye.h"
#include "wdp/rd_opening.h"
#include "wdp/rd_path_search.h"
#include "wdp/rd_presence.h"
#include "wdp/rd_receive_path.h"
#include "wdp/rd_send_path.h"
#include "wdp/rd_waiters.h"
#include "wdp/train_source.h"

namespace weft::wdp {

class RdChannel final : public TrainSource, private RdSink {
 public:
  // All references are kept. `window`: bytes that its socket has room for. `ecn`: routers may mark
  // its datagrams.
  RdChannel(RdShared& shared, RdChannelOwner& owner, Random& random, size_t window, bool ecn,
            std::unique_ptr<Congestion> congestion);
  RdChannel(const RdChannel&) = delete;
  RdChannel& operator=(const RdChannel&) = delete;

  // --- messages
  bool has_room(uint32_t length) const { return writer_.has_room(length); }
  // These four: as those of RdMessageWriter.
  std::byte* send(const RdMessage& message, ClientId client, uint64_t request);
  void take_back(const RdMessage& message) { writer_.take_back(message); }
  // --- messages of queue pairs of type RD, segment by segment
  // Does the peer take them? Known once the channel is open.
  bool has_responses() const { return peer().terms.responses; }
  std::byte* send(wire::WdpData& segment, bool first);
  void take_back(const wire::WdpData& segment, bool first) { writer_.take_back(segment, first); }
  // UDP payload of a segment. `most`: what the interface takes; `certain`: and so does the path.
  // Else the first call begins to find that out, and until it is known only what each path carries
  // is.
  size_t segment_room(size_t most, bool certain);
  // Long messages wait for it: who wants room is told. A second at most.
  bool finds_path() const { return search_.holds_up(); }
  // Tells the peer what became of a message of its: with what is sent next, after kAnswerDelay, or
  // with say_answers(). Of one that is being taken there is memory for it; else throws
  // std::bad_alloc, and nothing has changed then.
  void respond(const wire::WdpResponse& response);
  // Is there something to tell that waits for company?
  bool answers_wait() const { return speaks() && answers_.wait(); }
  // It waits no longer.
  void say_answers();

  // has_room() said no, or the channel is not open yet: the client is to hear when there is.
  void want_room(ClientId client) { waiters_.want_room(client); }

  // The client is asked kWindowRests later whether it rests (RdClient::look_for_rest()).
  void want_rest(ClientId client) { waiters_.want_rest(client, active_); }

  // --- connections that it carries: while there are any it asks whether the peer is there, and
  // does not end by itself
  void enter() {
    presence_.enter();
    if (state_ == State::setting_up) owner_.reached();
  }
  void leave() { presence_.leave(); }
  // Is this still the peer's channel? Asks it. Whoever wants room hears of the answer; a peer that
  // does not know the channel says so, and it ends. The number is for has_answered().
  uint32_t ask_peer();
  bool has_answered(uint32_t question) const { return presence_.has_answered(question); }

  // --- receives
  void receives_posted(uint8_t index);
  // What is not acknowledged yet is, at once.
  void flush();

  // --- trains out
  bool ready(Time now) override;
  void fill(Train& train, Time now) override;
  bool urgent(Time now) const override { return receiver_ && receiver_->due(now); }
  void llp_took_all(Time) override { sender_.train_gone(); }
  void path_carries(size_t size) override {
    sender_.path_carries(size);
    search_.limit(size);
  }
  void own_memory_lost(Time) override {}

  // --- time
  Time deadline();
  void tick(Time now);
  // The peer is told, once it has what it was sent, or a second later.
  void close(Time now);
  // At once; clients hear that their messages are lost. Needs no memory.
  void abort();
  // The same before the peer has heard anything of it.
  void forget();

  // --- how it stands
  enum class State : uint8_t { setting_up, open, closing, refused, gone };
  State state() const { return state_; }
  // May it be given messages?
  bool is_usable() const {
    return (state_ == State::setting_up || state_ == State::open) && !goodbye_.waits();
  }
  bool is_gone() const;
  // Bytes that have come, and wait for receives although the channel has ended (spec/wdp-rd 2.4).
  size_t left_bytes() const {
    return state_ == State::gone && receiver_ && !closed_ ? receiver_->waiting_bytes() : 0;
  }
  void give_up_what_is_left() { receiver_->give_up(); }
  // Questions in a row that the peer has left unanswered, where they are enough: it may have no
  // socket any more, which its kernel would tell.
  uint32_t silence() const;
  // A question for that: the peer drops it, as it comes from another port.
  std::vector<std::byte> question() const;
  // Null once both sides have heard that the channel stands.
  const Handshake* handshake() const { return opening_.handshake(); }
  const Path& path() const { return opening_.path(); }
  // Once this side has heard of it.
  const RdPeer& peer() const { return opening_.peer(); }
  // When data came or went last.
  Time active_at() const { return active_; }
  SessionToken token() const { return opening_.token(); }
  const RdSendPath& sender() const { return sender_; }
  // Null before the peer has said where it begins.
  const RdReceivePath* receiver() const { return receiver_ ? &*receiver_ : nullptr; }
  // That their senders were told of as lost.
  uint64_t messages_lost() const { return messages_lost_; }
  // What became of the messages that it had left, once it has ended.
  RdClient::End end() const { return end_; }

  // --- set-up and datagrams in, by the WdpSocket
  void call(const Offer& offer, const Path& path, Qpn destination, Time now);
  void answer(const wire::WdpCtl& req, const Path& path, size_t size, bool validated,
              const Offer& offer, Time now);
  // A REQ from the same socket. False: it is of another life of the peer's, which has begun anew,
  // or of a stranger. It has to show that it comes from there.
  bool requested_again(const wire::WdpCtl& req, size_t size, bool validated, Time now);
  // Token and address were right. `common`: of the datagram.
  void received(const wire::WdpCommon& common, Bytes datagram, const UdReception& how, Time now);

 private:
  bool speaks() const { return state_ == State::open; }
  Result<Ok, wire::WdpDrop> take(const wire::WdpCommon& common, Bytes datagram,
                                 const UdReception& how, Time now);
  Result<Ok, wire::WdpDrop> disown(const wire::WdpCommon& common, Bytes datagram);
  Result<Ok, wire::WdpDrop> take_ctl(const wire::WdpCommon& common, Bytes datagram, Time now);
  Result<Ok, wire::WdpDrop> take_data(const wire::WdpCommon& common, Bytes datagram,
                                      const UdReception& how, Time now);
  Result<Ok, wire::WdpDrop> accept(const RdDatagram& datagram, const UdReception& how, Time now);
  Result<Ok, wire::WdpDrop> take_ack(const wire::WdpAck& ack, Time now);
  void look_at_opening(Time now);
  void opens(Time now);
  bool take(const RdArrival& arrival, Bytes payload) override;
  size_t bundle_room() const { return search_.bundle_room(goes_by_ipv4()); }
  bool goes_by_ipv4() const { return path().to.address.is_ipv4(); }
  void say_probe(Time now);
  void end_all(RdClient::End end);
  void tell_of_room();
  void peer_leaves(const wire::WdpCtl& dreq, Time now);
  wire::WdpCtl message(wire::CtlType type) const;
  void say_dreq(Time now);
  void ask();
  bool is_wanted() const;
  void keep_alive(Time now);
  void say_goodbye(Time now);
  void end_for_want_of_messages(Time now);
  Path path_of_data() const;
  void confirm(Time now);
  wire::WdpAck acknowledgement(Time now);
  void put_ack(Train& train, Time now);

  RdShared& shared_;
  RdChannelOwner& owner_;
  Random& random_;
  const size_t window_;
  State state_ = State::setting_up;
  RdOpening opening_;
  RdSendPath sender_;
  RdMessageWriter writer_;
  std::optional<RdReceivePath> receiver_;
  RdWaiters waiters_;
  RdAnswers answers_;
  CtlOutbox outbox_;
  RdPresence presence_;
  Time active_;  // data came or went
  RdPathSearch search_;
  RdGoodbye goodbye_;
  bool closed_ = false;  // by this side: nobody posts receives any more
  RdClient::End end_ = RdClient::End::lost;
  uint64_t messages_lost_ = 0;
};

}  // namespace weft::wdp
