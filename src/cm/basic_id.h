// What all Ids of rdma_cm(7) have in common: the machine of id_state.h, addresses, options, events
// and the end. Belongs to one engine at a time, its home; only the holder of that touches it. A
// listener's children begin at the listener's.
//
//   BasicId ── ConnectionId  RDMA_PS_TCP: RC over TCP, UC over UDP
//          \── DatagramId    RDMA_PS_UDP: UD, multicast
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "cm/event_channel.h"
#include "cm/id_state.h"
#include "cm/service.h"
#include "engine/engine.h"
#include "verbs/queue_pair.h"

namespace weft::cm {

// Above 400 lines with its source: each call needs state, addresses and channel.
class BasicId : public Id, protected engine::EventHandler {
 public:
  void set_owner(void* owner) override { owner_ = owner; }
  void* owner() const override { return owner_; }
  void set_device(verbs::Context& device) override { device_ = &device; }
  Addresses addresses() const override;

  int bind(const port::Address& at) override;
  bool on_device() const override;
  int resolve_address(const port::Address& source, const port::Address& destination) override;
  int resolve_route() override;
  int listen(int backlog) override;
  bool silent() const override;
  void prefer_home(bool) const override {}
  int set_option(const IdOption& option) override;
  int join_multicast(const port::Address& group, void* join) override;
  int leave_multicast(void* join) override;
  int migrate(Channel& to, uint64_t& taken) override;
  void await_acknowledgements(uint64_t taken) override;
  int destroy() override;

  // --- for the channel
  void event_taken();
  uint64_t events_taken() const;
  void event_acknowledged();
  // A request of this listener's is not in the channel any more.
  void request_left();

 protected:
  BasicId(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel, engine::Engine& home);
  ~BasicId() override = default;

  // --- the kinds. Engine holder.
  // Keeps the port of `at`, or one of the system's choice, and sets source_. 0, or an errno value.
  virtual int bind_socket(const port::Address& at) = 0;
  // source_ has an address and no port, for a peer that is known: takes one that the program can
  // ask for, if there is one to be had.
  virtual void take_port(engine::Token& token) = 0;
  // Of a connection that may be there already.
  virtual void keepalive_changed() {}
  virtual int start_listening(engine::Token& token, int backlog) = 0;
  // The Id is destroyed: ends what is under way.
  virtual void stop(engine::Token& token) = 0;
  // The program has taken so many requests that others may come.
  virtual void caught_up(engine::Token&) {}

  // engine::EventHandler, without a descriptor
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token&) override {}
  void on_doorbell(engine::Token& token) override { caught_up(token); }
  void abandon_in_child() override {}

  bool alive() const { return &adapter_ == verbs::Adapter::existing(); }
  engine::Hold hold_home() const;
  bool can(Step step) const { return after(state_, step).has_value(); }
  // The step has its place in the table.
  void take(Step step) { state_ = *after(state_, step); }
  // EINVAL, with a sentence.
  int wrong_state(Step step) const;
  int on_no_device(const char* call) const;
  int too_long(Step step, size_t private_data) const;
  int above(Step step, size_t private_data, size_t most, const char* limit) const;
  void report(engine::Token& token, EventKind kind, int status = 0,
              ConnectionParameters parameters = {}, std::optional<DatagramPeer> peer = {},
              void* join = nullptr);
  void set_under_way(bool on);
  // As programs know it: the device's own for a loopback address, which is no device's, as the
  // kernel's rdma_cm tells it.
  Gid gid_of(const Gid& address) const;
  // From here to `gid`. With a device only.
  verbs::AddressVector vector_to(const Gid& gid) const;

  // --- of a listener
  // Its child, which waits for the program's answer.
  void begin_request(BasicId& child, const port::Address& local, const port::Address& peer) const;
  // Tells the program. False: nobody hears it any more, and the child stays the caller's.
  bool announce(engine::Token& token, BasicId& child, std::vector<std::byte> private_data);
  bool crowded() const;

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
  std::optional<uint8_t> type_of_service_;
  std::optional<uint8_t> ack_timeout_;
  bool one_family_ = false;
  bool asks_again_ = true;  // where nobody listens
  bool only_rc_ = false;    // a listener has no UDP port
  Keepalive keepalive_;
  ConnectionParameters parameters_;  // of connect() or accept()
  bool under_way_ = false;

 private:
  std::unique_ptr<Event> spare_ = std::make_unique<Event>();  // where there is no memory for one
  mutable std::mutex counting_;
  std::condition_variable acknowledged_;
  uint64_t taken_ = 0;  // events that count for this Id and that the program has got
  uint64_t acknowledgements_ = 0;
};

}  // namespace weft::cm
