// What `weft stat` prints of the counters of processes.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "weft/stat_processes.h"

namespace weft::tools {

// `zeros`: counters that stand at 0 are printed too.
std::string counters_as_text(std::span<const CountingProcess> processes, bool zeros);
nlohmann::json counters_as_json(std::span<const CountingProcess> processes, bool zeros);
// The text format of Prometheus, version 0.0.4.
std::string counters_as_prometheus(std::span<const CountingProcess> processes, bool zeros);
// What moved from `before` to `now`, with how much; of processes that are in both.
std::string changes_as_text(std::span<const CountingProcess> before,
                            std::span<const CountingProcess> now);
// docs/counters.md: the table, the same everywhere.
std::string counters_as_markdown();

}  // namespace weft::tools
