#include "bench/side.h"

#include <sys/prctl.h>

#include <exception>

#include "bench/failure.h"
#include "bench/measurement.h"
#include "bench/usage.h"
#include "bench/work.h"

namespace weft::bench {
namespace {

constexpr const char* kGo = "go";

// Runs one phase. The number of messages, on both sides.
uint64_t run_phase(const Order& order, const Phase& phase, const Channel& peer, Work& work,
                   SideResult& result) {
  Usage before;
  if (order.role == Role::initiator) {
    // The target is ready, and does nothing but wait from here on.
    (void)peer.receive();
    before = usage_now();
    peer.send(kGo);
    const Done done = work.initiate(phase);
    const Usage used = usage_now() - before;
    peer.send(done.messages);
    result.messages = done.messages;
    result.seconds = done.seconds;
    result.cpu_s = used.cpu_s;
    result.library_cpu_s = used.library_cpu_s;
    result.switches = used.switches;
    result.extra = done.extra;
    return done.messages;
  }
  before = usage_now();
  peer.send(kGo);
  (void)peer.receive();
  work.serve(phase);
  const uint64_t messages = peer.receive();
  const Usage used = usage_now() - before;
  result.cpu_s = used.cpu_s;
  result.library_cpu_s = used.library_cpu_s;
  result.switches = used.switches;
  return messages;
}

// For top(1) and perf(1).
void name_process(const Order& order) {
  const std::string name = std::string{is_tcp(order.spec.operation) ? "tcp" : "rc"} +
                           (order.role == Role::initiator ? "-initiator" : "-target");
  ::prctl(PR_SET_NAME, name.c_str());
}

SideResult carry_out(const Order& order, const Channel& peer) {
  name_process(order);
  const std::unique_ptr<Work> work = make_work(order);
  work->connect(peer);
  SideResult result;
  Phase phase{.warm_up = true,
              .messages = warm_up_messages(order.spec),
              .duration_ns = static_cast<int64_t>(order.seconds * 1e9)};
  const uint64_t warmed_up = phase.messages > 0 ? run_phase(order, phase, peer, *work, result) : 0;
  work->clear();
  phase.warm_up = false;
  const uint64_t messages = run_phase(order, phase, peer, *work, result);
  result.intact = work->intact(warmed_up, messages);
  result.extra.merge(work->extra());
  result.congestion = work->congestion();
  // Neither side takes its end away while the other one may still look at it.
  peer.send("done");
  (void)peer.receive();
  return result;
}

}  // namespace

int run_side(Channel control, Channel peer) {
  try {
    const SideResult result = carry_out(control.receive().get<Order>(), peer);
    control.send(result);
    return 0;
  } catch (const std::exception& error) {
    try {
      control.send({{"error", error.what()}});
    } catch (const Failure&) {
      // Whoever started this process is gone, and with it the one who would want to know.
    }
    return 1;
  }
}

}  // namespace weft::bench
