// Two streams over a simulated TCP connection. A protocol test posts, drives and looks:
//
//   Pair p;
//   Buffer from = pattern_bytes(100'000, 1), to(100'000);
//   p.a.host.post({.operation = Operation::write, .signaled = true, .remote_stag =
//   p.b.host.add_region(to),
//                  .remote_to = address_of(to)}, {segment(p.a.host, from)});
//   p.drive();
//   EXPECT_EQ(to, from);
#pragma once

#include <functional>
#include <memory>

#include "rdmap/stream.h"
#include "sim/seeds.h"
#include "sim/stream_link.h"
#include "tests/support/host.h"

namespace weft::test {

struct PairOptions {
  uint64_t seed = 1;
  sim::StreamOptions link;
  mpa::Parameters mpa{.extension = true, .ird = 16, .ord = 16};
  bool llp_completion = false;
  bool big_fpdu = false;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;
  uint32_t emss = 1448;
  uint32_t send_capacity = 256;
  // Deliveries that may wait for company do so for this long (spec/rdmap 4.3).
  Duration defer = std::chrono::microseconds{50};
  // What is to be different on one side: called for each with what the rest gives.
  std::function<void(rdmap::StreamConfig& config, bool initiator)> tune;
};

// One side: host, stream, and what StreamDriver does for them over a real socket.
class Side {
 public:
  Side(sim::Scheduler& scheduler, sim::StreamEnd& end, const PairOptions& options, bool initiator);

  Host host;
  rdmap::Stream stream;
  bool closed = false;
  bool was_reset = false;      // closed by a RST
  bool gone = false;           // abort() or leave()
  const bool completes_early;  // completion=llp

  // Moves what can be moved. To be called after anything was done to the host or the stream.
  void pump();
  // Receives were posted.
  void receives_posted() {
    stream.receives_posted(scheduler_.now());
    pump();
  }
  void close() {
    stream.close(scheduler_.now());
    pump();
  }
  // The queue pair goes to error, or away: its owner hears nothing more, and what is posted is
  // flushed.
  void abort() {
    stream.abort(scheduler_.now());
    let_go();
  }
  void leave() {
    stream.leave(scheduler_.now());
    let_go();
  }
  // As ibv_dereg_mr: after this nothing reads or writes the region.
  void deregister(Stag stag) {
    host.regions.erase(stag);
    batch_.detach();
  }
  // Stops to read, as a peer that hangs does; until it is called again.
  void deaf(bool on) {
    deaf_ = on;
    if (!on) pump();
  }

 private:
  static rdmap::StreamConfig config(const PairOptions& options, bool initiator);
  void read();
  void write();
  bool may_fill();
  void grant_wish();
  void let_go();

  sim::Scheduler& scheduler_;
  sim::StreamEnd& end_;
  mpa::TxBatch batch_;
  sim::Alarm alarm_;
  sim::Alarm defer_alarm_;
  const Duration defer_;
  bool deferred_long_enough_ = false;
  SeededRandom random_;
  bool fin_told_ = false;
  bool deaf_ = false;
};

class Pair {
 public:
  explicit Pair(const PairOptions& options = {});
  // Runs until nothing more happens, or `limit` of virtual time is over.
  void drive(Duration limit = std::chrono::seconds{60});

  sim::Scheduler scheduler;
  sim::StreamLink link;
  Side a;  // initiator
  Side b;  // responder
};

}  // namespace weft::test
