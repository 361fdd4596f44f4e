// An Id of RDMA_PS_TCP: a listener, or one end of a connection of RC over TCP or of UC over UDP.
// The home is the queue pair's engine once there is one.
//
//   active:   RC  RetryingStart --> Started -----------+--> StreamAdopter::adopt()
//             UC  DatagramCaller::call() --> its handshake, which tells the observer
//   passive:  RC  PendingRequest (a PassiveStart) ------+--> ParkedConnection, until there is a
//   pair
//             UC  PendingRequest (a DatagramCall) --> DatagramCaller::accept()
//   listener: ListeningPort --> children
#pragma once

#include "cm/basic_id.h"
#include "cm/bound_port.h"
#include "cm/listening_port.h"
#include "cm/pair_setup.h"
#include "cm/parked_connection.h"
#include "cm/pending_request.h"
#include "cm/retrying_start.h"

namespace weft::cm {

// Above 400 lines with its source: each function is a step of one machine (id_state.h), and the two
// sides share what it owns. The parts: design/22.
class ConnectionId final : public BasicId,
                           private RetryingStartHandler,
                           private PassiveStartHandler,
                           private ListeningPortHandler,
                           private ParkedConnectionHandler,
                           private verbs::ConnectionObserver {
 public:
  // Deleted by destroy().
  static ConnectionId* create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel);

  bool on_device() const override;
  int connect(verbs::QueuePair* pair, const ConnectionParameters& parameters) override;
  int establish() override;
  int accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) override;
  int reject(Bytes private_data) override;
  int disconnect() override;
  int queue_pair_attributes(verbs::QpState state, verbs::QpType type,
                            verbs::QpAttributes& attributes, uint32_t& mask) const override;
  void prefer_home(bool on) const override;

 private:
  using BasicId::BasicId;
  ~ConnectionId() override = default;

  // BasicId
  int bind_socket(const port::Address& at) override;
  void take_port(engine::Token& token) override;
  void keepalive_changed() override;
  int start_listening(engine::Token& token, int backlog) override;
  void stop(engine::Token& token) override;
  void caught_up(engine::Token& token) override;
  // RetryingStartHandler
  void stream_started(engine::Token& token, Started&& started) override;
  void stream_not_started(engine::Token& token, ActiveStartFailure&& failure) override;
  void no_memory_to_start(engine::Token& token) override;
  // PassiveStartHandler, of a child that waits for the program
  void request_came(engine::Token&, PassiveStart&, const mpa::Responder::Request&) override {}
  void start_gone(engine::Token& token, PassiveStart& start) override;
  // ListeningPortHandler
  bool crowded() const override { return BasicId::crowded(); }
  PassiveStartHandler* connection_requested(engine::Token& token,
                                            const ConnectionRequest& request) override;
  // ParkedConnectionHandler
  void parked_connection_heard(engine::Token& token) override;
  void parked_connection_lost(engine::Token& token) override;
  // verbs::ConnectionObserver. The stream of RC is there when join() is through.
  void stream_ready(engine::Token& token) override;
  void stream_ended(engine::Token& token, const work::StreamEnd& end) override;
  void call_failed(engine::Token& token, const wdp::Handshake& handshake) override;
  void pair_gone(engine::Token& token) override;
  // engine::EventHandler
  void on_deadline(engine::Token& token) override;
  void on_no_memory(engine::Token& token) override;

  int keep(const port::Address& at, int error);
  // Active side
  void start_stream(engine::Token& token);
  void fail_connect(engine::Token& token, EventKind kind, int status,
                    std::vector<std::byte> private_data = {});
  void call(engine::Token& token);
  void say_ready(engine::Token& token);
  // Passive side
  void accepted(engine::Token& token, verbs::QueuePair* pair, Started&& started);
  int accept_call(verbs::QueuePair* pair, const ConnectionParameters& parameters);
  static int no_peer(verbs::QueuePair* pair);
  int too_long_for_peer(Step step, Bytes private_data) const;
  // Both
  bool on_its_way() const { return state_ == IdState::connecting || state_ == IdState::accepting; }
  wdp::Offer datagram_offer(const drive::DatagramDriver& driver, const wdp::Path& path) const;
  mpa::Offer offer() const;
  bool ready_pair(verbs::QueuePair& pair) const;
  PairSetup setup() const;
  engine::Engine& engine_for(verbs::QueuePair* pair, Qpn qpn) const;
  void join(engine::Token& token, verbs::QueuePair* pair, Started&& started, bool initiator);
  // The parameters of the connection as an event tells them, but for the peer's private data. Needs
  // no memory.
  ConnectionParameters agreed() const;
  void negotiated(uint32_t ird, uint32_t ord);
  void release_pair(engine::Token& token);
  // The end
  void ended(engine::Token& token, bool unanswered = false);
  void rest(engine::Token& token);

  // Of the home's holder.
  BoundPort port_;
  ListeningPort listening_{*this};
  RetryingStart start_{*this};
  PendingRequest request_;  // of a child: who waits for the program's answer
  ParkedConnection* parked_connection_ = nullptr;
  verbs::QueuePair* pair_ = nullptr;
  bool program_leads_ = false;  // UC: the queue pair is the program's business
  bool peer_ended_it_ = false;  // and the program has not called rdma_disconnect yet
};

}  // namespace weft::cm
