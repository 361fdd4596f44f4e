// The channel between two sockets that carries reliable datagrams (spec/wdp-rd), from its call to
// its end. Its parts: RdOpening, how it comes to stand; RdTraffic, what passes; RdControl, CTL.
//
//   calls      ─► Handshake (active)  ─REP─► open ──close(), idle for 120 s──► closing ─► gone
//   is called  ─► Handshake (passive) ─RTU, data─► open ──DREQ, no answers──────────────► gone
//   calls      ─► REJ ─► refused: the peer has none
//
// Above 400 lines with its source: what comes, what is called and what is due meet all its states.
#pragma once

#include <memory>
#include <vector>

#include "wdp/rd_control.h"
#include "wdp/rd_opening.h"
#include "wdp/rd_traffic.h"
#include "wdp/train_source.h"
#include "wire/wdp_ended.h"

namespace weft::wdp {

// Engine holder only.
class RdChannel final : public TrainSource {
 public:
  // All references are kept. `window`: bytes that its socket has room for. `ecn`: routers may mark
  // its datagrams.
  RdChannel(RdShared& shared, RdChannelOwner& owner, Random& random, size_t window, bool ecn,
            std::unique_ptr<Congestion> congestion);
  RdChannel(const RdChannel&) = delete;
  RdChannel& operator=(const RdChannel&) = delete;

  // --- what clients have to say, and when they may
  RdOutgoing& out() { return traffic_.out(); }
  const RdOutgoing& out() const { return traffic_.out(); }
  // Does the peer take segments of queue pairs of type RD? Known once the channel is open.
  bool has_responses() const { return peer().terms.responses; }
  // Do connections of RC begin in it? Known once the channel is open.
  bool has_starts() const { return peer().terms.starts; }

  // --- connections that it carries: while there are any it asks whether the peer is there, and
  // does not end by itself
  void enter();
  // The one that enters is a connection of RC, which need not wait for a process that is yet to
  // begin.
  void enter_connection() {
    enter();
    for_connection_ = true;
  }
  void leave() { control_.presence().leave(); }
  // Is this still the peer's channel? Asks it. Whoever wants room hears of the answer; a peer that
  // does not know the channel says so, and it ends. The number is for has_answered().
  uint32_t ask_peer();
  bool has_answered(uint32_t question) const { return control_.presence().has_answered(question); }

  // --- at rest (spec/wdp-rd 2.5)
  // Who keeps a pointer to it while nothing passes says so once. It never rests, and ends when
  // nothing has passed for long.
  void keep_awake() { traffic_.keep_awake(); }
  // When it may, as nobody has anything to say or to hear: its owner sees to that. Never: not yet.
  Time rests_at() const;
  // Not before so long from now: somebody is about to use it, or memory is missing.
  void put_off_rest(Time now) { out().is_active(now); }
  // What is to be kept of it. It is of no use afterwards.
  RestingChannel rest();
  // Instead of call() and answer().
  void wake(const ChannelEnds& ends, RestingChannel&& before, Time now);
  // And its rest was long: see RdOpening::call_again().
  void call_again(const Offer& offer, Time now);
  // It was, and nothing has come since: whether the peer knows it yet is to be asked.
  bool was_at_rest() const { return control_.presence().was_at_rest(); }

  // --- receives
  void receives_posted(uint8_t index) { traffic_.receives_posted(index); }
  // What is not acknowledged yet is, at once.
  void flush() { traffic_.flush(); }

  // --- TrainSource
  bool ready(Time now) override;
  void fill(Train& train, Time now) override;
  bool urgent(Time now) const override { return traffic_.ack_due(now); }
  void llp_took_all(Time) override { out().sender().train_gone(); }
  void path_carries(size_t size) override { out().path_carries(size); }
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
    return (state_ == State::setting_up || speaks()) && !control_.goodbye().waits();
  }
  bool is_gone() const;
  // Bytes that have come, and wait for receives although the channel has ended (spec/wdp-rd 2.4).
  size_t left_bytes() const {
    return state_ == State::gone && receiver() != nullptr && !closed_ ? receiver()->waiting_bytes()
                                                                      : 0;
  }
  void give_up_what_is_left() { traffic_.receiver()->give_up(); }
  // Questions in a row that the peer has left unanswered, where they are enough: it may have no
  // socket any more, which its kernel would tell.
  uint32_t silence() const {
    return speaks() ? control_.presence().silence(sender().unanswered()) : 0;
  }
  // It calls, has no answer, and a connection waits for it.
  bool calls_for_connection() const;
  // A question for that: the peer drops it, as it comes from another port.
  std::vector<std::byte> question() const { return control_.question(); }
  // Null once both sides have heard that the channel stands.
  const Handshake* handshake() const { return opening_.handshake(); }
  const Path& path() const { return opening_.path(); }
  SessionToken token() const { return opening_.token(); }
  // Once this side has heard of it.
  const RdPeer& peer() const { return opening_.peer(); }
  const RdSendPath& sender() const { return out().sender(); }
  // Null before the peer has said where it begins.
  const RdReceivePath* receiver() const {
    const auto& r = traffic_.receiver();
    return r ? &*r : nullptr;
  }
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
  // The peer asks for another one, and has shown that it is there: this one has ended. `req` may
  // tell how.
  void replaced(const wire::WdpCtl& req, Time now);
  // What another REQ to the peer says of this channel, where this side has ended it because it was
  // idle: the peer may not know.
  std::optional<wire::WdpEnded> ended_when_idle() const;

 private:
  using Verdict = Result<Ok, wire::WdpDrop>;

  bool speaks() const { return state_ == State::open; }
  // One that may rest does that instead.
  Time idle_until() const {
    const Time idle = traffic_.idle_until();
    if (idle.is_never() || control_.presence().is_needed()) return Time::never();
    return rests_at().is_never() ? idle : Time::never();
  }
  void look_at_opening(Time now);
  Verdict take(const wire::WdpCommon& common, Bytes datagram, const UdReception& how, Time now);
  Verdict take_ctl(const wire::WdpCommon& common, Bytes datagram, Time now);
  Verdict take_data(const wire::WdpCommon& common, Bytes datagram, const UdReception& how,
                    Time now);
  Verdict take_ack(const wire::WdpAck& ack, Time now);
  void confirm(Time now);
  void peer_leaves(const wire::WdpCtl& dreq, Time now);
  void end_for_want_of_messages(Time now);
  void say_goodbye(Time now);
  void end_now(RdClient::End end);
  // How it ends where another process has the peer's port.
  RdClient::End end_by_other_life() const {
    return was_at_rest() ? RdClient::End::undelivered : RdClient::End::lost;
  }
  void end_as(State state, RdClient::End end);

  RdShared& shared_;
  RdChannelOwner& owner_;
  State state_ = State::setting_up;
  RdOpening opening_;
  RdTraffic traffic_;
  RdControl control_;
  bool for_connection_ = false;
  bool closed_ = false;  // by this side: nobody posts receives any more
  RdClient::End end_ = RdClient::End::lost;
};

}  // namespace weft::wdp
