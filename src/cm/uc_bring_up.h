// The bring-up by number over datagrams (spec/addressing 4, 5.4, 6):
//
//   RTR --lower QPN--> calling --REP--> connected
//    |                    ^ \--REJ 8, 10, timeout--> waiting 10 .. 500 ms --> calling
//    \--higher QPN--> called by the peer; after a second without, calling as well
#pragma once

#include "cm/pair_bring_up.h"

namespace weft::cm {

// Connects one queue pair by its transport, whose observer it is meanwhile.
class UcBringUp final : public PairBringUp, private verbs::ConnectionObserver {
 public:
  // Begins to call, or to wait for the peer's call. It may be over when this returns.
  static void start(engine::Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair);
  // The peer calls; `trying`: the queue pair has one of these. Gives the connection that is to
  // answer.
  static Result<wdp::WdpSocketOwner::Callee, wire::RejReason> called(
      engine::Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair, bool trying,
      const wire::WdpCtl& req, const wdp::Endpoint& from);
  void request_waits(engine::Token& token) override;
  void cancel(engine::Token& token) override;
  // Nothing comes by MPA.
  void request_came(engine::Token& token, StartRequest& start, const wire::Wfrc&) override {
    start.drop(token);
  }

  void on_deadline(engine::Token& token) override;
  void on_no_memory(engine::Token& token) override { qp_.give_up_connection(token); }

 private:
  UcBringUp(PairBringUpOwner& owner, verbs::QueuePair& pair)
      : PairBringUp(owner, pair), caller_(*pair.transport().datagram_caller()) {}
  static UcBringUp& add(engine::Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair);
  // verbs::ConnectionObserver
  void stream_ready(engine::Token& token) override { cancel(token); }
  void stream_ended(engine::Token& token, const work::StreamEnd&) override { cancel(token); }
  void call_failed(engine::Token& token, const wdp::Handshake& handshake) override;
  void pair_gone(engine::Token& token) override { cancel(token); }

  bool calls() const;
  void call_peer(engine::Token& token);
  void call_itself(engine::Token& token, const wdp::Path& path);
  void start_static(engine::Token& token);
  void call_again(engine::Token& token);
  void wait_to_be_called(engine::Token& token);
  void give_up(engine::Token& token);
  void wake_at(engine::Token& token, Time when) {
    token.runtime().set_deadline(token, *this, when);
  }

  verbs::DatagramCaller& caller_;
  Time calls_from_ = Time::never();  // though it is the peer's to call
};

}  // namespace weft::cm
