// The UDP socket of a doctor: sends and receives probes, one datagram at a time.
#pragma once

#include "doctor/probe.h"
#include "port/udp_socket.h"

namespace weft::doctor {

class ProbeSocket {
 public:
  ProbeSocket() = default;
  // Takes over a bound socket.
  explicit ProbeSocket(port::Fd fd);

  struct Remote {
    Gid address;
    uint16_t port = 0;
    uint32_t interface = 0;  // with a link-local address
    Gid local;               // this host's address
  };
  enum class Sent : uint8_t { yes, refused, no };  // `refused`: larger than the interface allows
  Sent send(const Probe& probe, size_t size, const Remote& to, bool fragments = false,
            uint8_t tos = 0);

  struct Received {
    Probe probe;
    size_t size = 0;
    Remote from;
    uint8_t tos = 0;
  };
  // Calls `take(Received)` for each datagram that has arrived. Drops what is no probe.
  template <class F>
  void receive(F&& take) {
    for (unsigned i = 0; i < kAtOnce; ++i) {
      const auto r = read_one();
      if (r.bytes == 0) return;
      split(r, take);
    }
  }
  int fd() const { return socket_.fd(); }
  uint16_t port() const { return socket_.local().port(); }

 private:
  static constexpr unsigned kAtOnce = 256;

  port::UdpSocket::Received read_one();
  template <class F>
  void split(const port::UdpSocket::Received& r, F&& take) {
    // The kernel may deliver several datagrams as one (UDP_GRO).
    const size_t step = r.segment != 0 ? r.segment : r.bytes;
    for (size_t at = 0; at < r.bytes && !r.truncated; at += step) {
      const auto bytes =
          std::span<const std::byte>(buffer_).subspan(at, std::min(step, r.bytes - at));
      if (const auto probe = Probe::parse(bytes)) {
        take(Received{*probe, bytes.size(), Remote{r.from.gid(), r.from.port(), r.interface, r.to},
                      r.tos});
      }
    }
  }

  port::UdpSocket socket_;
  port::Segmentation segmentation_;
  std::vector<std::byte> buffer_;
};

}  // namespace weft::doctor
