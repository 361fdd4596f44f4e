// An Id of rdma_cm(7): the machine of id_state.h with what it drives. Belongs to one engine at a
// time, its home; whoever holds that touches it. The home is the queue pair's engine once there is
// one, and a listener's children begin at the listener's.
//
//   active:   Dial --> Started --+--> QueuePair::connect()
//   passive:  Answer (parked) ---+--> Tether, while the program has no queue pair for it
//   listener: Listener --> children
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "cm/answer.h"
#include "cm/dial.h"
#include "cm/event_channel.h"
#include "cm/id_state.h"
#include "cm/listener.h"
#include "cm/service.h"
#include "cm/tether.h"
#include "verbs/queue_pair.h"

namespace weft::cm {

class ConnectionId final : public Id,
                           private engine::Source,
                           private DialHandler,
                           private AnswerHandler,
                           private ListenerHandler,
                           private TetherHandler,
                           private verbs::ConnectionObserver {
 public:
  // Deleted by destroy().
  static ConnectionId* create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel);

  void set_owner(void* owner) override { owner_ = owner; }
  void* owner() const override { return owner_; }
  void set_device(verbs::Context& device) override { device_ = &device; }
  Addresses addresses() const override;

  int bind(const port::Address& at) override;
  bool on_device() const override;
  int resolve_address(const port::Address& source, const port::Address& destination) override;
  int resolve_route() override;
  int listen(int backlog) override;
  int connect(verbs::QueuePair* pair, const ConnectionParameters& parameters) override;
  int establish() override;
  int accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) override;
  int reject(Bytes private_data) override;
  int disconnect() override;
  bool silent() const override;
  int queue_pair_attributes(verbs::QpState state, verbs::QpAttributes& attributes,
                            uint32_t& mask) const override;
  int set_option(const IdOption& option) override;
  int migrate(Channel& to) override;
  int destroy() override;

  // --- for the channel
  void event_taken();
  void event_acknowledged();
  // A request of this listener's is not in the channel any more.
  void request_left();

 private:
  ConnectionId(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel,
               engine::Engine& home);
  ~ConnectionId() override = default;

  // DialHandler
  void dial_connected(engine::Token& token, Dial& dial, Started&& started) override;
  void dial_failed(engine::Token& token, Dial& dial, DialFailure&& failure) override;
  // AnswerHandler, of a child that waits for the program
  void request_came(engine::Token&, Answer&, const mpa::Responder::Request&) override {}
  void answer_gone(engine::Token& token, Answer& answer) override;
  // ListenerHandler
  void connection_requested(engine::Token& token, Answer& answer,
                            const mpa::Responder::Request& request) override;
  // TetherHandler
  void tether_broke(engine::Token& token) override;
  // verbs::ConnectionObserver
  void stream_ready(engine::Token&) override {}
  void stream_ended(engine::Token& token, const rdmap::StreamEnd& end) override;
  void pair_gone(engine::Token& token) override;
  // engine::Source, without a descriptor
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token& token) override;
  void on_no_memory(engine::Token& token) override;
  void abandon_in_child() override {}

  bool alive() const { return &adapter_ == verbs::Adapter::existing(); }
  engine::Hold hold_home() const;
  bool can(Step step) const { return after(state_, step).has_value(); }
  // The step has its place in the table.
  void take(Step step) { state_ = *after(state_, step); }
  // EINVAL, with a sentence.
  int misplaced(Step step) const;
  int too_long(Step step, size_t private_data) const;
  void report(engine::Token& token, EventKind kind, int status = 0,
              ConnectionParameters parameters = {});
  void set_under_way(bool on);

  // Binding
  int bind_socket(const port::Address& at);
  // Active side
  void start_dial(engine::Token& token);
  void stop_dial(engine::Token& token);
  void fail_connect(engine::Token& token, EventKind kind, int status,
                    std::vector<std::byte> private_data = {});
  // Passive side
  void accepted(engine::Token& token, verbs::QueuePair* pair, Started&& started);
  static int no_peer(verbs::QueuePair* pair);
  // Both
  mpa::Offer offer() const;
  bool ready_pair(verbs::QueuePair& pair) const;
  void fill_attributes(verbs::QpState state, verbs::QpAttributes& attributes, uint32_t& mask) const;
  engine::Engine& engine_for(verbs::QueuePair* pair, Qpn qpn) const;
  verbs::QueuePair* program_pair(engine::Token& token, Qpn qpn) const;
  void join(engine::Token& token, verbs::QueuePair* pair, Started&& started, bool initiator);
  void negotiated(const mpa::Parameters& parameters);
  void let_go_of_pair(engine::Token& token);
  // The end
  void ended(engine::Token& token);
  void stop_everything(engine::Token& token);

  // Until the acknowledgements of what the program has got are in.
  void await_acknowledgements();

  verbs::Adapter& adapter_;
  std::atomic<engine::Engine*> home_;
  std::atomic<int> requests_{0};  // of a listener, that nobody took yet
  void* owner_ = nullptr;
  verbs::Context* device_ = nullptr;

  // Of the home's holder, from here on.
  std::shared_ptr<EventChannel> channel_;
  IdState state_ = IdState::idle;
  port::Address source_;
  port::Address destination_;
  port::TcpListener bound_;  // keeps the port that bind() promised
  std::optional<uint8_t> type_of_service_;
  std::optional<uint8_t> ack_timeout_;
  bool one_family_ = false;
  ConnectionParameters parameters_;  // of connect() or accept()
  bool under_way_ = false;
  std::unique_ptr<Event> spare_ = std::make_unique<Event>();  // where there is no memory for one

  Dial* dial_ = nullptr;  // none in the pauses between two
  Time refusals_until_;
  Duration pause_{};
  Answer* answer_ = nullptr;
  Listener* listener_ = nullptr;
  Tether* tether_ = nullptr;
  verbs::QueuePair* pair_ = nullptr;

  std::mutex counting_;
  std::condition_variable acknowledged_;
  uint64_t taken_ = 0;  // events that count for this Id and that the program has got
  uint64_t acknowledgements_ = 0;
};

}  // namespace weft::cm
