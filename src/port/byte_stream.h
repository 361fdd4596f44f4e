// A connection that carries bytes in order, as the driver of an RC stream wants it: of TCP
// (tcp_stream.h), or of the simulator (sim/host/ports.h). How it came to be, and its options, are
// those of the class.
#pragma once

#include <span>

#include "base/io_vec.h"
#include "port/address.h"

namespace weft::port {

// Non-blocking. What the object itself keeps is const here, the connection is not. Used by the
// holder of one engine, or by one thread.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // What came of a transfer: bytes moved, or why none were.
  struct Transfer {
    size_t bytes = 0;
    int error = 0;  // errno; 0 also at the end of the stream
    bool would_block = false;
    bool end = false;  // peer's FIN (receive only)
  };
  virtual Transfer send(std::span<const IoVec> pieces) const = 0;
  virtual Transfer receive(std::span<const IoVec> pieces) const = 0;

  virtual void shut_write() const = 0;
  // Closes with a RST instead of a FIN.
  virtual void reset() = 0;
  virtual void close() = 0;

  // What was sent, and the peer's host has not acknowledged.
  struct Unacknowledged {
    bool any = false;
    unsigned resent = 0;  // times in a row that the oldest of it was sent again
  };
  virtual Unacknowledged unacknowledged() const = 0;
  virtual Address peer() const = 0;
  // By which the runtime watches it; -1 once it is closed.
  virtual int fd() const = 0;

 protected:
  ByteStream() = default;
  ByteStream(ByteStream&&) = default;
  ByteStream& operator=(ByteStream&&) = default;
};

}  // namespace weft::port
