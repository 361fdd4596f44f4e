// The adapter of this process: its engines, its registered memory, its queue pair numbers. One for
// the life of the process, but for two cases: after fork(2) the child gets a fresh one and the
// parent's is dead there; and a program that has closed its descriptors gets a fresh one when it
// opens the device again.
//
// Above 400 lines with its source: ports, numbers, engines share a lock.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "drive/datagram_driver.h"
#include "engine/engine.h"
#include "observe/counter_memory.h"
#include "port/tcp_listener.h"
#include "verbs/bring_up.h"
#include "verbs/memory_table.h"
#include "verbs/multicast_groups.h"
#include "verbs/number_pool.h"
#include "verbs/types.h"

namespace weft::verbs {

class QueuePair;
class Adapter;

// A port number that this process owns on TCP and UDP: the upper 16 bits of up to 254 queue pair
// numbers (spec/addressing 2.2).
struct AdapterPort {
  uint16_t number = 0;
  engine::Engine* engine = nullptr;
  port::Fd udp;  // bound: the lock on the number; moves into `datagrams`
  drive::DatagramDriver* datagrams = nullptr;  // of the engine's holder, once it is needed
  port::TcpListener tcp;
  // To those who connect by number; set by the holder of `engine`.
  std::atomic<bool> told_of{false};
  std::array<QueuePair*, 256> pairs{};  // by index; of the holder of `engine`
};

class Adapter final : private drive::DatagramOwner {
 public:
  static constexpr unsigned kMostEngines = 8;

  // The one of this process; made at the first call, with what `make_bring_up` gives, and anew
  // where the program has closed the descriptors of the one before, which is dead then. Where the
  // system refuses what it takes, the call that was refused, and the log says what would help.
  // Throws std::bad_alloc. Programs come in through cm::adapter().
  static Result<Adapter*, port::SystemError> get(
      const std::function<std::unique_ptr<BringUp>()>& make_bring_up);
  // The one there is, or nullptr. For exit and fork.
  static Adapter* existing();

  BringUp* bring_up() const { return bring_up_.get(); }

  MemoryTable& memory() { return memory_; }
  MulticastGroups& groups() { return groups_; }
  // What is counted; of the device, by any thread with add_shared().
  observe::CounterMemory& counters() { return *counters_; }
  engine::Engine& engine(size_t i) { return *engines_[i]; }
  // Engines by turns, so that queue pairs spread over them.
  engine::Engine& next_engine();
  // What next_engine() gives to the calling thread from now on; nullptr: by turns again.
  static void prefer(engine::Engine* engine);

  // Looks at all sockets once. Any thread.
  void progress() {
    for (auto& e : engines_) e->progress();
  }
  // Engine::wait() over all engines.
  int wait(int fd, const std::function<bool()>& ready);
  void expect_sleeper() {
    for (auto& e : engines_) e->expect_sleeper();
  }
  void may_sleep() {
    for (auto& e : engines_) e->may_sleep();
  }
  void forget_sleeper() {
    for (auto& e : engines_) e->forget_sleeper();
  }

  // Sets a number on a port of `engine` aside. Not a holder. Errors: no_memory (no index, port or
  // descriptor left).
  Outcome<Qpn> reserve_number(engine::Engine& engine);
  // Holder of its engine: the queue pair is found by its number from now on.
  void publish(engine::Token& token, QueuePair& qp);
  // Holder of its engine. `known`: a peer may know the number, which is not given out again for two
  // seconds then (spec/addressing 2.3).
  void release_number(engine::Token& token, Qpn qpn, bool known);
  // The engine on which a queue pair of this number would be; nullptr when the number is not of
  // this process.
  engine::Engine* engine_of(Qpn qpn);
  // Holder of that engine: the queue pair of this number, good until the engine is let go; nullptr
  // when there is none.
  QueuePair* find(engine::Token& token, Qpn qpn);

  // Holder of its engine: the driver of the UDP port that the number is on. Throws std::bad_alloc.
  drive::DatagramDriver& datagrams(engine::Token& token, Qpn qpn);

  // Says what was put off, before the process exits.
  void flush_at_exit();
  void abandon_in_child();
  // Engine::intact() and Engine::abandon_lost() of all engines.
  bool intact() const;
  void abandon_lost();

 private:
  Adapter();
  Result<Ok, port::SystemError> start();
  // drive::DatagramOwner: of the ports of queue pairs
  Result<wdp::WdpSocketOwner::Callee, wire::RejReason> called(engine::Token& token,
                                                              drive::DatagramDriver& driver,
                                                              const wire::WdpCtl& req,
                                                              const wdp::Endpoint& from) override;
  void start_came(engine::Token& token, drive::DatagramDriver& driver,
                  const wdp::RdStart& start) override;
  Result<AdapterPort*, port::SystemError> open_port(engine::Engine& engine);
  Result<Qpn, port::SystemError> find_number(engine::Engine& engine);
  AdapterPort* port_with(Qpn qpn);

  std::unique_ptr<observe::CounterMemory> counters_;  // the engines count in it
  std::vector<std::unique_ptr<engine::Engine>> engines_;
  MemoryTable memory_;
  MulticastGroups groups_;
  std::unique_ptr<BringUp> bring_up_;
  std::mutex lock_;
  std::vector<std::unique_ptr<AdapterPort>> ports_;
  std::vector<NumberPool> numbers_;  // by engine
  std::atomic<size_t> turn_{0};
};

}  // namespace weft::verbs
