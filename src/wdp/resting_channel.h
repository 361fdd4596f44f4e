// What is kept of a channel at rest (spec/wdp-rd 2.5): what it needs to go on where it was. All
// else is made anew with the next message.
#pragma once

#include "wdp/flow_table.h"
#include "wdp/rd_opening.h"
#include "wdp/rd_receive_path.h"
#include "wdp/rd_send_path.h"

namespace weft::wdp {

// Which channel it is, as both of its ends know it: the peer knows this end by its address.
struct ChannelEnds {
  Endpoint to;
  Gid from;
  static ChannelEnds of(const Path& path) { return {path.to, path.from}; }
  friend constexpr auto operator<=>(const ChannelEnds&, const ChannelEnds&) = default;
};

// Of one channel, besides its ends. A value type, with its members in an order without gaps: there
// may be very many.
struct RestingChannel {
  Path path(const ChannelEnds& ends) const {
    return {ends.to, ends.from, traffic_class, hop_limit, rate};
  }

  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  SessionToken token;      // of this end
  uint32_t questions = 0;  // that the peer was asked
  double rate = 0;
  RdPeer peer;
  RdSendPath::Resting sent;
  RdReceivePath::Resting came;
  FlowTable flows_out;
  FlowTable flows_in;
  Time active;  // when data came or went last
};

}  // namespace weft::wdp
