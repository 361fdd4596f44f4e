// What librdmacm.so.1 asks of the core, which lives in libibverbs.so.1. Virtual functions only, so
// that the library that asks has none of the core's code or state of its own. Words and rules are
// those of rdma_cm(7); the structs of <rdma/rdma_cma.h> stay in abi/.
//
// All functions may be called by any thread, but not two at once about one Id, as rdma_cm(7) has
// it; disconnecting is the exception. Those that return int give 0 or an errno value. EIO: the
// object came through fork(2) from the parent process.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/keepalive.h"
#include "port/address.h"
#include "verbs/types.h"

namespace weft::verbs {
class Context;
class QueuePair;
}  // namespace weft::verbs

namespace weft::cm {

class Id;

// The values are those of rdma_cm_event_type.
enum class EventKind : uint8_t {
  addr_resolved = 0,
  addr_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_response = 5,
  connect_error = 6,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10,
  device_removal = 11,
  multicast_join = 12,
  multicast_error = 13,
  addr_change = 14,
  timewait_exit = 15,
};

// The values are those of rdma_port_space.
enum class PortSpace : uint16_t { ipoib = 0x0002, tcp = 0x0106, udp = 0x0111, ib = 0x013f };

// Of a connection, as rdma_conn_param has it.
struct ConnectionParameters {
  uint8_t responder_resources = 0;  // inbound reads and atomics: IRD
  uint8_t initiator_depth = 0;      // outbound reads and atomics: ORD
  uint8_t retry_count = 7;
  uint8_t rnr_retry_count = 7;
  Qpn qpn;  // of a queue pair that the program connects by itself
  std::vector<std::byte> private_data;
};

// Where datagrams of a peer or a group go, as rdma_ud_param has it.
struct DatagramPeer {
  verbs::AddressVector address;
  Qpn qpn;
  QKey q_key;
};

// Something happened to `id`. Belongs to the thread that took it off its channel, until
// Service::acknowledge().
struct Event {
  EventKind kind{};
  int status = 0;  // 0, a negative errno, or a reason of InfiniBand's
  Id* id = nullptr;
  Id* listener = nullptr;  // connect_request: who listened; `id` is new
  ConnectionParameters parameters;
  std::optional<DatagramPeer> datagram;  // of Ids of PortSpace::udp
  void* join = nullptr;                  // multicast_join: what join_multicast() was told
};

// Where events are reported.
class Channel {
 public:
  // A descriptor that programs may poll and make non-blocking; readable while there are events.
  virtual int fd() const = 0;
  // The oldest event. Waits for one, unless the descriptor does not block: then EAGAIN. EINTR after
  // a signal whose handler ends calls (no SA_RESTART). EBADF where the program has closed the
  // descriptor.
  virtual int next(Event*& event) = 0;
  // Events that nobody took, and requests in them, are gone. Ids of the channel go on without being
  // heard. A thread that waits in next() hears nothing more, as one does that has just been given
  // an event and comes back for the next: it has up to 50 ms for that.
  virtual void destroy() = 0;

 protected:
  ~Channel() = default;
};

struct Addresses {
  port::Address source;
  port::Address destination;
  Gid source_gid;
  Gid destination_gid;
};

// The options of rdma_set_option(3).
struct IdOption {
  enum class Name : uint8_t {
    type_of_service,
    reuse_address,
    one_family,
    ack_timeout,
    asks_again,  // weft's own, as those behind it
    only_rc,
    keepalive
  };
  Name name{};
  int value = 0;
  Keepalive keepalive;
};

// One end of a connection, or a listener.
class Id {
 public:
  // The caller's own; nullptr for an Id that came with a connect_request.
  virtual void set_owner(void* owner) = 0;
  virtual void* owner() const = 0;
  // The device that the Id works with, once it is bound to an address of this host.
  virtual void set_device(verbs::Context& device) = 0;
  virtual Addresses addresses() const = 0;

  virtual int bind(const port::Address& at) = 0;
  // Bound to an address of this host, not to a wildcard; a connection without a peer not to a
  // loopback address either, unless the device's first address is one.
  virtual bool on_device() const = 0;
  // `source` may be an empty address. The answer comes as an event; errors are those of the
  // arguments.
  virtual int resolve_address(const port::Address& source, const port::Address& destination) = 0;
  virtual int resolve_route() = 0;
  virtual int listen(int backlog) = 0;
  // `pair` is in INIT and goes to RTS, where it waits for the connection; nullptr: the program sees
  // to its queue pair itself, gets connect_response instead of established, and calls establish().
  // Takes `parameters` as they are: no defaults.
  virtual int connect(verbs::QueuePair* pair, const ConnectionParameters& parameters) = 0;
  virtual int establish() = 0;
  // After connect_request. ECONNRESET: the peer is gone. Of PortSpace::udp `pair` says who the peer
  // is to send to; nullptr: the queue pair of `parameters`.
  virtual int accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) = 0;
  virtual int reject(Bytes private_data) = 0;
  virtual int disconnect() = 0;
  // Nothing is under way and nothing will come: a caller who waits for an event of disconnect()
  // would wait for ever.
  virtual bool silent() const = 0;
  // What ibv_modify_qp takes to bring a queue pair of this connection to `state`: INIT, RTR or RTS.
  virtual int queue_pair_attributes(verbs::QpState state, verbs::QpType type,
                                    verbs::QpAttributes& attributes, uint32_t& mask) const = 0;
  // The calling thread is about to make a queue pair for this Id, or has made it.
  virtual void prefer_home(bool on) const = 0;
  virtual int set_option(const IdOption& option) = 0;
  // PortSpace::udp alone: multicast_join comes, with `join`, which names the group from then on.
  virtual int join_multicast(const port::Address& group, void* join) = 0;
  virtual int leave_multicast(void* join) = 0;
  // Events that nobody took move along. `taken`: how many the program has got by then, for
  // await_acknowledgements().
  virtual int migrate(Channel& to, uint64_t& taken) = 0;
  // Until that many events are acknowledged, whichever they are.
  virtual void await_acknowledgements(uint64_t taken) = 0;
  // Ends what is under way. Waits until the events that somebody took are acknowledged.
  virtual int destroy() = 0;

 protected:
  ~Id() = default;
};

class Service {
 public:
  virtual int create_channel(std::shared_ptr<Channel>& channel) = 0;
  virtual int create_id(Channel& channel, PortSpace space, Id*& id) = 0;
  // Destroying the event's Id, for a connect_request its listener, waits for this. The channel may
  // be gone.
  virtual void acknowledge(Event* event) = 0;
  // The address from which this host would reach `destination`; an empty address when it cannot.
  virtual port::Address source_towards(const port::Address& destination) = 0;
  // A sentence for the user about something that is not there, once for each `what`.
  virtual void say_unsupported(const char* what) = 0;
  // Why `call` was refused. The first time for each call is worth a warning.
  virtual void say_refusal(const char* call, const char* why) = 0;

 protected:
  ~Service() = default;
};

// The one of this process.
Service& service();

}  // namespace weft::cm
