// One half of Traffic (traffic.h): the requests of one side, and the memory that they are about.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/draw.h"
#include "tests/support/traffic.h"
#include "tests/support/traffic_arena.h"

namespace weft::test {

class Traffic::Flow {
 public:
  Flow(Pair& pair, Side& from, Side& to, const TrafficOptions& options, uint64_t salt);

  void expect_complete() const;
  void expect_sound() const;

  bool of(const Side& side) const { return &side == &from_; }
  size_t posted() const { return posted_; }
  size_t succeeded() const {
    return static_cast<size_t>(
        std::count_if(from_.host.sent.begin(), from_.host.sent.end(),
                      [](const Host::Done& d) { return d.status == work::Status::success; }));
  }

 private:
  struct Request {
    work::Operation operation{};
    uint32_t length = 0;
    size_t from = 0;  // place in source_, or in sink_ of a fenced Write
    bool from_sink = false;
    size_t to = 0;  // place in target_ or sink_
    size_t receive = SIZE_MAX;
    bool signaled = true;
    bool fence = false;
    bool solicited = false;
    bool inlined = false;
    uint32_t immediate = 0;
    uint64_t compare_add = 0;
    uint64_t swap = 0;
    Stag victim;
  };
  struct Receive {
    size_t request = 0;
    size_t place = 0;
    uint32_t room = 0;
  };

  // What is asked for, and what must come of it (traffic_plan.cc).
  uint32_t draw_length();
  void plan(size_t index);
  void predict();
  void predict_atomic(Request& r);

  // When it is asked for (traffic_flow.cc).
  Time some_time() { return scheduler_.now() + sim::draw_up_to(random_, options_.spread); }
  void schedule();
  std::vector<work::LocalSegment> cut(const Arena& arena, size_t place, size_t n);
  void post();
  void post_receive();

  // What came of it (traffic_check.cc).
  void expect_arrival(size_t i) const;
  void expect_done(const Request& r) const;

  sim::Scheduler& scheduler_;
  Side& from_;
  Side& to_;
  const TrafficOptions options_;
  SeededRandom random_;
  bool extension_ = false;
  bool reads_ = true;

  std::vector<Request> requests_;
  std::vector<Receive> receives_;
  std::vector<Stag> victims_;
  std::vector<std::unique_ptr<Buffer>> victims_memory_;
  size_t posted_ = 0;
  size_t received_ = 0;
  Arena source_;  // at `from`
  Arena sink_;    // at `from`
  Arena target_;  // at `to`
  Arena inbox_;   // at `to`
};

}  // namespace weft::test
