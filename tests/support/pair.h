// Two streams over a simulated TCP connection, each with its driver. A protocol test posts, drives
// and looks:
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

#include "drive/stream_driver.h"
#include "sim/host/ports.h"
#include "sim/host/runtime.h"
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
  // Share of the posts that wait for company until the next turn, and of the reads that come
  // without the news that there is something.
  double gather = 0;
  double unasked = 0;
  // What is to be different on one side: called for each with what the rest gives.
  std::function<void(rdmap::StreamConfig& config, bool initiator)> tune;
};

// One side: a host, and the StreamDriver of production with its stream, on a runtime of the
// simulator.
class Side final : private drive::StreamOwner {
 public:
  Side(sim::Scheduler& scheduler, sim::StreamEnd& end, const PairOptions& options, bool initiator);

  Host host;

 private:
  sim::Runtime runtime_;
  sim::SimStream* bytes_;        // the driver's
  drive::StreamDriver* driver_;  // the runtime's; lives as long as that, also when it is done

 public:
  rdmap::Stream& stream;
  bool gone = false;           // abort() or leave()
  const bool completes_early;  // completion=llp

  bool closed() const { return bytes_->closed(); }
  bool was_reset() const { return bytes_->closed_by_reset(); }

  // Moves what can be moved. To be called after anything was done to the host or the stream.
  void pump();
  // Receives were posted.
  void receives_posted() {
    stream.receives_posted(runtime_.now());
    pump();
  }
  void close() {
    stream.close(runtime_.now());
    pump();
  }
  // The queue pair goes to error, or away: its owner hears nothing more, and what is posted is
  // flushed.
  void abort() {
    stream.abort(runtime_.now());
    let_go();
  }
  void leave() {
    stream.leave(runtime_.now());
    let_go();
  }
  // As ibv_dereg_mr: after this nothing reads or writes the region.
  void deregister(Stag stag) {
    host.regions.erase(stag);
    runtime_.retire_memory();
  }
  // Stops to read, as a peer that hangs does; until it is called again.
  void deaf(bool on) { bytes_->set_deaf(on); }

 private:
  static rdmap::StreamConfig config(const PairOptions& options, bool initiator);
  void let_go();

  // drive::StreamOwner
  void visited(engine::Token&) override {}
  void driver_gone(engine::Token&) override {}

  bool started_ = false;
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
