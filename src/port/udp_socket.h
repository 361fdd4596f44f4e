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
#include "port/datagram_port.h"
#include "port/fd.h"
#include "port/tcp_stream.h"
#include "port/udp_tuning.h"

namespace weft::port {

class Capture;
class FaultLog;
class FaultyDatagrams;
class UdpTap;

// Holder of the engine alone, but for what is const.
//
// Above 400 lines with its source: both ways share tap, faults and what the kernel can.
class UdpSocket final : public DatagramPort {
 public:
  UdpSocket();
  UdpSocket(UdpSocket&&) noexcept;
  UdpSocket& operator=(UdpSocket&&) noexcept;
  ~UdpSocket() override;
  // Takes over a socket that is bound; IPv4, or IPv6 that may be dual-stack. Asks for
  // `buffer` bytes in both directions; the kernel's limits may give less.
  UdpSocket(Fd fd, size_t buffer);

  Sent send(const Train& train, Segmentation& segmentation) override {
    if (hooks_) [[unlikely]]
      return send_hooked(train, segmentation);
    return send_now(train, segmentation);
  }

  Received receive(MutableBytes buffer) override {
    if (hooks_) [[unlikely]]
      return receive_hooked(buffer);
    return receive_now(buffer);
  }

  std::optional<Received> look(MutableBytes front) override;
  Received receive_into(std::span<const IoVec> pieces) override;

  // Faults on purpose (option fault, docs/faults.md) may hold datagrams back.
  Time held_until() const override;
  // Sends those that are due, without receiving.
  void release_held();
  // As if the options fault, fault_log and trace said so; for tests.
  void inject(const FaultSpec& spec, FaultLog* log = nullptr);
  void record(Capture& capture);

  Losses losses() const override { return {.overruns = overruns(), .gro_switches = gro_switches_}; }
  Properties properties() const override {
    return {.fd = fd(), .ipv6 = family_ == AF_INET6, .receive_buffer = receive_buffer_};
  }
  // Datagrams that the socket had no room for since it was made, or that were damaged on their way
  // (SO_MEMINFO); it wraps. A system call: to be told with each datagram (SO_RXQ_OVFL) costs more.
  uint32_t overruns() const;
  // Does this kernel put trains together on their way in?
  bool gathers() const { return gathers_; }

  // As this socket wants it; send() takes any, and this one without converting it.
  Address address_of(const Gid& gid, uint16_t port, uint32_t scope) const {
    return family_ == AF_INET6 ? Address::from_gid_as_ipv6(gid, port, scope)
                               : Address::from_gid(gid, port, scope);
  }

  int fd() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void close() override { fd_.reset(); }
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
