// One TCP connection, non-blocking. The only thing under an RC stream that knows the kernel.
#pragma once

#include <optional>
#include <span>

#include "base/io_vec.h"
#include "base/result.h"
#include "base/time.h"
#include "port/byte_stream.h"
#include "port/faulty_stream.h"
#include "port/fd.h"
#include "port/system_error.h"
#include "port/tcp_tap.h"

namespace weft::port {

// The byte for the IP header (RFC 2474), in the packets to come of a TCP socket. Accepted ones have
// that of their listener.
void set_type_of_service(const Fd& socket, uint8_t tos);

class TcpStream final : public ByteStream {
 public:
  TcpStream() = default;
  // Takes over a connected socket, as from TcpListener.
  explicit TcpStream(Fd fd);

  // Starts to connect. `from`: source address, or one that is any(); port 0 means the kernel's
  // choice. `tos` as for set_type_of_service(). The socket turns writable when the outcome is
  // known: ask connect_result().
  static Result<TcpStream, SystemError> connect(const Address& from, const Address& to,
                                                std::optional<uint8_t> tos = {});
  // The same with a socket that is bound already.
  static Result<TcpStream, SystemError> connect_from(Fd bound, const Address& to,
                                                     std::optional<uint8_t> tos = {});
  // 0 when connected, else the errno.
  int connect_result() const;

  Transfer send(std::span<const IoVec> pieces) const override;
  // From now on no segment has the end of what one call sends and the beginning of the next one's.
  void keep_calls_apart() { calls_apart_ = true; }
  Transfer receive(std::span<const IoVec> pieces) const override;

  void shut_write() const override;
  void reset() override;
  void close() override {
    hooks_.reset();
    fd_.reset();
  }

  // The kernel's cookie of the network namespace that the socket is in, alike for all sockets
  // there; nothing where the kernel tells none (before Linux 5.14).
  std::optional<uint64_t> network_namespace() const;
  Address local() const { return Address::of_socket(fd()); }
  Address peer() const override;
  // TCP payload per segment now, for sizing FPDUs towards peers that want one per segment.
  uint32_t emss() const;
  void set_type_of_service(uint8_t tos) const { port::set_type_of_service(fd_, tos); }
  // Leaves bbr where that helps: same host or a round trip under a millisecond (design/16).
  void choose_congestion_control() const;
  // From now on send() takes nothing while so many bytes wait in the socket for the peer's window
  // or the congestion window (TCP_NOTSENT_LOWAT). What is on its way is not counted. design/20.
  void limit_unsent(int bytes) const;

  // Two system calls.
  Unacknowledged unacknowledged() const override;

  // From now on transfers fail with ETIMEDOUT where the peer is silent as that says. It is valid.
  void keep_alive(const Keepalive& keepalive) const override;

  int fd() const override { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  // Is what passes recorded, or disturbed on purpose?
  bool hooked() const { return hooks_ != nullptr; }
  bool recorded() const { return tap() != nullptr; }

  // As if the option fault said so; for tests. A spec of nothing ends it.
  void inject(const FaultSpec& spec);

 private:
  // What few processes have: where it is recorded what passes, and faults on purpose.
  struct Hooks {
    std::unique_ptr<TcpTap> tap;
    std::unique_ptr<FaultyStream> faults;
  };
  static std::unique_ptr<Hooks> hooks_of_process();
  TcpTap* tap() const { return hooks_ ? hooks_->tap.get() : nullptr; }
  Transfer send_now(std::span<const IoVec> pieces) const;
  Transfer receive_now(std::span<const IoVec> pieces) const;
  Transfer hooked(trace::Direction direction, std::span<const IoVec> pieces) const;
  Transfer faulty(trace::Direction direction, std::span<const IoVec> pieces) const;
  Transfer tapped(trace::Direction direction, std::span<const IoVec> pieces) const;

  Fd fd_;
  bool calls_apart_ = false;
  std::unique_ptr<Hooks> hooks_;
};

}  // namespace weft::port
