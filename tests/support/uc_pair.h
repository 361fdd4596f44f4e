// Two UC sessions that stand, over a simulated path for datagrams. A protocol test posts, drives
// and looks:
//
//   UcPair p;
//   Buffer from = pattern_bytes(100'000, 1), to(100'000);
//   p.b.post_receive(1, nothing);
//   p.a.host().post({.operation = Operation::write_immediate, .immediate = 7,
//                    .remote_stag = p.b.host().add_region(to), .remote_to = address_of(to)},
//                   {segment(p.a.host(), from)});
//   p.drive();
//   EXPECT_EQ(to, from);
#pragma once

#include <functional>
#include <memory>

#include "sim/datagram_link.h"
#include "sim/seeds.h"
#include "tests/support/uc_host.h"
#include "wdp/uc_session.h"

namespace weft::test {

struct UcPairOptions {
  uint64_t seed = 1;
  sim::DatagramOptions link;
  bool crc = false;
  bool immediate = true;
  bool reads = true;
  uint16_t ird = 16;
  uint16_t ord = 16;
  size_t max_payload = 1472;
  size_t receive_buffer = 4 << 20;
  uint8_t retry_count = 7;
  uint64_t window = 0;  // bytes; 0: none
  bool close_by = true;
  bool is_static = false;
  uint32_t send_capacity = 256;
  // Share of the datagrams that are received in two steps, straight into their places.
  double direct = 0;
  // Share of the trains for which the socket has no room at first.
  double stall = 0;
  // Share of the trains that the next one overtakes as a whole.
  double swap = 0;
  // What is to be different on one side.
  std::function<void(wdp::UcParameters& parameters, bool first)> tune;
};

// One side: queue pair, session, and what a datagram driver does for them.
class UcSide {
  SeededRandom random_;
  wdp::SendWindows windows_;

 public:
  UcSide(sim::Scheduler& scheduler, sim::DatagramEnd& end, const UcPairOptions& options,
         bool first);

  UcHost consumer;
  wdp::UcSession session;
  Host& host() { return consumer.host; }
  const wdp::UcCounters& counters() const { return session.counters(); }
  uint64_t drops(wire::WdpDrop why) const { return counters().drops.of(why); }

  // Moves what can be moved. To be called after anything was done to the host or the session.
  void pump();
  void receive(Bytes datagram);
  void post_receive(uint64_t wr_id, const std::vector<work::LocalSegment>& segments) {
    host().post_receive(wr_id, segments);
  }
  void close() {
    session.close(scheduler_.now());
    pump();
  }
  // As ibv_dereg_mr: after this nothing reads or writes the region.
  void deregister(Stag stag) {
    host().regions.erase(stag);
    train_.detach();
  }
  // CTL and data that were not for this session or could not be read.
  uint64_t foreign = 0;
  uint64_t trains = 0;

 private:
  static wdp::UcParameters parameters(const UcPairOptions& options, bool first);
  void write();
  void send_train();
  void send_overtaken();
  bool receive_direct(const wire::WdpCommon& common, Bytes datagram);

  sim::Scheduler& scheduler_;
  sim::DatagramEnd& end_;
  const double direct_;
  const double stall_;
  const double swap_;
  wdp::Train train_;
  bool blocked_ = false;
  sim::Alarm alarm_;
  sim::Alarm room_;
  std::vector<Buffer> overtaken_;
  sim::Alarm late_;
};

class UcPair {
 public:
  explicit UcPair(const UcPairOptions& options = {});
  // Runs until nothing more happens for a while, or `limit` of virtual time is over. Keepalives
  // alone are nothing.
  void drive(Duration limit = std::chrono::seconds{5});

  sim::Scheduler scheduler;
  sim::DatagramLink link;
  UcSide a;
  UcSide b;
};

}  // namespace weft::test
