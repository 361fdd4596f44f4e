// What the protocol of an RD queue pair needs from the queue pair that it serves.
#pragma once

#include <optional>

#include "base/time.h"
#include "wdp/ud_consumer.h"

namespace weft::wdp {

// A message that arrived and took a receive.
struct RdDelivery {
  bool write = false;  // with immediate; else a Send
  bool solicited = false;
  std::optional<uint32_t> immediate;
  uint32_t length = 0;
  Qpn source;
  Endpoint from;
};

// Implemented by the adapter. All calls come from the engine holder.
class RdConsumer {
 public:
  virtual ~RdConsumer() = default;
  virtual work::Memory& memory() = 0;
  virtual work::SendQueue& send_queue() = 0;
  virtual const UdDestination& destination(const work::SendWqe& w) = 0;
  // The channel to there. None and not `later`: the peer has none.
  virtual UdCarriage carriage(const Path& to, Time now) = 0;
  virtual PathRoom room(const Path& to) = 0;
  // The queue pair has something to send, or to tell.
  virtual void wants_turn() = 0;
  virtual bool take_receive(work::Receive& out) = 0;
  // It was not used: it is the next one, for whoever takes from the same queue.
  virtual void give_back(work::TakenReceive receive) = 0;
  // If not, the next one that is posted calls RdQueue::posted().
  virtual bool has_receive() = 0;
  virtual void receive_done(const work::Receive& receive, work::Status status,
                            const RdDelivery& delivery) = 0;
  // The request at the head of the send queue is complete.
  virtual void send_done(const work::SendWqe& w, work::Status status) = 0;
};

}  // namespace weft::wdp
