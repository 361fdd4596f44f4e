// Does anybody still have a UDP port of a peer? The peer's kernel says when nobody has (ICMP port
// unreachable). It says so to the socket that asked; one for many peers would hear it as errors of
// its own calls. So the question has a socket of its own, connected to that port.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "port/address.h"
#include "port/fd.h"
#include "port/tcp_stream.h"

namespace weft::port {

class PortInquiry {
 public:
  // Sends `question` to `there` from a free port of `from`, which may be an empty address. The
  // answer makes fd() readable. If the port is open, or ICMP is filtered, none comes.
  static Result<PortInquiry, SystemError> ask(const Address& there, const Address& from,
                                              Bytes question);

  int fd() const { return fd_.get(); }
  // Has the peer's kernel said that nobody has the port? Each answer is told once.
  bool closed() const;

 private:
  explicit PortInquiry(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace weft::port
