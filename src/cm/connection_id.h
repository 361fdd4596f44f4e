// An Id of RDMA_PS_TCP: a listener, or one end of a connection of RC over TCP or of UC over UDP.
// The home is the queue pair's engine once there is one.
//
//   active:   RC  StreamStart ------------------------> Started --> ConnectedPair
//             UC  DatagramCaller::call() --> its handshake, of which ConnectedPair hears
//   passive:  RC  PendingRequest (a PassiveStart, or a ChannelRequest) --> Started -->
//   ConnectedPair
//             UC  PendingRequest (a DatagramCall) --> DatagramCaller::accept()
//   listener: ListeningPort --> children
#pragma once

#include "cm/basic_id.h"
#include "cm/bound_port.h"
#include "cm/connected_pair.h"
#include "cm/listening_port.h"
#include "cm/pair_setup.h"
#include "cm/pending_request.h"
#include "cm/stream_start.h"
#include "cm/time_wait.h"

namespace weft::cm {

// Above 400 lines with its source: each function is a step of one machine (id_state.h), and some
// move it to another engine in the middle. The parts: design/22.
class ConnectionId final : public BasicId,
                           private RetryingStartHandler,
                           private PendingRequestHandler,
                           private ListeningPortHandler,
                           private ConnectedPairHandler,
                           private TimeWaitHandler {
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
  // PendingRequestHandler, of a child that waits for the program
  void request_came(engine::Token&, PassiveStart&, const mpa::Responder::Request&) override {}
  void start_gone(engine::Token& token, PassiveStart&) override { peer_gone(token); }
  void request_gone(engine::Token& token, ChannelRequest&) override { peer_gone(token); }
  // ListeningPortHandler
  bool crowded() const override { return BasicId::crowded(); }
  PendingRequestHandler* connection_requested(engine::Token& token,
                                              const ConnectionRequest& request) override;
  // ConnectedPairHandler
  void peer_confirmed(engine::Token& token) override;
  void call_failed(engine::Token& token, const wdp::Handshake& handshake) override;
  void connection_lost(engine::Token& token, const ConnectionLoss& loss) override;
  // TimeWaitHandler
  void time_wait_over(engine::Token& token) override { report(token, EventKind::timewait_exit); }
  // engine::EventHandler
  void on_no_memory(engine::Token& token) override;

  int keep(const port::Address& at, int error);
  // Active side
  void start_stream(engine::Token& token);
  wdp::Path path_to_peer() const;
  uint32_t interface_to_peer() const;
  void fail_connect(engine::Token& token, const FailureEvent& failure,
                    std::vector<std::byte> private_data = {});
  void call(engine::Token& token);
  // Passive side
  void accepted(engine::Token& token, verbs::QueuePair* pair, Started&& started);
  int accept_call(verbs::QueuePair* pair, const ConnectionParameters& parameters);
  int accept_by_channel(verbs::QueuePair* pair, engine::Engine& target, const wdp::Path& path,
                        const wire::RdOffer& peer);
  void peer_gone(engine::Token& token);
  static int no_peer(verbs::QueuePair* pair);
  int too_long_for_peer(Step step, Bytes private_data) const;
  // Both
  bool on_its_way() const { return state_ == IdState::connecting || state_ == IdState::accepting; }
  bool ready_pair(verbs::QueuePair& pair) const;
  PairSetup setup() const;
  engine::Engine& engine_for(verbs::QueuePair* pair, Qpn qpn) const;
  ConnectedPair::Use stream_use(bool initiator) const;
  void ended(engine::Token& token, int status = 0);

  // Of the home's holder.
  BoundPort port_;
  ListeningPort listening_{*this};
  StreamStart start_{*this};
  PendingRequest request_;  // of a child: who waits for the program's answer
  ConnectedPair pair_{*this};
  TimeWait time_wait_{*this};
};

}  // namespace weft::cm
