// The UDP socket of a doctor, one datagram at a time.
#pragma once

#include "doctor/probe.h"
#include "port/udp_socket.h"

namespace weft::doctor {

class UdpEnd {
 public:
  UdpEnd() = default;
  // Takes over a bound socket.
  explicit UdpEnd(port::Fd fd);

  struct To {
    Gid address;
    uint16_t port = 0;
    uint32_t interface = 0;  // with a link-local address
    Gid from;                // of this host
  };
  enum class Sent : uint8_t { yes, refused, no };  // `refused`: larger than the interface allows
  Sent send(const Probe& probe, size_t size, const To& to, bool fragments = false, uint8_t tos = 0);

  struct Came {
    Probe probe;
    size_t size = 0;
    To from;  // and To::from is where it came to
    uint8_t tos = 0;
  };
  // What is there now, calls `take(Came)` for each. Others than doctors' are dropped.
  template <class F>
  void receive(F&& take) {
    for (unsigned i = 0; i < kAtOnce; ++i) {
      const auto r = read_one();
      if (r.bytes == 0) return;
      cut(r, take);
    }
  }
  int fd() const { return socket_.fd(); }
  uint16_t port() const { return socket_.local().port(); }

 private:
  static constexpr unsigned kAtOnce = 256;

  port::UdpSocket::Received read_one();
  template <class F>
  void cut(const port::UdpSocket::Received& r, F&& take) {
    // A train comes as one.
    const size_t step = r.segment != 0 ? r.segment : r.bytes;
    for (size_t at = 0; at < r.bytes && !r.truncated; at += step) {
      const auto bytes =
          std::span<const std::byte>(buffer_).subspan(at, std::min(step, r.bytes - at));
      if (const auto probe = Probe::parse(bytes)) {
        take(Came{*probe, bytes.size(), To{r.from.gid(), r.from.port(), r.interface, r.to}, r.tos});
      }
    }
  }

  port::UdpSocket socket_;
  port::Segmentation segmentation_;
  std::vector<std::byte> buffer_;
};

}  // namespace weft::doctor
