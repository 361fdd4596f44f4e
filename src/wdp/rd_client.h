// Who sends messages through channels of reliable datagrams (rd_channel.h): a queue pair of UD or
// RD, or the stream of an RC connection over UDP.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace weft::wdp {

class RdChannel;

// Called by the engine's holder, from inside a call into a channel.
class RdClient {
 public:
  enum class End : uint8_t {
    delivered,    // the peer's socket has it, and will give it to its queue pair
    lost,         // nobody answers, or the peer has gone
    returned,     // the peer has no reliable datagrams: it was not sent
    undelivered,  // the channel has ended before it came, and another one may take it
  };
  virtual ~RdClient() = default;
  virtual void message_ended(uint64_t request, End end) = 0;
  // A channel that had no room for a message has it again.
  virtual void has_room() = 0;
  // Nothing comes or goes by this channel any more. No client comes or leaves from inside this
  // call.
  virtual void channel_ended(const RdChannel&) {}
  // It wanted to be asked (RdOutgoing::want_rest()).
  virtual void look_for_rest(Time) {}
};

}  // namespace weft::wdp
