// A small run with known figures, for what judges and prints runs.
#pragma once

#include "bench/report.h"

namespace weft::bench {

// A bandwidth case whose repetition i moves `gbps[i]` and takes `cpu` seconds of CPU per 10^9 bytes
// on each side.
inline CaseResult stream_case(const char* name, Operation operation, const char* baseline,
                              const std::vector<double>& gbps, double cpu) {
  constexpr double kGigabytes = 1;
  CaseResult result{
      .spec = {.name = name, .operation = operation, .size = 1'000'000, .baseline = baseline},
      .repetitions = {}};
  for (const double rate : gbps) {
    Measurement m;
    m.initiator = {.messages = 1000, .seconds = kGigabytes * 8 / rate, .cpu_s = cpu * kGigabytes};
    m.target = {.cpu_s = cpu * kGigabytes};
    if (operation == Operation::tcp_stream) m.initiator.congestion = "cubic";
    result.repetitions.push_back(m);
  }
  return result;
}

inline Run example_run() {
  return {
      .path = "loopback",
      .library = "/lib/libibverbs.so.1",
      .repetitions = 3,
      .seconds = 0.5,
      .pinned = true,
      .machine = {.cpu = "a CPU",
                  .cpus = 2,
                  .kernel = "6.1",
                  .congestion = "bbr",
                  .load_before = 0.25,
                  .load_after = 1.5,
                  .options = {{"WEFT_SPIN", "20"}}},
      .cases = {stream_case("tcp/1M", Operation::tcp_stream, "", {40, 80, 50}, 0.1),
                stream_case("write/1M/crc", Operation::write, "tcp/1M", {30, 64, 45}, 0.14),
                stream_case("write/1M/no-crc", Operation::write, "tcp/1M", {38, 80, 49.5}, 0.11)}};
}

}  // namespace weft::bench
