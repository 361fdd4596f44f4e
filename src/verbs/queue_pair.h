// A queue pair: the place where verbs meet the protocol. It owns its queues and attributes, lends
// them to its transport, and turns what that says into completions and events.
//
//   post_send --> SendQueue ---\               /--> CompletionQueue
//   post_recv --> ReceiveQueue --> Transport ---> state, events
//                                  (RC: a TCP stream; UC: a WDP connection; UD: datagrams)
// What its type allows is a row of qp_types.h.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/spinlock.h"
#include "engine/engine.h"
#include "rdmap/consumer.h"
#include "rdmap/send_queue.h"
#include "rdmap/stream.h"
#include "stats/blocks.h"
#include "verbs/adapter.h"
#include "verbs/address_handle.h"
#include "verbs/completion_queue.h"
#include "verbs/protection_domain.h"
#include "verbs/qp_types.h"
#include "verbs/receive_queue.h"
#include "verbs/shared_receive_queue.h"
#include "verbs/transport.h"
#include "wdp/handshake.h"

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
  void* owner = nullptr;  // the ABI's object, for events
};

// A send request as a program states it. Pointers are read during the call only.
struct SendRequest {
  uint64_t wr_id = 0;
  rdmap::Operation operation{};
  bool signaled = false;
  bool fence = false;
  bool solicited = false;
  bool inlined = false;  // copy the data of `segments` now; their lkeys are not looked at
  const LocalSegment* segments = nullptr;
  uint32_t count = 0;
  Stag remote_stag;  // or the STag to invalidate
  TaggedOffset remote_to;
  uint32_t immediate = 0;  // the four bytes on the wire as a big-endian number
  uint64_t compare_add = 0;
  uint64_t swap = 0;
  // UD alone, and there it must be: where it goes. Read during the call only.
  const AddressHandle* handle = nullptr;
  Qpn remote_qpn;
  QKey remote_q_key;
};

// Why a queue pair does not take a request: the rule, and the number beside its limit.
struct PostFault {
  enum class Rule : uint8_t {
    none,
    full,              // `asked` and `limit`: requests
    state,             // `asked`: the QpState
    segments,          // their number, and max_send_sge or max_recv_sge
    message_length,    // bytes
    inline_length,     // bytes, and max_inline
    inline_operation,  // what a response comes to cannot be inline
    operation,         // of another type of queue pair
    atomic_length,     // bytes, and those that an atomic needs
    shared_receives,   // they are the shared queue's
  };
  Rule rule = Rule::none;
  uint64_t asked = 0;
  uint64_t limit = 0;
};

// What a bind asks for (memory windows). `window` 0 length unbinds.
struct BindRequest {
  WindowId window;
  Stag old_stag;
  Stag fresh_stag;
  Stag lkey;  // of the region
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;
  bool type_2 = false;
};

// Who follows the life of a queue pair's connection: the connection manager. Engine holder calls.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void stream_ready(engine::Token& token) = 0;
  virtual void stream_ended(engine::Token& token, const rdmap::StreamEnd& end) = 0;
  // The peer said no, or nothing; see failure() and peer(). The connection that was to be made goes
  // after this.
  virtual void call_failed(engine::Token&, const wdp::Handshake&) {}
  // The program destroys the queue pair. Last call.
  virtual void pair_gone(engine::Token& token) = 0;
};

class QueuePair final : private rdmap::Memory, private engine::EventHandler {
 public:
  // Errors: invalid (limits), no_memory, not_supported (type). On success the limits are those
  // granted.
  static Outcome<std::unique_ptr<QueuePair>> create(QpInit& init);
  ~QueuePair() override;

  Qpn number() const { return number_; }
  const QpTypeTraits& traits() const { return traits_; }
  Context& context() const { return context_; }
  ProtectionDomain& pd() const { return pd_; }
  engine::Engine& engine() const { return engine_; }
  CompletionQueue& send_cq() const { return send_cq_; }
  CompletionQueue& recv_cq() const { return recv_cq_; }
  SharedReceiveQueue* srq() const { return srq_; }
  const QpLimits& limits() const { return limits_; }
  bool signal_all() const { return signal_all_; }
  void* owner() const { return owner_; }

