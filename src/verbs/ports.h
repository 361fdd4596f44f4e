// The ports of the adapter and the queue pair numbers on them (spec/addressing 2): opens ports as
// numbers are asked for, knows which queue pair has a number, and has the UDP socket of each port.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "drive/datagram_driver.h"
#include "engine/engine.h"
#include "port/tcp_listener.h"
#include "stats/blocks.h"
#include "verbs/bring_up.h"
#include "verbs/number_pool.h"

namespace weft::verbs {

class QueuePair;

// Queue pair numbers and STags are known before the process runs (options uc, uc_port): a peer that
// sends without handshake is told of them by other means. Any thread.
bool has_fixed_numbers();

// A port number that this process owns on TCP and UDP: the upper 16 bits of up to 254 queue pair
// numbers (spec/addressing 2.2). Open until the process ends.
struct AdapterPort {
  uint16_t number = 0;
  engine::Engine* engine = nullptr;
  port::Fd udp;  // bound: the lock on the number, until `datagrams` has the socket
  drive::DatagramDriver* datagrams = nullptr;  // of the engine's holder, once it is needed
  port::TcpListener tcp;
  // To those who connect by number; set by the holder of `engine`.
  std::atomic<bool> told_of{false};
  std::array<QueuePair*, 256> pairs{};  // by index; of the holder of `engine`
};

class Ports final : private drive::DatagramOwner {
 public:
  // For engines with the numbers 0 to `engines` - 1. `bring_up` is told of ports and of the peers
  // that call them; nullptr: nobody is. Both references outlive the ports. Throws std::bad_alloc.
  Ports(size_t engines, stats::DeviceCounters& counters, BringUp* bring_up);

  // Sets a number on a port of `engine` aside. The caller holds no engine. Errors: no_memory (no
  // index, port or descriptor left). Throws std::bad_alloc, and the number is free again then.
  Outcome<Qpn> reserve_number(engine::Engine& engine);
  // Holder of its engine: the queue pair is found by its number from now on.
  void publish(engine::Token& token, QueuePair& qp);
  // Holder of its engine. `known`: a peer may know the number, which is not given out again for two
  // seconds then (spec/addressing 2.3).
  void release_number(engine::Token& token, Qpn qpn, bool known);

  // The engine on which a queue pair of this number would be; nullptr when the number is not of
  // this process. Any thread.
  engine::Engine* engine_of(Qpn qpn);
  // Holder of that engine: the queue pair of this number, good until the engine is let go; nullptr
  // when there is none.
  QueuePair* find(engine::Token& token, Qpn qpn);
  // Holder of its engine: the driver of the UDP port that the number, which is reserved, is on.
  // Throws std::bad_alloc.
  drive::DatagramDriver& datagrams(engine::Token& token, Qpn qpn);

  // Has all channels say goodbye, before the process exits (spec/wdp-rd 2.4). False: an engine
  // could not be held, for the thread that exits may be inside, as the handler of a signal.
  bool close_channels_at_exit();
  // In a child of fork(2): closes its copies of the descriptors. Nothing else may be called then.
  void abandon_in_child();

 private:
  // drive::DatagramOwner
  Result<wdp::WdpSocketOwner::Callee, wire::RejReason> called(engine::Token& token,
                                                              drive::DatagramDriver& driver,
                                                              const wire::WdpCtl& req,
                                                              const wdp::Endpoint& from) override;
  void start_came(engine::Token& token, drive::DatagramDriver& driver,
                  const wdp::RdStart& start) override;

  // The caller has the lock, for these two.
  Result<AdapterPort*, port::SystemError> open_port(engine::Engine& engine);
  Result<Qpn, port::SystemError> find_number(engine::Engine& engine);
  Outcome<Qpn> take_number(engine::Engine& engine);
  AdapterPort* port_with(Qpn qpn);  // nullptr: it is not of this process

  stats::DeviceCounters& counters_;
  BringUp* const bring_up_;

  // Of the lists and the pools; what a port has belongs to the holder of its engine.
  std::mutex lock_;
  std::vector<std::unique_ptr<AdapterPort>> ports_;
  std::vector<NumberPool> numbers_;  // by engine
};

}  // namespace weft::verbs
