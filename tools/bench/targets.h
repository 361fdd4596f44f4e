// What has been promised, and where it stands.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cases.h"
#include "bench/measurement.h"

namespace weft::bench {

struct Target {
  const char* id;
  const char* sentence;
  const char* unit;  // "" for a ratio
  bool at_most;      // smaller is better
  double required;
  std::optional<double> aim;
};

struct Standing {
  Target target;
  std::optional<Spread> value;  // nothing: its cases were not measured

  // Nothing when there is no value.
  std::optional<bool> met() const;
  std::optional<bool> reaches_aim() const;
};

// Every target of the suite on this network ("loopback", "veth"), in a fixed order. A ratio is the
// median of the ratios of the repetitions.
std::vector<Standing> standings(const std::vector<CaseResult>& cases, Suite suite,
                                std::string_view path);

}  // namespace weft::bench