  // --- posting; any thread
  // A list of requests under one lock: add() until one fails, then commit() what was added (or drop
  // it).
  class Posting {
   public:
    explicit Posting(QueuePair& qp);
    ~Posting();  // drops what was not committed
    Posting(const Posting&) = delete;
    Posting& operator=(const Posting&) = delete;
    // Errors: invalid (state, too many segments, inline too long, message too long), no_memory
    // (queue full); fault() says more.
    Outcome<Ok> add(const SendRequest& request);
    Outcome<Ok> add_bind(const BindRequest& bind, uint64_t wr_id, bool signaled, bool fence);
    Outcome<Ok> add_local_invalidate(Stag stag, uint64_t wr_id, bool signaled, bool fence);
    void commit();
    // The first half of it, for callers with locks of their own: true when QueuePair::ring() is due
    // after they let go.
    bool publish();
    // Of the last request that was refused.
    const PostFault& fault() const { return fault_; }

   private:
    Failure<Errc> refuse(const PostFault& fault);
    rdmap::SendWqe* reserve();
    QueuePair& qp_;
    PostFault fault_;
    uint32_t added_ = 0;
    bool locked_ = true;
  };
  void ring() { engine_.ring(*this); }
  // Errors: invalid (state, srq, too many segments), no_memory (full); receive_fault() says more.
  Outcome<Ok> post_receive(const ReceiveRequest* requests, size_t count, size_t& posted);
  // Of a receive that was refused.
  PostFault receive_fault(uint32_t segments) const;

  // --- control; any thread
  // As ibv_modify_qp. Errors: invalid; no_memory (then it is in error where it had left INIT).
  Outcome<Ok> modify(const QpAttributes& attributes, uint32_t mask);
  // As ibv_query_qp: what was set, and of a connection what was agreed on.
  QpAttributes query();
  // UD: hears what comes to this multicast group, or no longer. Errors: invalid (type, no group,
  // not attached), system.
  Outcome<Ok> attach_multicast(const Gid& mgid);
  Outcome<Ok> detach_multicast(const Gid& mgid);
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
  bool cm_managed() const { return cm_managed_; }
  void set_cm_managed(engine::Token&) { cm_managed_ = true; }

  // --- for the shared receive queue
  void ring_later() { engine_.enqueue(*this); }

  // --- for its transport; engine holder
  Adapter& adapter() const { return adapter_; }
  stats::QpBlock& counters() const { return *counters_; }
  ConnectionObserver* observer() const { return observer_; }
  rdmap::Memory& memory() { return *this; }
  rdmap::SendQueue& send_queue() { return send_queue_; }
  bool take_receive(rdmap::Receive& out);
  // None is left; the next post will ring.
  bool out_of_receives();
  void receive_done(const rdmap::Receive& r, Status status, const rdmap::Arrival& a);
  // The same, with all that a completion can say; `qpn` is filled in.
  void receive_done(Completion completion, bool solicited);
  void send_done(const rdmap::SendWqe& wqe, Status status);
  Status execute(rdmap::SendWqe& wqe);
  // Messages of UC and UD; RC's stream counts by itself.
  void count_sent(const rdmap::SendWqe& wqe, Status status);
  void count_received(stats::Kind kind, uint32_t bytes, Status status);
  // Completions of this visit go to their queues.
  void publish(engine::Token& token);
  // The same, and sees whether SQD is reached.
  void visited(engine::Token& token);
  // Asks for Transport::on_deadline().
  void wake_at(engine::Token& token, Time when) { engine_.set_deadline(token, *this, when); }
  // The half-arrived message that a transport about to go holds a receive for.
  void keep_unfinished_receive();
  void enter_error(engine::Token& token);
  // A request of UC or UD was at fault (InfiniBand's SQE): it and those behind it complete,
  // receives go on, until the program goes back to RTS.
  void enter_send_error();
  // There is no memory for the connection, which is gone or can be dropped.
  void give_up_connection(engine::Token& token);
  void raise_event(EventType type);
  // Unless the program has not taken the last such event yet. True: it is told.
  bool raise_event_once(EventType type);

