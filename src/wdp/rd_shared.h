// What a channel needs from its socket, where the other channels and the queue pairs are, and from
// who drives it.
#pragma once

#include <memory>

#include "wdp/flow_order.h"
#include "wdp/rd_budget.h"
#include "wdp/rd_client.h"
#include "wdp/sent_log.h"
#include "wire/wdp_messages.h"

namespace weft::wdp {

// What all channels of a socket share. Implemented by RdChannels. Engine holder only.
class RdShared {
 public:
  virtual ~RdShared() = default;
  // False: there is no receive, and the message is to wait. What is dropped counts as taken.
  virtual bool take(RdChannel& channel, const RdArrival& arrival, Bytes payload) = 0;
  // What the peer says of a message to it (spec/wdp-rd 6.4).
  virtual void answered(RdChannel& channel, const wire::WdpResponse& response) = 0;
  // Null: it is gone.
  virtual RdClient* client(ClientId id) = 0;
  // Messages of the channel wait for a receive of this queue pair.
  virtual void waits(RdChannel& channel, uint8_t index) = 0;
  // The peer has no channels.
  virtual void refused(const Path& path, Time now) = 0;
  // Of the socket.
  virtual const std::shared_ptr<RdBudget>& budget() = 0;
  // A datagram, or a message of it.
  virtual void dropped(wire::WdpDrop why) = 0;
  // It carries nothing any more, and its clients have heard of what is lost.
  virtual void ended(RdChannel& channel) = 0;
};

// Of one channel. Engine holder only.
class RdChannelOwner {
 public:
  virtual ~RdChannelOwner() = default;
  // The channel may have something to say, another deadline, another state.
  virtual void reached() = 0;
  // So many bytes have come in messages that share a datagram.
  virtual void small_messages_came(size_t) {}
};

}  // namespace weft::wdp
