// The port number that an id of RDMA_PS_TCP keeps from bind() or resolve_address() on: to connect
// from, or to listen at.
#pragma once

#include "port/fd.h"
#include "port/tcp_listener.h"

namespace weft::cm {

// Engine holder. Functions that return int give 0 or an errno value, and say why where somebody
// else has the port.
class BoundPort {
 public:
  // Keeps the port of `at` on TCP. Where it is 0 the kernel chooses one that UDP has, too, for a
  // listener needs both.
  int bind(const port::Address& at, bool one_family);
  // On TCP alone.
  int bind_tcp(const port::Address& at, bool one_family);

  bool valid() const { return tcp_.valid(); }
  uint16_t number() const { return tcp_.local().port(); }
  // The program did not choose it.
  bool any() const { return any_; }

  // Takes connections on TCP from now on. `at`: for the sentence.
  int listen(const port::Address& at, int backlog, std::optional<uint8_t> type_of_service);
  port::TcpListener& tcp() { return tcp_; }
  // Another descriptor of the UDP socket of the same number, which is bound now where it was not
  // before. Errors: of bind(2), where somebody else has it; EMFILE.
  Result<port::Fd, port::SystemError> share_udp(const port::Address& at, bool one_family);
  // The number is kept on TCP alone from now on.
  void close_udp() { udp_.reset(); }
  // To connect from it by TCP.
  port::Fd take_socket() {
    udp_.reset();
    return tcp_.release();
  }
  void close() {
    tcp_.close();
    udp_.reset();
  }

 private:
  port::TcpListener tcp_;
  port::Fd udp_;  // where the kernel chose the number, or it was shared
  bool any_ = false;
};

}  // namespace weft::cm
