// A UDP socket that carries the datagrams of many peers: trains of equal datagrams leave in one
// system call and arrive in one, where kernel, route and device can do that (UDP_SEGMENT, UDP_GRO;
// design/17).
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fault_spec.h"
#include "base/io_vec.h"
#include "base/result.h"
#include "base/time.h"
#include "port/address.h"
#include "port/fd.h"
#include "port/tcp_stream.h"
#include "port/udp_tuning.h"

namespace weft::port {

class Capture;
class FaultLog;
class FaultyDatagrams;
class UdpTap;

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

// Holder of the engine alone, but for what is const.
class UdpSocket {
 public:
  // In one system call: datagrams, and bytes of all (above these the kernel cuts them without help
  // of the device, and the receiver gets them one by one; spec/wdp 2.7).
  static constexpr size_t kMostSegments = 64;
  static constexpr size_t kMostBytes = 65'493;
  static constexpr size_t kMostBytesIpv6 = 65'473;

  UdpSocket();
  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket();
  // Takes over a socket that is bound; IPv4, or IPv6 that may be dual-stack. Asks for
  // `buffer` bytes in both directions; the kernel's limits may give less.
  UdpSocket(Fd fd, size_t buffer);

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
  Sent send(const Train& train, Segmentation& segmentation) {
    if (hooks_) [[unlikely]]
      return send_hooked(train, segmentation);
    return send_now(train, segmentation);
  }

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
  Received receive(MutableBytes buffer) {
    if (hooks_) [[unlikely]]
      return receive_hooked(buffer);
    return receive_now(buffer);
  }

  // In two steps, for who wants a large datagram where it belongs instead of in a buffer: look()
  // shows how the next one or the next train begins, and leaves it there; `bytes` is the size of
  // all. receive_into() takes it, cut up over `pieces`, and tells of it what look() did not: how
  // many bytes there are now. Not where faults or records are on.
  bool can_look() const { return !hooks_; }
  Received look(MutableBytes front);
  Received receive_into(std::span<const IoVec> pieces);

  // Faults on purpose (option fault, docs/faults.md) may hold datagrams back. send() and receive()
  // see to those that are due; who calls neither for a while sets a deadline for held_until(),
  // never without faults, and then calls release_held() and receive().
  Time held_until() const;
  void release_held();
  // As if the options fault, fault_log and trace said so; for tests.
  void inject(const FaultSpec& spec, FaultLog* log = nullptr);
  void record(Capture& capture);

  // Datagrams that the socket had no room for since it was made, or that were damaged on their way
  // (SO_MEMINFO); it wraps. A system call: to be told with each datagram (SO_RXQ_OVFL) costs more.
  uint32_t overruns() const;
  // Bytes that the kernel really granted, of its own accounting (twice what can be used).
  size_t receive_buffer() const { return receive_buffer_; }
  // Does this kernel put trains together on their way in?
  bool gathers() const { return gathers_; }
  // How often it was told to, or not to, since the socket was made; it wraps.
  uint32_t gro_switches() const { return gro_switches_; }

  // As this socket wants it; send() takes any, and this one without converting it.
  Address address_of(const Gid& gid, uint16_t port, uint32_t scope) const {
    return family_ == AF_INET6 ? Address::from_gid_as_ipv6(gid, port, scope)
                               : Address::from_gid(gid, port, scope);
  }

  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void close() { fd_.reset(); }
  Address local() const { return Address::of_socket(fd()); }

 private:
  friend class FaultyDatagrams;
  struct Control;
  // What few processes have: faults on purpose, and where it is recorded what passes.
  struct Hooks;
  Hooks& hooks();
  Sent send_now(const Train& train, Segmentation& segmentation);
  Received receive_now(MutableBytes buffer);
  Received receive_pieces(std::span<const IoVec> pieces, int flags);
  bool take(msghdr& header, int flags, Received& r);
  Sent send_hooked(const Train& train, Segmentation& segmentation);
  Received receive_hooked(MutableBytes buffer);
  void allow_fragments(bool on);
  void switch_gro();
  void switch_gro_off();
  size_t write_control(MutableBytes control, const Train& train, size_t segment);
  bool says_hops(uint8_t hops, const Gid& to);
  bool chosen_anyway(const Gid& from, const Gid& to);
  Sent send_train(const Train& train, const msghdr& header);
  Sent send_one_by_one(const Train& train, const msghdr& header);
  void read_control(msghdr& header, Received& received);

  Fd fd_;
  int family_ = 0;
  bool gathers_ = false;  // the kernel can
  GroSwitch gro_;         // and is to
  uint32_t gro_switches_ = 0;
  bool fragments_ = true;  // as the kernel has it
  UsualTtl ttl_;
  OwnSource own_source_;
  size_t receive_buffer_ = 0;
  std::vector<IoVec> cut_;  // for send_one_by_one()
  std::unique_ptr<Hooks> hooks_;
};

}  // namespace weft::port
