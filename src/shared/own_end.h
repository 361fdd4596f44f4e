// The ends of connections that this process has. Where a peer says that it is this process, the
// kernel lets this one pull from itself, whatever is asked for: the word of a hostile peer would
// give it memory that it may not read (docs/security.md). So it has to be true.
#pragma once

#include <cstdint>

#include "base/gid.h"
#include "port/tcp_stream.h"
#include "wire/host_offer.h"

namespace weft::shared {

// One end, from when the memory is there until it goes. Any thread.
class OwnEnd {
 public:
  // Of the connection, which is established. Throws std::bad_alloc.
  OwnEnd(const wire::HostOffer::Nonce& nonce, const port::TcpStream& tcp);
  ~OwnEnd();
  OwnEnd(const OwnEnd&) = delete;
  OwnEnd& operator=(const OwnEnd&) = delete;

  // Is the other end of the same connection, with the same memory, in this process, too?
  bool other_is_here() const;

 private:
  struct Socket {
    Gid address;
    uint16_t port = 0;
    friend bool operator==(const Socket&, const Socket&) = default;
  };
  static Socket socket_at(const port::Address& a) { return {a.gid(), a.port()}; }
  struct Ends {
    Socket local;
    Socket peer;
    friend bool operator==(const Ends&, const Ends&) = default;
  };
  class All;
  static All& all;

  const wire::HostOffer::Nonce nonce_;
  const Ends ends_;
  const int process_;
};

// Does the number name this process, or a thread of it?
bool is_this_process(int pid);

}  // namespace weft::shared
