#include "bench/side.h"

#include <sys/prctl.h>

#include <exception>

#include "bench/measurement.h"
#include "bench/work.h"
#include "kit/failure.h"
#include "measure/own_usage.h"
#include "observe/counter_reader.h"
#include "stats/table.h"

namespace weft::bench {
namespace {

constexpr const char* kGo = "go";

void note(const measure::OwnUsage& used, SideResult& result) {
  result.cpu_s = used.cpu_s;
  result.user_s = used.user_s;
  result.system_s = used.system_s;
  result.library_cpu_s = used.others_cpu_s;
  result.switches = used.switches;
}

// Runs one phase. The number of messages, on both sides. The initiator tells `control` when one
// that is measured begins and ends.
uint64_t run_phase(const Order& order, const Phase& phase, const Channel& control,
                   const Channel& peer, Work& work, SideResult& result) {
  measure::OwnUsage before;
  if (order.role == Role::initiator) {
    // The target is ready, and does nothing but wait from here on.
    (void)peer.receive();
    if (!phase.warm_up) control.send({{kPhase, kBegins}});
    // All streams begin at once.
    if (!phase.warm_up && order.spec.flows > 0) (void)control.receive();
    before = measure::own_usage();
    peer.send(kGo);
    const Done done = work.initiate(phase);
    const measure::OwnUsage used = measure::own_usage() - before;
    if (!phase.warm_up) control.send({{kPhase, kEnds}});
    peer.send(done.messages);
    result.messages = done.messages;
    result.seconds = done.seconds;
    note(used, result);
    result.extra = done.extra;
    return done.messages;
  }
  before = measure::own_usage();
  peer.send(kGo);
  (void)peer.receive();
  work.serve(phase);
  const uint64_t messages = peer.receive();
  note(measure::own_usage() - before, result);
  return messages;
}

// For top(1) and perf(1).
void name_process(const Order& order) {
  const std::string name = std::string{is_tcp(order.spec.operation) ? "tcp" : "rc"} +
                           (order.role == Role::initiator ? "-initiator" : "-target");
  ::prctl(PR_SET_NAME, name.c_str());
}

// Else another way would be measured by the name of this one. A library without weft's counters
// cannot be asked.
void check_that_channels_carried_it() {
  const auto seen = observe::read_process(0);
  if (!seen.ok()) return;
  for (size_t i = 0; i < seen->device.size(); ++i) {
    const std::string name = stats::table()[i].name();
    const bool counts = name == "rd_datagrams_sent" || name == "rd_datagrams_received";
    if (counts && seen->device[i] > 0) return;
  }
  throw kit::Failure{"nothing of it went by a channel"};
}

SideResult carry_out(const Order& order, const Channel& control, const Channel& peer) {
  name_process(order);
  const std::unique_ptr<Work> work = make_work(order);
  work->connect(peer);
  SideResult result;
  Phase phase{.warm_up = true,
              .messages = warm_up_messages(order.spec),
              .duration_ns = static_cast<int64_t>(order.seconds * 1e9)};
  const uint64_t warmed_up =
      phase.messages > 0 ? run_phase(order, phase, control, peer, *work, result) : 0;
  work->clear();
  phase.warm_up = false;
  const uint64_t messages = run_phase(order, phase, control, peer, *work, result);
  if (order.spec.channels) check_that_channels_carried_it();
  result.intact = work->intact(warmed_up, messages);
  result.extra.merge(work->extra());
  result.congestion = work->congestion();
  result.peak_bytes = measure::own_peak_bytes();
  // Neither side takes its end away while the other one may still look at it.
  peer.send("done");
  (void)peer.receive();
  return result;
}

}  // namespace

int run_side(Channel control, Channel peer) {
  try {
    const SideResult result = carry_out(control.receive().get<Order>(), control, peer);
    control.send(result);
    return 0;
  } catch (const std::exception& error) {
    try {
      control.send({{"error", error.what()}});
    } catch (const kit::Failure&) {
      // Whoever started this process is gone, and with it the one who would want to know.
    }
    return 1;
  }
}

}  // namespace weft::bench
