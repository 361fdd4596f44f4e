// What rdma_cm gives a queue pair on its way to RTS.
#pragma once

#include <optional>

#include "cm/service.h"
#include "verbs/queue_pair.h"

namespace weft::cm {

// What is known of the connection.
struct PairSetup {
  ConnectionParameters parameters;
  verbs::AddressVector to_peer;
  uint8_t path_mtu = 0;  // as ibv_mtu
  std::optional<uint8_t> ack_timeout;
};

// The attributes for going to `state` (INIT, RTR, RTS), with what the type has to have set and
// nothing else.
void fill_attributes(const PairSetup& setup, verbs::QpState state,
                     const verbs::QpTypeTraits& traits, verbs::QpAttributes& attributes,
                     uint32_t& mask);

// Can it be connected by an id of RDMA_PS_TCP that is on a device? Says why not.
bool may_connect(const verbs::QueuePair& pair, bool on_device);
// Before there is a connection: what the program posts waits for it. rdma_cm's from now on. False:
// the queue pair refuses. Not an engine holder.
bool bring_to_rts(verbs::QueuePair& pair, const PairSetup& setup);

// What carries the bytes of a connection.
enum class Carrier : uint8_t { stream, datagrams };
// nullptr: the queue pair does not connect over datagrams.
verbs::DatagramCaller* caller_of(const verbs::QueuePair& pair);
// The queue pair that the program sees to itself, if the connection is for one: some programs name
// a number only to have one. Holder of its engine.
verbs::QueuePair* program_pair(verbs::Adapter& adapter, engine::Token& token, Qpn qpn,
                               Carrier carrier);

}  // namespace weft::cm
