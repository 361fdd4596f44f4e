// How channels of a port come to be and go on: this end calls, the peer does (spec/wdp-rd 2.2), or
// one that is at rest is woken (spec/wdp-rd 2.5).
#pragma once

#include "wdp/port_answers.h"
#include "wdp/rd_channels.h"
#include "wdp/request_gate.h"
#include "wdp/wdp_socket_owner.h"

namespace weft::wdp {

// One for each port. Engine holder only. Where there is no memory (std::bad_alloc) a channel of the
// caller's is as before, and not one of the port's.
class ChannelCalls {
 public:
  ChannelCalls(Random& random, Demux& demux, RequestGate& gate, PortAnswers& answers)
      : random_(random), demux_(demux), gate_(gate), answers_(answers), channels_(demux) {}

  // Those that there are.
  RdChannels& channels() { return channels_; }
  const RdChannels& channels() const { return channels_; }

  // This end calls. The port keeps a pointer until RdChannels::remove().
  void connect(RdChannel& channel, const Path& path, Qpn destination, Time now);
  // A REQ for a channel came, of `size` bytes; channels are enabled here.
  void called(const wire::WdpCtl& req, size_t size, const UdReception& how, Time now,
              WdpSocketOwner& owner);
  // The one at rest goes on as one of the owner's; null if it has none.
  RdChannel* wake(const ChannelEnds& ends, Time now, WdpSocketOwner& owner);
  // The same as `channel`, for it has something to say.
  void resume(const ChannelEnds& ends, RdChannel& channel, Time now);

 private:
  void wake(const ChannelEnds& ends, RdChannel& channel, Time now);
  void enter(RdChannel& channel, SessionToken token, const Path& path);

  Random& random_;
  Demux& demux_;
  RequestGate& gate_;
  PortAnswers& answers_;
  RdChannels channels_;
};

}  // namespace weft::wdp
