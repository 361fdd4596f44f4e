// How two queue pairs that know each other's GID and number come together (spec/addressing 3 to 6).
// What does it stands above verbs.
#pragma once

#include "engine/event_handler.h"
#include "verbs/types.h"
#include "wdp/wdp_socket.h"

namespace weft::verbs {

class QueuePair;
struct AdapterPort;

// Engine holder, all of them.
class BringUp {
 public:
  virtual ~BringUp() = default;
  // Before the first of its numbers is given out. Where it throws, it will be told again.
  virtual void port_opened(engine::Token& token, AdapterPort& port) = 0;
  // The queue pair came to RTR or RTS: connect it.
  virtual void state_changed(engine::Token& token, QueuePair& qp) = 0;
  // It has a request that waits for the connection. May be told again and again.
  virtual void request_waits(engine::Token& token, QueuePair& qp) = 0;
  // It is reset, in error or about to be destroyed: stop trying.
  virtual void abandon(engine::Token& token, QueuePair& qp) = 0;
  // A peer calls it by a datagram: see wdp::WdpSocketOwner.
  virtual Result<wdp::WdpSocketOwner::Callee, wire::RejReason> called(
      engine::Token& token, QueuePair& qp, const wire::WdpCtl& req, const wdp::Endpoint& from) = 0;
  // A peer's RC connection begins through a channel of the port's, or does not after all.
  virtual void start_came(engine::Token& token, AdapterPort& port, const wdp::RdStart& start) = 0;
};

}  // namespace weft::verbs
