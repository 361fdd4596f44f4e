// What a WdpSocket needs from the adapter: who is called there.
#pragma once

#include <optional>

#include "wdp/handshake.h"
#include "wdp/request_key.h"

namespace weft::wdp {

class RdChannel;
class UcConnection;

// Implemented by the adapter. Called from inside received() and tick(), and may call nothing of the
// socket then but what it says here.
class WdpSocketOwner {
 public:
  virtual ~WdpSocketOwner() = default;
  // Somebody calls the listener: its REQ is in `handshake.peer()`. Nothing: the socket keeps it
  // until accept() or reject(). UC and UD resolution come here, see peer().service.
  virtual std::optional<wire::RejReason> requested(const RequestKey& key,
                                                   const Handshake& handshake) = 0;
  // A queue pair calls a queue pair (spec/addressing 6.2). Which one answers, and with what; its
  // token is filled in by the socket. Where the one that is called calls itself, its own offer
  // counts.
  struct Callee {
    UcConnection* connection = nullptr;
    Offer offer;
  };
  virtual Result<Callee, wire::RejReason> called(const wire::WdpCtl& req, const Endpoint& from) = 0;
  // Another socket calls this one, which has channels (RdChannels::enable()), or one at rest is to
  // go on. The channel that is to do so; null: there is no room for one.
  virtual RdChannel* channel_called() { return nullptr; }
  // What ask() asked: established, then QPN and Q_Key are in `handshake.peer()`, or failed. The
  // socket forgets it after this.
  virtual void answered(SessionToken question, const Handshake& handshake) = 0;
};

}  // namespace weft::wdp