 private:
  QueuePair(const QpInit& init, const QpTypeTraits& traits, engine::Engine& engine);

  // rdmap::Memory
  Result<std::byte*, rdmap::MemoryFault> local(Stag lkey, uint64_t address, uint64_t length,
                                               rdmap::Access need) override;
  Result<std::byte*, rdmap::MemoryFault> receive_buffer(Stag lkey, uint64_t address,
                                                        uint64_t length) override;
  Result<std::byte*, rdmap::MemoryFault> remote(Stag stag, TaggedOffset to, uint64_t length,
                                                rdmap::Access need) override;
  Result<Ok, rdmap::MemoryFault> invalidate(Stag stag) override;
  // engine::EventHandler: the queue pair's own doorbell; it has no descriptor.
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token& token) override;
  void on_no_memory(engine::Token& token) override { give_up_connection(token); }
  void abandon_in_child() override {}

  // Does anybody wait for a receive? Then a post rings.
  // Both sides read and write the flag in one step, so that either the one who waits sees the
  // receive, or the one who posts sees that he waits.
  bool receive_wanted() {
    bool wanted = false;
    return !receive_wanted_.compare_exchange_strong(wanted, false) || state() == QpState::err;
  }
  Result<std::byte*, rdmap::MemoryFault> local_in(const ProtectionDomain& pd, Stag lkey,
                                                  uint64_t address, uint64_t length,
                                                  uint32_t need) const;
  Status bind(const BindRequest& b);
  bool supports(const SendRequest& r) const;
  PostFault fault_of(const SendRequest& r, uint64_t length) const;
  void set_state(QpState s) {
    known_ |= s != QpState::reset && s != QpState::init;
    state_.store(s, std::memory_order_release);
  }
  Outcome<Ok> apply(engine::Token& token, const QpAttributes& a, uint32_t mask);
  Outcome<Ok> check_attributes(const QpAttributes& a, uint32_t mask) const;
  bool check_families(const AddressVector& av) const;
  void store_attributes(const QpAttributes& a, uint32_t mask);
  void leave_service(engine::Token& token);
  void reset(engine::Token& token);
  void drop_connection(engine::Token& token, bool abort);
  void flush();
  void flush_sends();
  // Disconnecting: in error already, and the stream still has something to say.
  bool draining() const { return transport_->draining(); }
  void check_drained();
  void count_error(Status status);

  Context& context_;
  Adapter& adapter_;
  engine::Engine& engine_;
  ProtectionDomain& pd_;
  CompletionQueue& send_cq_;
  CompletionQueue& recv_cq_;
  SharedReceiveQueue* const srq_;
  const QpTypeTraits& traits_;
  const QpLimits limits_;
  const bool signal_all_;
  void* const owner_;
  Qpn number_;
  stats::QpBlock* counters_ = stats::nowhere().qp;  // the engine's holder writes

  std::atomic<QpState> state_{QpState::reset};
  Spinlock send_lock_;
  Spinlock receive_lock_;
  std::atomic<bool> receive_wanted_{false};  // a message came and found no receive
  rdmap::SendQueue send_queue_;
  ReceiveQueue receive_queue_;

  // Engine holder's.
  QpAttributes attributes_;
  std::unique_ptr<Transport> transport_;
  ConnectionObserver* observer_ = nullptr;
  std::optional<uint64_t>
      unfinished_receive_;          // wr_id of the receive whose message a gone peer did not finish
  bool completion_lost_ = false;    // its queue was full
  bool lost_room_ = false;          // in this visit
  bool last_wqe_reported_ = false;  // since RESET
  bool received_in_rtr_ = false;    // since RESET
  bool cm_managed_ = false;
  bool known_ = false;  // a peer may have been told the number, and spoken to it
  void add(std::vector<CompletionQueue::Entry>& to, CompletionQueue& queue,
           const CompletionQueue::Entry& entry);

  std::vector<CompletionQueue::Entry> sent_;  // completions of this visit
  std::vector<CompletionQueue::Entry> received_;
};

}  // namespace weft::verbs
