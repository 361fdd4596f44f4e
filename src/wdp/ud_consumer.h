// What the UD protocol needs from the queue pair that it serves.
#pragma once

#include "base/time.h"
#include "wdp/endpoint.h"
#include "work/consumer.h"

namespace weft::wdp {

// Where a request goes: what its address handle and its remote QPN and Q_Key say.
struct UdDestination {
  Path path;
  Qpn qpn;  // wire::kMulticastQpn for a group
  QKey q_key;
  // UDP payload that the way carries; in big mode up to 65507 (option ud_big).
  size_t room = 1472;

  // InfiniBand 10.2.5: a posted Q_Key with the topmost bit stands for the queue pair's `own`.
  QKey key(QKey own) const { return (q_key.value() & 0x80000000) != 0 ? own : q_key; }
};

class RdChannel;

// UDP payload that the interface takes, and whether the way to there does for certain.
struct PathRoom {
  size_t most = 0;
  bool certain = false;
};

// How a request travels (spec/wdp-rd 3).
struct UdCarriage {
  RdChannel* channel = nullptr;  // null: as a datagram of its own
  bool later = false;            // not known yet: the queue is called again
};

// A message that arrived and took a receive.
struct UdArrival {
  bool solicited = false;
  bool has_immediate = false;
  bool multicast = false;  // to a group that the queue pair is attached to
  bool reliable = false;   // by a channel, which waits for receives by itself
  uint32_t length = 0;     // the 40 bytes of the GRH included
  uint32_t immediate = 0;
  Qpn source;     // as the sender told it
  Endpoint from;  // as the kernel saw it: for the address handle of an answer (spec/wdp-ud 3.3)
};

// Implemented by the adapter. All calls come from the engine holder, from inside a call into the
// queue.
class UdConsumer {
 public:
  virtual ~UdConsumer() = default;
  virtual work::Memory& memory() = 0;
  virtual work::SendQueue& send_queue() = 0;
  // Good until the next call.
  virtual const UdDestination& destination(const work::SendWqe& w) = 0;
  // Only where UdParameters::client says that there are channels.
  virtual UdCarriage carriage(const UdDestination&, Time /*now*/) { return {}; }
  // The same for what its messages may share there.
  virtual PathRoom room(const Path&) { return {}; }
  // What was held back may go on: the queue wants its turn.
  virtual void wants_turn() {}
  virtual bool take_receive(work::Receive& out) = 0;
  // It was not used: it is the next one, for whoever takes from the same queue.
  virtual void give_back(work::TakenReceive receive) = 0;
  virtual void receive_done(const work::Receive& receive, work::Status status,
                            const UdArrival& arrival) = 0;
  virtual void send_done(const work::SendWqe& w, work::Status status) = 0;
  // A request was at fault and stands at the head of the send queue with its status. No other is
  // begun until UdQueue::resume(): they are to be flushed (InfiniBand's SQE).
  virtual void send_failed() = 0;
};

}  // namespace weft::wdp
