// Between a UdpSocket and the capture of the process: records the datagrams that pass, each as a
// packet of its own, also where the kernel takes or gives many at once. A socket has one only where
// the option trace is set.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "port/udp_socket.h"
#include "trace/packet.h"

namespace weft::port {

// Where there is no memory to record with nothing more is recorded.
class UdpTap {
 public:
  // Nothing when this process records nothing.
  static std::unique_ptr<UdpTap> of_process();
  explicit UdpTap(Capture& capture) : capture_(capture) {}
  UdpTap(const UdpTap&) = delete;
  UdpTap& operator=(const UdpTap&) = delete;

  static int64_t now();
  // What came of a call. Whole datagrams that the kernel has, and what it gave.
  void sent(int64_t at, const UdpSocket& socket, const UdpSocket::Train& train,
            const UdpSocket::Sent& sent);
  void received(int64_t at, const UdpSocket& socket, const UdpSocket::Received& received,
                Bytes buffer);

 private:
  struct Flow {
    int64_t at;
    trace::Direction direction;
    trace::Endpoint from;
    trace::Endpoint to;
    uint8_t tos;
  };
  Gid source_towards(const Address& to);
  uint16_t own_port(const UdpSocket& socket);
  void datagrams(const Flow& flow, std::span<const IoVec> pieces, size_t bytes, size_t segment);

  Capture& capture_;
  uint16_t own_port_ = 0;
  std::map<Gid, Gid> sources_;  // by destination, where the kernel chooses
  std::vector<IoVec> cut_;
};

}  // namespace weft::port
