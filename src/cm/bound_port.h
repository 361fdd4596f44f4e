// The port number that an id of RDMA_PS_TCP keeps between bind() or resolve_address() and its use:
// to connect from, or to listen at.
#pragma once

#include "port/fd.h"
#include "port/tcp_listener.h"

namespace weft::cm {

// Engine holder. Functions that return int give 0 or an errno value, and say why.
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
  port::TcpListener take_listener() { return std::move(tcp_); }
  // The UDP socket of the same number, which is bound now where it was not before. Invalid where
  // somebody else has it, and says so.
  port::Fd take_udp(const port::Address& at, bool one_family);
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
  port::Fd udp_;  // where the kernel chose the number
  bool any_ = false;
};

}  // namespace weft::cm
