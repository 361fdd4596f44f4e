// All that one UDP socket of WDP is, without the socket: sessions, handshakes, UD queue pairs, and
// whom a datagram is for (spec/wdp 2.5). Datagrams and time come in; what is to be
// sent goes out, of the socket itself by fill(), of a connection by its own fill().
//
//                      ┌ unknown, REQ in another version ─► REJ, 10 a second
//   received() ─ class ┼ REQ ─ Refusals, RequestGate ─ owner: listener, or queue pair called
//                      │                                                        ─► Handshake
//                      ├ CTL, UC: token, address, index ──► UcConnection
//                      ├ CTL, RD: token, address ─────────► RdChannel
//                      └ UD: QN ──────────────────────────► UdQueue
//
// Above 400 lines with its source: each class of datagram has its branch here.
#pragma once

#include <memory>

#include "wdp/demux.h"
#include "wdp/rd_channels.h"
#include "wdp/refusals.h"
#include "wdp/request_gate.h"
#include "wdp/uc_connection.h"

namespace weft::wdp {

// Implemented by the adapter. Called from inside received() and tick(), and may call nothing of the
// socket then but what it says here.
class WdpSocketOwner {
 public:
  virtual ~WdpSocketOwner() = default;
  // Somebody calls the listener: its REQ is in `handshake.peer()`. Nothing: the socket keeps it
  // until accept() or reject(). UC and UD resolution come here, see peer().service.
  virtual std::optional<wire::RejReason> requested(const RequestKey& key,
                                                   const Handshake& handshake) = 0;
  // A queue pair calls a queue pair (spec/addressing 6.2). Which one answers, and with what; its
  // token is filled in by the socket. Where the one that is called calls itself, its own offer
  // counts.
  struct Callee {
    UcConnection* connection = nullptr;
    Offer offer;
  };
  virtual Result<Callee, wire::RejReason> called(const wire::WdpCtl& req, const Endpoint& from) = 0;
  // Another socket calls this one, which has channels (RdChannels::enable()), or one at rest is to
  // go on. The channel that is to do so; null: there is no room for one.
  virtual RdChannel* channel_called() { return nullptr; }
  // What ask() asked: established, then QPN and Q_Key are in `handshake.peer()`, or failed. The
  // socket forgets it after this.
  virtual void answered(SessionToken question, const Handshake& handshake) = 0;
};

// Engine holder only.
class WdpSocket {
 public:
  WdpSocket(Random& random, Time now) : random_(random), gate_(random, now) {}
  WdpSocket(const WdpSocket&) = delete;
  WdpSocket& operator=(const WdpSocket&) = delete;

  // --- datagrams in
  // The connection that it is for, if any, hears of it first: UcConnectionOwner::reached(). See
  // ready() besides.
  void received(Bytes datagram, const UdReception& how, Time now, WdpSocketOwner& owner);
  // For who reads the header before the payload: the session whose direct() took it, or none.
  UcSession* direct(Bytes front, size_t size, const Endpoint& from, PieceList& places);
  // From the socket of a multicast group: nothing but UD is taken there (part IV).
  void received_by_group(Bytes datagram, const UdReception& how);

  // --- time: of what is asked and answered about UD queue pairs, and of channels at rest
  Time deadline() const;
  void tick(Time now, WdpSocketOwner& owner);

  // --- trains out: questions, and answers to those with whom there is no connection
  bool ready() const { return !answers_.empty(); }
  void fill(Train& train);

  // --- connections. The socket keeps a pointer until remove().
  void connect(UcConnection& connection, Offer offer, const Path& path, Qpn destination,
               bool ib_style, Time now);
  // What requested() told of. False: it is not there any more, or it is a question for tell().
  bool accept(const RequestKey& key, UcConnection& connection, Offer offer, Time now);
  bool reject(const RequestKey& key, wire::RejReason reason, Bytes private_data);
  // `parameters` have the tokens, or none where the connection is with itself. `from`: 0 for what
  // may be any (spec/wdp-uc 6, static sessions).
  void start_static(UcConnection& connection, UcParameters parameters, const Endpoint& from,
                    Time now);
  // It is gone(), or its owner has no more use for it. Its token rests for 2 s.
  void remove(UcConnection& connection, Time now);

