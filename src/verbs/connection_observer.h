// Who follows the life of a queue pair's connection: rdma_cm, or the bring-up by number.
#pragma once

#include "wdp/handshake.h"
#include "work/consumer.h"

namespace weft::engine {
class Token;
}

namespace weft::verbs {

// Engine holder calls.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void stream_ready(engine::Token& token) = 0;
  virtual void stream_ended(engine::Token& token, const work::StreamEnd& end) = 0;
  // The peer said no, or nothing; see failure() and peer(). The connection that was to be made goes
  // after this.
  virtual void call_failed(engine::Token&, const wdp::Handshake&) {}
  // The program destroys the queue pair. Last call.
  virtual void pair_gone(engine::Token& token) = 0;
};

}  // namespace weft::verbs
