// Questions of this port for UD queue pairs of rdma_cm elsewhere: who has which QPN and Q_Key (CTL
// service 4, spec/wdp 4.8). Each is the active side of a handshake that makes no session.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "wdp/demux.h"
#include "wdp/port_answers.h"

namespace weft::wdp {

// One for each port. Engine holder only. A question is named by its token, which is nobody else's
// while it is asked. One that is over, with an answer (Handshake::peer()) or without
// (Handshake::failure()), is given to the caller and not known any more.
class UdQuestions {
 public:
  // Null: it goes on.
  using Over = std::unique_ptr<Handshake>;

  UdQuestions(Random& random, Demux& demux, PortAnswers& outbox)
      : random_(random), demux_(demux), outbox_(outbox) {}
  UdQuestions(const UdQuestions&) = delete;
  UdQuestions& operator=(const UdQuestions&) = delete;

  SessionToken ask(Offer offer, const Path& path, Time now);
  // Nobody wants to know any more. Nothing happens where it is over.
  void forget(SessionToken question, Time now);
  // Nobody has the port that is asked: the answer is that of a port where nobody listens.
  Over port_closed(SessionToken question, Time now);

  // Whether it is asked.
  bool knows(SessionToken question) const {
    return !questions_.empty() && questions_.contains(question);
  }
  // What came with the token of a question that is asked.
  Result<Over, wire::WdpDrop> received(const wire::WdpCommon& common, Bytes datagram,
                                       const Endpoint& from, Time now);

  Time deadline() const;
  // Those whose deadline has come, for tick().
  std::vector<SessionToken> due(Time now) const;
  Over tick(SessionToken question, Time now);

 private:
  Over settle(SessionToken question, Time now);

  Random& random_;
  Demux& demux_;
  PortAnswers& outbox_;
  std::map<SessionToken, std::unique_ptr<Handshake>> questions_;
};

}  // namespace weft::wdp
