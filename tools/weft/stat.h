// What `weft stat` prints of the counters of processes.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "weft/stat_processes.h"

namespace weft::tools {

// The processes that an earlier look found, and how long ago.
struct LookBefore {
  std::span<const CountingProcess> processes;
  double seconds = 0;
};

// `zeros`: counters that stand at 0 are printed too.
std::string counters_as_text(std::span<const CountingProcess> processes, bool zeros);
// With a look before this one also what was counted a second since then.
nlohmann::json counters_as_json(std::span<const CountingProcess> processes, bool zeros,
                                const LookBefore& before = {});
// The text format of Prometheus, version 0.0.4.
std::string counters_as_prometheus(std::span<const CountingProcess> processes, bool zeros);
// What moved since the look before, by how much, and how much that is a second; of processes that
// are in both.
std::string changes_as_text(const LookBefore& before, std::span<const CountingProcess> now);
// A label's value, as Prometheus wants it.
std::string label_text(const std::string& value);
// docs/counters.md: the table, the same everywhere.
std::string counters_as_markdown();

}  // namespace weft::tools
