// All that one UDP socket of WDP is, without the socket: sessions, handshakes, UD queue pairs, and
// whom a datagram is for (spec/wdp 2.5). Datagrams and time come in; what is to be
// sent goes out, of the socket itself by fill(), of a connection by its own fill().
//
//                      ┌ unknown, REQ in another version ─► REJ, 10 a second
//   received() ─ class ┼ REQ ─ Refusals, RequestGate ─ owner: listener, or queue pair called
//                      │                                                        ─► Handshake
//                      ├ CTL, UC: token, address, index ──► UcConnection
//                      └ UD: QN ──────────────────────────► UdQueue
#pragma once

#include <memory>

#include "wdp/demux.h"
#include "wdp/refusals.h"
#include "wdp/request_gate.h"

namespace weft::wdp {

// Implemented by the adapter. Called from inside received(), and may call nothing of the socket
// then but what it says here.
class WdpSocketOwner {
 public:
  virtual ~WdpSocketOwner() = default;
  // Somebody calls the listener: its REQ is in `handshake.peer()`. Nothing: the socket keeps it
  // until accept() or reject(). UC and UD resolution come here, see peer().service.
  virtual std::optional<wire::RejReason> requested(const Demux::RequestKey& key,
                                                   const Handshake& handshake) = 0;
  // A queue pair calls a queue pair (spec/addressing 6.2). Which one answers, and with what; its
  // token is filled in by the socket. Where the one that is called calls itself, its own offer
  // counts.
  struct Callee {
    UcConnection* connection = nullptr;
    Offer offer;
  };
  virtual Result<Callee, wire::RejReason> called(const wire::WdpCtl& req, const Endpoint& from) = 0;
  // What ask() asked: established, then QPN and Q_Key are in `handshake.peer()`, or failed. The
  // socket forgets it after this.
  virtual void answered(SessionToken question, const Handshake& handshake) = 0;
};

// Engine holder only.
class WdpSocket {
 public:
  WdpSocket(WdpSocketOwner& owner, Random& random, Time now)
      : owner_(owner), random_(random), gate_(random, now) {}
  WdpSocket(const WdpSocket&) = delete;
  WdpSocket& operator=(const WdpSocket&) = delete;

  // --- datagrams in
  // The connection that it was for, if any: it may have something to say, another deadline, another
  // state. See ready() besides.
  UcConnection* received(Bytes datagram, const UdReception& how, Time now);
  // From the socket of a multicast group: nothing but UD is taken there (part IV).
  void received_by_group(Bytes datagram, const UdReception& how);

  // --- time: of what is asked and answered about UD queue pairs
  Time deadline() const;
  void tick(Time now);

  // --- trains out: questions, and answers to those with whom there is no connection
  bool ready() const { return !answers_.empty(); }
  void fill(Train& train);

  // --- connections. The socket keeps a pointer until remove().
  void connect(UcConnection& connection, Offer offer, const Path& path, Qpn destination,
               bool ib_style, Time now);
  // What requested() told of. False: it is not there any more, or it is a question for tell().
  bool accept(const Demux::RequestKey& key, UcConnection& connection, Offer offer, Time now);
  bool reject(const Demux::RequestKey& key, wire::RejReason reason, Bytes private_data);
  // `parameters` have the token. `from`: 0 for what may be any (spec/wdp-uc 6, static sessions).
  void start_static(UcConnection& connection, const UcParameters& parameters, const Endpoint& from,
                    Time now);
  // It is gone(), or its owner has no more use for it. Its token rests for 2 s.
  void remove(UcConnection& connection, Time now);

  // --- UD queue pairs of rdma_cm (CTL service 4): who has which QPN and Q_Key
  SessionToken ask(Offer offer, const Path& path, Time now);
  void forget(SessionToken question, Time now);
  // What requested() told of: the queue pair's QPN, and its Q_Key for `first_psn`.
  bool tell(const Demux::RequestKey& key, const Offer& offer, Time now);

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
    Demux::RequestKey key;
    Time until;
  };
  struct Entry {
    SessionToken token;
    std::optional<Demux::RequestKey> request;  // that it has answered
  };

  void settle(SessionToken question, Time now);
  UcConnection* request(Bytes datagram, const UdReception& how, Time now);
  UcConnection* call(const wire::WdpCtl& req, size_t size, const UdReception& how, bool validated,
                     Time now);
  void listen(const wire::WdpCtl& req, size_t size, const UdReception& how, bool validated);
  // False: there are too many already, and it is not said.
  bool say(Answer answer);
  void answer(const wire::WdpCtl& c, const UdReception& how);
  void answer(Handshake& handshake);
  void refuse(const wire::WdpCtl& req, wire::RejReason reason, const UdReception& how);
  void enter(UcConnection& connection, SessionToken token, const Endpoint& from, Qpn own_qpn,
             bool or_zero);
  void look_at(UcConnection& connection);
  UcConnection* drop(wire::WdpDrop why) {
    drops_.count(why);
    return nullptr;
  }

  WdpSocketOwner& owner_;
  Random& random_;
  RequestGate gate_;
  Demux demux_;
  SendWindows windows_;
  std::unordered_map<UcConnection*, Entry> connections_;
  std::map<Demux::RequestKey, std::unique_ptr<Handshake>> waiting_;  // those that were told, too
  std::deque<Told> told_;
  std::map<SessionToken, std::unique_ptr<Handshake>> questions_;
  std::deque<Answer> answers_;
  Refusals refusals_;
  DropCounts drops_;
  RejCounts rejections_;
};

}  // namespace weft::wdp
