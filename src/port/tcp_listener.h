// A listening TCP socket, non-blocking.
#pragma once

#include <optional>

#include "port/tcp_stream.h"

namespace weft::port {

class TcpListener {
 public:
  TcpListener() = default;
  // Port 0: the kernel's choice. With SO_REUSEADDR, for the sake of connections in TIME-WAIT
  // (spec/addressing 2.2).
  static Result<TcpListener, SystemError> listen(const Address& at, int backlog);
  // Binds without listening yet, so that the port is known and ours. The IPv6 wildcard means both
  // families, unless `only_ipv6`.
  static Result<TcpListener, SystemError> bind(const Address& at, bool only_ipv6 = false);
  Result<Ok, SystemError> start(int backlog) const;

  // Nothing when no connection waits, or when the process has no descriptor left (then it stays in
  // the queue).
  std::optional<TcpStream> accept() const;
  Address local() const { return Address::of_socket(fd()); }
  void set_type_of_service(uint8_t tos) const { port::set_type_of_service(fd_, tos); }
  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void close() { fd_.reset(); }
  // Of one that was bound alone: the socket, to connect from there.
  Fd release() { return std::move(fd_); }

 private:
  Fd fd_;
};

}  // namespace weft::port
