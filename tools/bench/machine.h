// The machine that the figures are of, and how busy it was with other things.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace weft::bench {

struct Machine {
  std::string cpu;
  unsigned cpus = 0;
  std::string kernel;
  std::string congestion;  // the host's TCP congestion control
  double load_before = 0;  // load averages of one minute
  double load_after = 0;
  std::map<std::string, std::string> options;  // the WEFT_ variables that are set
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Machine, cpu, cpus, kernel, congestion, load_before, load_after,
                                   options)

Machine this_machine();
double load_average();

}  // namespace weft::bench
