// What a UC session needs from the queue pair that it serves, besides what every session needs
// (work/consumer.h).
#pragma once

#include "work/consumer.h"

namespace weft::wdp {

// Implemented by the adapter. All calls come from the engine holder, from inside a call into the
// session. Of work::Consumer's:
//   send_done     may bring another status than success for a Read (retry_exceeded, remote_access)
//                 while the session goes on.
//   stream_ready  requests may go out from now on.
//   stream_ended  peer_closed: DREQ; lost: keepalives were not answered; local_error: a request
//                 of our own was at fault while the session was being closed. Nothing a peer's data
//                 can be ends a session.
class UcConsumer : public work::Consumer {
 public:
  // It was not used: it is the next one, for whoever takes from the same queue.
  virtual void give_back(work::TakenReceive receive) = 0;
  // The peer could not do what a Write or Send of ours asked for (ERR, spec/wdp-uc 3.9). An
  // asynchronous event; nothing has ended.
  virtual void remote_error(wire::TermError error) = 0;
  // A request was at fault; where it stands in the send queue yet it has its status. No other is
  // begun until UcSession::resume_requests(), and none of these will be answered: they are to be
  // flushed (InfiniBand's SQE). Receives and the peer's Reads go on.
  virtual void send_failed() = 0;
  // The session was not ready to send because of others that send to the same socket, and is to be
  // asked anew. Comes from inside a call into one of those others, or into this one.
  virtual void window_opened() = 0;
};

}  // namespace weft::wdp
