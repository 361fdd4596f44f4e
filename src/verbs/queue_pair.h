// A queue pair: the place where verbs meet the protocol. It keeps the state, the attributes and the
// transport, and turns what the transport says into completions and events.
//
//   SendPosting  --> SendQueue --\               /--> CompletionBatch --> CompletionQueue
//   post_receive --> Receives  ---> Transport ---> state, events
//                                      \--> MemoryAccess
// What its type allows is a row of qp_types.h. The parts: design/22.
//
// Above 400 lines with its source: the states and what the transport says touch all members.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "base/spinlock.h"
#include "engine/engine.h"
#include "stats/blocks.h"
#include "verbs/adapter.h"
#include "verbs/completion_batch.h"
#include "verbs/connection_observer.h"
#include "verbs/memory_access.h"
#include "verbs/protection_domain.h"
#include "verbs/qp_types.h"
#include "verbs/receives.h"
#include "verbs/send_request.h"
#include "verbs/transport.h"
#include "work/send_queue.h"

namespace weft::verbs {

struct QpInit {
  Context* context = nullptr;
  ProtectionDomain* pd = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  QpType type{};
  QpLimits limits;
  bool signal_all = false;
  bool block_own_multicast = false;  // IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
  void* owner = nullptr;             // the ABI's object, for events
};

class QueuePair final : private engine::EventHandler {
 public:
  // Errors: invalid (limits), no_memory, not_supported (type). On success the limits are those
  // granted.
  static Outcome<std::unique_ptr<QueuePair>> create(QpInit& init);
  ~QueuePair() override;

  Qpn number() const { return number_; }
  const QpTypeTraits& traits() const { return traits_; }
  Context& context() const { return *init_.context; }
  ProtectionDomain& pd() const { return *init_.pd; }
  Adapter& adapter() const { return init_.context->adapter(); }
  engine::Engine& engine() const { return engine_; }
  CompletionQueue& send_cq() const { return *init_.send_cq; }
  CompletionQueue& recv_cq() const { return *init_.recv_cq; }
  SharedReceiveQueue* srq() const { return init_.srq; }
  const QpLimits& limits() const { return init_.limits; }
  bool signal_all() const { return init_.signal_all; }
  bool blocks_own_multicast() const { return init_.block_own_multicast; }

  // --- posting; any thread. Sends: SendPosting.
  void ring() { engine_.ring(*this); }
  // Errors: invalid (state, srq, too many segments), no_memory (full); receive_fault() says more.
  Outcome<Ok> post_receive(const ReceiveRequest* requests, size_t count, size_t& posted);
  // Of a receive that was refused.
  PostFault receive_fault(uint32_t segments) const;
  // Of those who post sends.
  Spinlock& send_lock() { return send_lock_; }

  // --- control; any thread
  // As ibv_modify_qp. Errors: invalid; no_memory (then it is in error where it had left INIT).
  Outcome<Ok> modify(const QpAttributes& attributes, uint32_t mask);
  // As ibv_query_qp: what was set, and of a connection what was agreed on.
  QpAttributes query();
  // Hears what comes to this multicast group, or no longer. Errors: invalid (the type hears none,
  // no group, not attached), system.
  Outcome<Ok> attach_multicast(const Gid& mgid);
  Outcome<Ok> detach_multicast(const Gid& mgid);
  bool in_groups();
  QpState state() const { return state_.load(std::memory_order_acquire); }

  // --- for the connection managers; engine holder
  const QpAttributes& attributes() const { return attributes_; }
  Transport& transport() const { return *transport_; }
  bool connected() const { return transport_->connected(); }
  // Orderly close: the queue pair is in error, but what is posted by now still goes out.
  void disconnect(engine::Token& token);
  // The connection could not be made: the oldest request completes with `status`, the rest is
  // flushed.
  void fail_connection(engine::Token& token, Status status);
  void observe(engine::Token&, ConnectionObserver* observer) { observer_ = observer; }
  // rdma_cm connects it, and the bring-up by number leaves it alone, until RESET.
  bool cm_managed() const { return since_reset_.cm_managed; }
  void set_cm_managed(engine::Token&) { since_reset_.cm_managed = true; }

