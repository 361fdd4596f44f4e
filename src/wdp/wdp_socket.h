// All that one UDP socket of WDP is, without the socket: sessions, handshakes, UD queue pairs, and
// whom a datagram is for (spec/wdp 2.5). Datagrams and time come in; what is to be
// sent goes out, of the socket itself by fill(), of a connection by its own fill().
//
//                      ┌ unknown, REQ in another version ─► REJ, 10 a second
//                      ├ REQ ┬ refused of late ──────────► PortAnswers
//                      │     ├ for a channel ────────────► ChannelCalls
//   received() ─ class ┤     └ RequestGate ─ owner: queue pair called ─► UcConnection
//                      │                            listener ──────────► WaitingRequests
//                      ├ CTL, a question's token ────────► UdQuestions
//                      ├ CTL, UC: token, address, index ─► UcConnection
//                      ├ CTL, RD: token, address ────────► RdChannel
//                      └ UD: QN ─────────────────────────► UdQueue
#pragma once

#include <memory>

#include "wdp/channel_calls.h"
#include "wdp/demux.h"
#include "wdp/port_answers.h"
#include "wdp/request_gate.h"
#include "wdp/uc_connection.h"
#include "wdp/ud_questions.h"
#include "wdp/waiting_requests.h"
#include "wdp/wdp_socket_owner.h"

namespace weft::wdp {

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
  bool ready() const { return answers_.ready(); }
  void fill(Train& train) { answers_.fill(train); }

  // --- connections. The socket keeps a pointer until remove().
  void connect(UcConnection& connection, Offer offer, const Path& path, Qpn destination,
               bool ib_style, Time now);
  // What requested() told of. False: it is not there any more, or it is a question for tell().
  bool accept(const RequestKey& key, UcConnection& connection, Offer offer, Time now);
  bool reject(const RequestKey& key, wire::RejReason reason, Bytes private_data) {
    return waiting_.reject(key, reason, private_data);
  }
  // `parameters` have the tokens, or none where the connection is with itself. `from`: 0 for what
  // may be any (spec/wdp-uc 6, static sessions).
  void start_static(UcConnection& connection, UcParameters parameters, const Endpoint& from,
                    Time now);
  // It is gone(), or its owner has no more use for it. Its token rests for 2 s.
  void remove(UcConnection& connection, Time now);

  // --- UD queue pairs of rdma_cm (CTL service 4): who has which QPN and Q_Key
  SessionToken ask(Offer offer, const Path& path, Time now) {
    return questions_.ask(std::move(offer), path, now);
  }
  void forget(SessionToken question, Time now) { questions_.forget(question, now); }
  // Nobody has the port that is asked.
  void port_closed(SessionToken question, Time now, WdpSocketOwner& owner);
  // What requested() told of: the queue pair's QPN, and its Q_Key for `first_psn`.
  bool tell(const RequestKey& key, const Offer& offer, Time now) {
    return waiting_.tell(key, offer, now);
  }

  // --- channels. The socket keeps a pointer until remove().
  RdChannels& channels() { return channel_calls_.channels(); }
  void connect(RdChannel& channel, const Path& path, Qpn destination, Time now) {
    channel_calls_.connect(channel, path, destination, now);
  }
  void remove(RdChannel& channel, Time now) { channels().remove(channel, now); }
  // See ChannelCalls.
  RdChannel* wake(const ChannelEnds& ends, Time now, WdpSocketOwner& owner) {
    return channel_calls_.wake(ends, now, owner);
  }
  void resume(const ChannelEnds& ends, RdChannel& channel, Time now) {
    channel_calls_.resume(ends, channel, now);
  }

  // --- UD
  Demux& demux() { return demux_; }
  const Demux& demux() const { return demux_; }

  // What its connections have under way.
  SendWindows& windows() { return windows_; }

  size_t half_open() const { return demux_.half_open(); }
  // Of datagrams that belong to nobody.
  const DropCounts& drops() const { return drops_; }
  // Said by the socket; a connection says its own (UcConnection::handshake()).
  const RejCounts& rejections() const { return answers_.rejections(); }

 private:
  void received_ud(const wire::WdpCommon& common, Bytes datagram, const UdReception& how);
  void received_answer(const wire::WdpCommon& common, Bytes datagram, const UdReception& how,
                       Time now, WdpSocketOwner& owner);
  void request(const wire::WdpCommon& common, Bytes datagram, const UdReception& how, Time now,
               WdpSocketOwner& owner);
  void call(const wire::WdpCtl& req, size_t size, const UdReception& how, bool validated, Time now,
            WdpSocketOwner& owner);
  void listen(const wire::WdpCtl& req, size_t size, const UdReception& how, bool validated,
              WdpSocketOwner& owner);
  void answer_call(UcConnection& connection, const RequestKey& key,
                   std::unique_ptr<Handshake> handshake, const Offer& offer, Time now);
  void enter(UcConnection& connection, SessionToken token, const Endpoint& from, Qpn own_qpn,
             bool or_zero);
  void look_at(UcConnection& connection);

  Random& random_;
  RequestGate gate_;
  Demux demux_;
  SendWindows windows_;
  PortAnswers answers_;
  ChannelCalls channel_calls_{random_, demux_, gate_, answers_};
  WaitingRequests waiting_{demux_, answers_};
  UdQuestions questions_{random_, demux_, answers_};
  DropCounts drops_;
};

}  // namespace weft::wdp
