// Does anybody still have a port of a peer? The peer's kernel says when nobody has: of UDP by ICMP
// "port unreachable", of TCP by a reset. It says so to the socket that asked; one for many peers
// would hear it as errors of its own calls. So the question has a socket of its own.
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

  // The same of the TCP port, where a connection is begun. One that comes about is given up with
  // this. Kernels limit ICMP for each host that asks, and not resets.
  static Result<PortInquiry, SystemError> ask_by_tcp(const Address& there, const Address& from);

  int fd() const { return fd_.get(); }
  // Has the peer's kernel said that nobody has the port? Each answer is told once.
  bool closed();

 private:
  explicit PortInquiry(Fd fd) : fd_(std::move(fd)) {}
  static Result<Fd, SystemError> socket(const Address& there, const Address& from, int type);

  Fd fd_;
  bool refused_ = false;  // and not told yet
};

}  // namespace weft::port