  // --- for the shared receive queue
  void ring_later() { engine_.enqueue(*this); }

  // --- for its transport; engine holder
  stats::QpBlock& counters() const { return *counters_; }
  ConnectionObserver* observer() const { return observer_; }
  MemoryAccess& memory() { return memory_; }
  work::SendQueue& send_queue() { return send_queue_; }
  Receives& receives() { return receives_; }
  void receive_done(const work::Receive& r, Status status, const work::Arrival& a);
  // The same, with all that a completion can say; `qpn` is filled in.
  void receive_done(Completion completion, bool solicited);
  void send_done(const work::SendWqe& wqe, Status status);
  // Completions of this visit go to their queues.
  void publish(engine::Token& token);
  // The same, and sees whether SQD is reached.
  void visited(engine::Token& token);
  // Asks for Transport::on_deadline().
  void wake_at(engine::Token& token, Time when) { engine_.set_deadline(token, *this, when); }
  // Something was posted before the connection stands: the bring-up is told if it is a request.
  void await_connection(engine::Token& token);
  // The half-arrived message that a transport about to go holds a receive for.
  void keep_unfinished_receive();
  void enter_error(engine::Token& token);
  // A request was at fault, of a transport that goes on (InfiniBand's SQE): it and those behind it
  // complete, receives go on, until the program goes back to RTS.
  void enter_send_error();
  // There is no memory for the connection, which is gone or can be dropped.
  void give_up_connection(engine::Token& token);
  void raise_event(EventType type) { context().events().push({type, init_.owner}); }
  // Unless the program has not taken the last such event yet. True: it is told.
  bool raise_event_once(EventType type) {
    return context().events().push_once({type, init_.owner});
  }

 private:
  QueuePair(const QpInit& init, const QpTypeTraits& traits, engine::Engine& engine);

  // engine::EventHandler: the queue pair's own doorbell; it has no descriptor.
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token& token) override;
  void on_no_memory(engine::Token& token) override { give_up_connection(token); }
  void abandon_in_child() override {}

  void set_state(QpState s) {
    known_ |= s != QpState::reset && s != QpState::init;
    state_.store(s, std::memory_order_release);
  }
  Outcome<Ok> apply(engine::Token& token, const QpAttributes& a, uint32_t mask);
  void abandon_bring_up(engine::Token& token);
  void leave_service(engine::Token& token);
  void reset(engine::Token& token);
  void drop_connection(engine::Token& token, bool abort);
  void flush();
  void flush_sends();
  // Disconnecting: in error already, and the stream still has something to say.
  bool draining() const { return transport_->draining(); }
  void check_drained();
  void count_error(Status status);

  // Forgotten at RESET.
  struct SinceReset {
    bool cm_managed = false;
    bool completion_lost = false;  // its queue was full
    bool last_wqe_reported = false;
    bool received_in_rtr = false;
    // wr_id of the receive whose message a gone peer did not finish
    std::optional<uint64_t> unfinished_receive;
  };

  const QpInit init_;
  const QpTypeTraits& traits_;
  engine::Engine& engine_;
  Qpn number_;
  stats::QpBlock* counters_ = stats::nowhere().qp;  // the engine's holder writes

  std::atomic<QpState> state_{QpState::reset};
  Spinlock send_lock_;
  work::SendQueue send_queue_;
  Receives receives_;

  // Engine holder's.
  QpAttributes attributes_;
  MemoryAccess memory_{*this};
  CompletionBatch completions_;
  std::unique_ptr<Transport> transport_;
  ConnectionObserver* observer_ = nullptr;
  SinceReset since_reset_;
  bool known_ = false;  // a peer may have been told the number, and spoken to it
};

}  // namespace weft::verbs
