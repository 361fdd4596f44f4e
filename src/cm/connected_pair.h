// What a connection of rdma_cm works with at this end: its queue pair, or, of a stream that has
// none yet, the parked connection in its place.
//
//   attach() ──► queue pair ──► its own call by datagrams (UC), or carry() a stream (RC)
//                    no pair ──► carry() parks the stream ──► unpark(), to carry it elsewhere
//   disconnect(), fail(), detach(), or the peer ──► neither
#pragma once

#include "cm/active_start_outcome.h"
#include "cm/parked_connection.h"
#include "verbs/queue_pair.h"

namespace weft::cm {

// It has ended without a word of the program's here.
struct ConnectionLoss {
  FailureEvent unestablished;  // what it is while the peers still come together
  int status = 0;              // of DISCONNECTED, afterwards
};

// Engine holder calls.
class ConnectedPairHandler {
 public:
  // The peer's first word, told once: of a parked connection the first bytes of its stream; of UC
  // its REP or RTU.
  virtual void peer_confirmed(engine::Token& token) = 0;
  // UC's peer said no, or nothing.
  virtual void call_failed(engine::Token& token, const wdp::Handshake& handshake) = 0;
  // What was parked is gone, and a queue pair that the program destroys. One whose connection ended
  // stays attached.
  virtual void connection_lost(engine::Token& token, const ConnectionLoss& loss) = 0;

 protected:
  ~ConnectedPairHandler() = default;
};

// Engine holder; the engine is that of the queue pair.
class ConnectedPair final : private verbs::ConnectionObserver, private ParkedConnectionHandler {
 public:
  // How a stream is used here.
  struct Use {
    bool initiator = false;
    std::optional<uint8_t> type_of_service;
    Keepalive keepalive;
  };

  explicit ConnectedPair(ConnectedPairHandler& handler) : handler_(handler) {}

  // The queue pair is rdma_cm's from now on, and the handler hears of it. `of_program`: the program
  // sees to its states by itself.
  void attach(engine::Token& token, verbs::QueuePair& pair, bool of_program);
  // The handler hears nothing more of the queue pair, which stays as it is.
  void detach(engine::Token& token) { (void)release(token); }
  verbs::QueuePair* queue_pair() const { return pair_; }
  // The queue pair is attached, and the program's.
  bool is_of_program() const { return pair_ != nullptr && of_program_; }
  // Of a queue pair that connects over datagrams; else, and without one, nullptr.
  verbs::DatagramCaller* caller() const;

  // The stream's start-up is done: `pair` has it from now on, and is attached; nullptr: it is
  // parked. The handler may hear at once that it is lost.
  void carry(engine::Token& token, verbs::QueuePair* pair, Started&& started, const Use& use);
  bool is_parked() const { return parked_ != nullptr; }
  // Gives back what is parked.
  Started unpark(engine::Token& token);
  // Of the Initiator: the program goes on without a queue pair, which would have said so with its
  // first FPDU.
  void say_ready(engine::Token& token);
  // Of the stream that the queue pair has, if any.
  void keep_alive(const Keepalive& keepalive);

  // Orderly. False: the handler will hear, or has heard, when it has ended. True: it has ended, and
  // the handler hears nothing.
  bool disconnect(engine::Token& token);
  // The connection is not to be: what is posted is flushed. The handler hears nothing.
  void fail(engine::Token& token);
  // The handler hears nothing more. What is parked is closed; a connection that is `established`
  // ends in order, and any other queue pair stays as it is.
  void leave(engine::Token& token, bool established);

 private:
  // verbs::ConnectionObserver. The stream of RC is there when carry() is through.
  void stream_ready(engine::Token& token) override;
  void stream_ended(engine::Token& token, const work::StreamEnd& end) override;
  void call_failed(engine::Token& token, const wdp::Handshake& handshake) override {
    handler_.call_failed(token, handshake);
  }
  void pair_gone(engine::Token& token) override;
  // ParkedConnectionHandler
  void parked_connection_heard(engine::Token& token) override { handler_.peer_confirmed(token); }
  void parked_connection_lost(engine::Token& token) override;

  verbs::QueuePair* release(engine::Token& token);
  bool close_parked(engine::Token& token);

  ConnectedPairHandler& handler_;
  verbs::QueuePair* pair_ = nullptr;
  bool of_program_ = false;
  ParkedConnection* parked_ = nullptr;  // while there is no queue pair
};

}  // namespace weft::cm
