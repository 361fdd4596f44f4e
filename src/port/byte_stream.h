// A connection that carries bytes in order, as the driver of an RC stream wants it: of TCP
// (tcp_stream.h), or of the simulator (sim/host/ports.h). How it came to be, and its options, are
// those of the class.
#pragma once

#include <cerrno>
#include <span>

#include "base/bytes.h"
#include "base/io_vec.h"
#include "base/keepalive.h"
#include "port/address.h"
#include "port/peer_word.h"

namespace weft::port {

class SharedBytes;

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
  // When a peer that is silent is given up; nothing where the bytes go by no TCP connection.
  virtual void keep_alive(const Keepalive&) const {}
  virtual Address peer() const = 0;
  // By which the runtime watches it; -1 once it is closed.
  virtual int fd() const = 0;
  // What it can do besides where its bytes pass through memory of both ends; else nullptr.
  virtual SharedBytes* shared() { return nullptr; }

 protected:
  ByteStream() = default;
  ByteStream(ByteStream&&) = default;
  ByteStream& operator=(ByteStream&&) = default;
};

// Of a stream between two processes of one host whose bytes pass through memory that both have
// (spec/same-host). Its descriptor wakes up a side that waits, and tells of the end.
class SharedBytes {
 public:
  // `undecided`: the peer has not said yet whether it takes part; nothing can be sent. `tcp`: it
  // does not, and the stream is as any other.
  enum class Carrier : uint8_t { undecided, memory, tcp };
  virtual Carrier carrier() const = 0;

  // As ByteStream::send(). Pieces outside of `own` may be referred to: they stay as they are until
  // the peer has taken them or detach() has returned.
  virtual ByteStream::Transfer send(std::span<const IoVec> pieces, Bytes own) = 0;
  // Are such pieces outstanding?
  virtual bool refers_now() const = 0;
  // Does the peer ask for detach(), because it cannot reach them?
  virtual bool copies_wanted() const = 0;
  // What receive() fails with where the peer's memory is gone that the next bytes were to come
  // from.
  static constexpr int kSourceLost = EREMOTEIO;
  // The stream ends here, for memory is gone that was to be sent: the peer's receive() is to say
  // so.
  virtual void end_for_loss() = 0;
  // Refers to copies instead. Where memory is gone already, says where (nullptr: nowhere); the
  // stream cannot go on then.
  virtual const void* detach() = 0;

  // Without asking the kernel: would receive() find something, the end among it? Is there room,
  // where send() had not taken all?
  virtual bool has_input() const = 0;
  // While this has not changed, has_input() is false. Valid until the next call of another
  // function.
  virtual PeerWord input_word() const = 0;
  virtual bool has_room() = 0;
  // The descriptor is readable: takes what wakes up, and learns of the end.
  virtual void hear() = 0;
  // Has the peer ended the connection? The descriptor stays readable from then on.
  virtual bool ended() const = 0;
  // From now on the peer wakes this side up, once, when there is input, or room. False, and it does
  // not: it is there already.
  virtual bool await_input() = 0;
  virtual bool await_room() = 0;
  // This side asks has_input() by itself: no wake-up for input is needed.
  virtual void ignore() = 0;

 protected:
  ~SharedBytes() = default;
};

}  // namespace weft::port
