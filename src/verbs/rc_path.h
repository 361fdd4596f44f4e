// The way of an RC queue pair to its peer. It is chosen here, when the queue pair connects: TCP, or
// memory that both ends share. Whoever moves the bytes is a driver of the engine, and the RDMAP
// stream above it is the same by every way.
#pragma once

#include "drive/stream_driver.h"
#include "verbs/transport.h"

namespace weft::verbs {

// What the two ends of the way belong to.
struct RcPathUsers {
  drive::StreamOwner& owner;
  work::Consumer& consumer;
  QueuePair& qp;
};

// The driver of the established stream, which its engine owns. It has not begun: start() does. The
// socket of `stream` is taken. Throws std::bad_alloc.
drive::StreamDriver& open_rc_path(engine::Token& token, EstablishedStream& stream,
                                  const RcPathUsers& users);

}  // namespace weft::verbs
