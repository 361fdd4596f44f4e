// What `weft bench` prints: a table for people, one JSON document for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/measurement.h"
#include "bench/network.h"
#include "bench/targets.h"

namespace weft::bench {

struct Run {
  Suite suite = Suite::rc;
  std::string path;  // of the network: "loopback", "veth" or "relay"
  std::string library;
  std::string version;
  unsigned mtu = 0;  // between the namespaces; 0: that of the devices
  Offloads offloads = Offloads::unchanged;
  unsigned repetitions = 0;
  double seconds = 0;
  bool pinned = false;
  bool one_core = false;  // to the same CPU
  bool first = false;     // before all other processes of the machine
  Machine machine;
  // What the figures of energy are of, or why there are none.
  measure::Measured<measure::SourceEnergy> energy =
      fail(measure::Unmeasured{"nothing ran", "run a case"});
  std::vector<CaseResult> cases;
  bool ended_early = false;  // by a signal: repetitions are missing
};

std::string as_text(const Run& run);
nlohmann::json as_json(const Run& run);

// A sentence for each repetition that failed.
std::vector<std::string> failures(const std::vector<CaseResult>& cases);

}  // namespace weft::bench
