// Runs a case once: starts its two sides as processes of their own, and hears what they report.
#pragma once

#include <optional>
#include <string>

#include "bench/measurement.h"
#include "bench/network.h"
#include "bench/phase_meter.h"

namespace weft::bench {

// Where the sides run.
struct Pinning {
  // CPU numbers; nothing: wherever the kernel likes.
  std::optional<int> initiator;
  std::optional<int> target;
};

// The first two CPUs that this process may use, or nothing when there is but one.
Pinning two_cpus();
// The first CPU that this process may use, for both.
Pinning one_cpu();

struct Setting {
  const Network& network;
  Pinning pinning;
  std::string library;
  PhaseMeter& meter;
  bool first = false;  // the sides go before all other processes of the machine; needs root
};

// Each repetition has fresh processes, so that none inherits what another one left in memory or
// learnt. Does not throw for what goes wrong in them: that is in Measurement::error.
Measurement run_once(const Spec& spec, double seconds, const Setting& setting);

}  // namespace weft::bench
