// A port that carries the datagrams of many peers, as the driver of WDP wants it: a UDP socket
// (udp_socket.h), or an end of a simulated path (sim/host/ports.h). Trains of equal datagrams leave
// in one call and may arrive in one (design/17).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/io_vec.h"
#include "base/time.h"
#include "port/address.h"

namespace weft::port {

// Whether the kernel cuts trains for a destination: found out by trying, and asked again after a
// while, for routes and devices change. One per peer, or one for all. Value type.
class Segmentation {
 public:
  bool worth_trying() { return !refused_ || ++trains_since_ % kRetryEvery == 0; }
  void worked() { refused_ = false; }
  void failed() { refused_ = true; }
  bool refused() const { return refused_; }

 private:
  static constexpr uint32_t kRetryEvery = 4096;
  bool refused_ = false;
  uint32_t trains_since_ = 0;
};

// Non-blocking. Holder of the engine alone, but for what is const.
class DatagramPort {
 public:
  // In one call: datagrams, and bytes of all (above these the kernel cuts them without help of the
  // device, and the receiver gets them one by one; spec/wdp 2.7).
  static constexpr size_t kMostSegments = 64;
  static constexpr size_t kMostBytes = 65'493;
  static constexpr size_t kMostBytesIpv6 = 65'473;

  virtual ~DatagramPort() = default;
  DatagramPort(const DatagramPort&) = delete;
  DatagramPort& operator=(const DatagramPort&) = delete;

  // What send() is to do. Refers to everything; the call copies.
  struct Train {
    const Address* to = nullptr;
    Gid from;                // of this host; zero: the kernel's choice
    uint32_t interface = 0;  // with a link-local `from`
    uint8_t tos = 0;         // type of service or traffic class, with the ECN bits
    uint8_t hop_limit = 0;   // 0: the kernel's choice
    bool fragments = false;  // IP may cut its datagrams up (option ud_big); else DF is set
    size_t segment = 0;      // bytes of each datagram but the last, which may be shorter
    std::span<const IoVec> pieces;
  };
  struct Sent {
    size_t bytes = 0;          // of whole datagrams that the kernel has
    bool would_block = false;  // the rest has no room: wait until the socket is writable
    bool too_big = false;      // the next one is larger than the path allows (EMSGSIZE)
    int error = 0;             // errno of anything else; a datagram is gone and the socket is well
  };
  virtual Sent send(const Train& train, Segmentation& segmentation) = 0;

  // What one call brought: a datagram, or a train of them from one peer.
  struct Received {
    size_t bytes = 0;    // 0 and would_block: nothing there
    size_t segment = 0;  // bytes of each datagram but the last
    bool would_block = false;
    bool truncated = false;  // larger than the buffer; its end is lost
    int error = 0;
    Address from;
    Gid to;                  // the local address that it was sent to
    uint32_t interface = 0;  // that it came in by
    uint8_t tos = 0;
    uint8_t hop_limit = 0;  // 0: the kernel did not tell
  };
  virtual Received receive(MutableBytes buffer) = 0;

  // In two steps, for a driver that wants a large datagram where it belongs instead of in a buffer:
  // look() shows how the next one or the next train begins, and leaves it there; `bytes` is the
  // size of all. Nothing: this port cannot, as where faults or records are on. receive_into() takes
  // it, cut up over `pieces`, and tells of it what look() did not: how many bytes there are now.
  virtual std::optional<Received> look(MutableBytes front) = 0;
  virtual Received receive_into(std::span<const IoVec> pieces) = 0;

  // Datagrams may be held back on purpose (option fault, docs/faults.md). send() and receive() see
  // to those that are due; a driver that calls neither for a while sets a deadline for this, and
  // then calls receive(). Never: none are.
  virtual Time held_until() const = 0;

  struct Losses {
    uint32_t overruns = 0;      // that the port had no room for since it was made; it wraps
    uint32_t gro_switches = 0;  // times that the kernel was told to join trains, or not; it wraps
  };
  // A system call.
  virtual Losses losses() const = 0;

  // What does not change while it is open.
  struct Properties {
    int fd = -1;                // by which the runtime watches it
    bool ipv6 = false;          // addresses are those of IPv6, mapped ones for IPv4
    size_t receive_buffer = 0;  // bytes of the kernel's own accounting (twice what can be used)
  };
  virtual Properties properties() const = 0;
  virtual void close() = 0;

 protected:
  DatagramPort() = default;
  DatagramPort(DatagramPort&&) = default;
  DatagramPort& operator=(DatagramPort&&) = default;
};

}  // namespace weft::port