  // --- UD queue pairs of rdma_cm (CTL service 4): who has which QPN and Q_Key
  SessionToken ask(Offer offer, const Path& path, Time now);
  void forget(SessionToken question, Time now);
  // Nobody has the port that is asked: the answer is that of a port where nobody listens.
  void port_closed(SessionToken question, Time now, WdpSocketOwner& owner);
  // What requested() told of: the queue pair's QPN, and its Q_Key for `first_psn`.
  bool tell(const RequestKey& key, const Offer& offer, Time now);

  // --- channels. The socket keeps a pointer until remove().
  RdChannels& channels() { return channels_; }
  void connect(RdChannel& channel, const Path& path, Qpn destination, Time now);
  void remove(RdChannel& channel, Time now) { channels_.remove(channel, now); }
  // The one at rest goes on: as `channel`; as one of the owner's, or nothing if it has none.
  void wake(const ChannelEnds& ends, RdChannel& channel, Time now);
  RdChannel* wake(const ChannelEnds& ends, Time now, WdpSocketOwner& owner);
  // The same, for it has something to say.
  void resume(const ChannelEnds& ends, RdChannel& channel, Time now);

  // --- UD
  Demux& demux() { return demux_; }
  const Demux& demux() const { return demux_; }

  // What its connections have under way.
  SendWindows& windows() { return windows_; }

  size_t half_open() const { return demux_.half_open(); }
  // Of datagrams that belong to nobody.
  const DropCounts& drops() const { return drops_; }
  // Said by the socket; a connection says its own (UcConnection::handshake()).
  const RejCounts& rejections() const { return rejections_; }

 private:
  static constexpr size_t kMostAnswers = 64;
  static constexpr size_t kMostWaiting = 1024;  // for a program to decide
  static constexpr size_t kMostTold = 16 * kMostWaiting;
  struct Answer {
    Path path;
    std::vector<std::byte> datagram;
  };
  // A question about a UD queue pair that was answered. All live equally long.
  struct Told {
    RequestKey key;
    Time until;
  };

  void settle(SessionToken question, Time now, WdpSocketOwner& owner);
  void received_ud(const wire::WdpCommon& common, Bytes datagram, const UdReception& how);
  void received_answer(const wire::WdpCommon& common, Bytes datagram, const UdReception& how,
                       Time now, WdpSocketOwner& owner);
  void request(const wire::WdpCommon& common, Bytes datagram, const UdReception& how, Time now,
               WdpSocketOwner& owner);
  void call(const wire::WdpCtl& req, size_t size, const UdReception& how, bool validated, Time now,
            WdpSocketOwner& owner);
  void listen(const wire::WdpCtl& req, size_t size, const UdReception& how, bool validated,
              WdpSocketOwner& owner);
  void call_channel(const wire::WdpCtl& req, size_t size, const UdReception& how, Time now,
                    WdpSocketOwner& owner);
  void enter(RdChannel& channel, SessionToken token, const Path& path);
  // False: there are too many already, and it is not said.
  bool say(Answer answer);
  void answer(const wire::WdpCtl& c, const UdReception& how);
  void answer(Handshake& handshake);
  void refuse(const wire::WdpCtl& req, wire::RejReason reason, const UdReception& how);
  void answer_call(UcConnection& connection, const RequestKey& key,
                   std::unique_ptr<Handshake> handshake, const Offer& offer, Time now);
  void enter(UcConnection& connection, SessionToken token, const Endpoint& from, Qpn own_qpn,
             bool or_zero);
  void look_at(UcConnection& connection);

  Random& random_;
  RequestGate gate_;
  Demux demux_;
  SendWindows windows_;
  RdChannels channels_{demux_};
  std::map<RequestKey, std::unique_ptr<Handshake>> waiting_;  // those that were told, too
  std::deque<Told> told_;
  std::map<SessionToken, std::unique_ptr<Handshake>> questions_;
  std::deque<Answer> answers_;
  Refusals refusals_;
  DropCounts drops_;
  RejCounts rejections_;
};

}  // namespace weft::wdp
