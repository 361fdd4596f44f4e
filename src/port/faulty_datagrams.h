// Between a UdpSocket and the kernel when faults are injected (option fault, docs/faults.md):
// loses, doubles, delays and damages datagrams as a FaultSpec says. Each datagram of a train is one
// decision of the FaultPlan; those that nothing happens to stay together in trains. Stands for the
// network: what it loses was sent, as far as the sender can tell.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/fault_plan.h"
#include "base/time.h"
#include "port/fault_log.h"
#include "port/udp_socket.h"

namespace weft::port {

class FaultyDatagrams {
 public:
  // `number`: other sockets of the same spec have others. `log`: where to say what is lost, if
  // anywhere.
  FaultyDatagrams(const FaultSpec& spec, uint64_t number, FaultLog* log);
  // Nothing when the option is not set, or does nothing to datagrams.
  static std::unique_ptr<FaultyDatagrams> of_process();

  // As the functions of UdpSocket. What is held back and due goes first in both.
  UdpSocket::Sent send(UdpSocket& socket, const UdpSocket::Train& train,
                       Segmentation& segmentation);
  UdpSocket::Received receive(UdpSocket& socket, MutableBytes buffer);

  // When something that is held back is due, in either direction.
  Time due() const;
  // Sends what is due. False: the kernel has no room for it.
  bool flush(UdpSocket& socket, Time now);

  // Decisions so far.
  const FaultCounts& out() const { return out_.plan.counts(); }
  const FaultCounts& in() const { return in_.plan.counts(); }

 private:
  // One datagram, and where it belongs.
  struct HeldOut {
    Address to;
    UdpSocket::Train train;  // with `to` and pieces of its own only while it is sent
    std::vector<std::byte> bytes;
  };
  struct HeldIn {
    UdpSocket::Received from;
    std::vector<std::byte> bytes;
  };
  template <class Held>
  struct FaultQueue {
    FaultQueue(const FaultSpec& spec, uint64_t direction, bool on)
        : plan(spec, direction), active(on) {}
    FaultPlan plan;
    const bool active;
    std::multimap<Time, Held> held;  // by when it is due; equal ones in their order
    size_t bytes = 0;                // of all that is held
    Time last;                       // when the last one that keeps its place is due
  };
  struct Run;

  template <class Held>
  DatagramFate decide(FaultQueue<Held>& queue, size_t bytes);
  template <class Held>
  static Time when(FaultQueue<Held>& queue, const DatagramFate::Copy& copy, Time now);
  void tell_lost(const UdpSocket::Train& train, size_t offset, size_t size);
  template <class Held>
  bool hold(FaultQueue<Held>& queue, Time due, Held&& datagram);
  void hold_out(const UdpSocket::Train& train, size_t offset, size_t size, Time due,
                const DatagramFate::Copy& copy);
  bool send_run(UdpSocket& socket, const UdpSocket::Train& train, Segmentation& segmentation,
                Run& run, Time now, UdpSocket::Sent& result);
  bool take_held(MutableBytes buffer, Time now, UdpSocket::Received& r);
  bool filter(MutableBytes buffer, Time now, UdpSocket::Received& r);

  FaultQueue<HeldOut> out_;
  FaultQueue<HeldIn> in_;
  FaultLog* const log_;
  Segmentation one_by_one_;
  Time try_again_;  // the kernel had no room; until then flush() is of no use
  std::vector<IoVec> cut_;
};

}  // namespace weft::port
