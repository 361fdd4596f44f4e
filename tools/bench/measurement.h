// What the two sides saw in one repetition of a case, and the figures that follow from it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/method.h"
#include "bench/phase_meter.h"
#include "bench/spec.h"

namespace weft::bench {

// One side's account. The initiator posts or sends first; the target answers or stands still.
struct SideResult {
  uint64_t messages = 0;  // one way; the initiator alone counts them
  double seconds = 0;     // from the first post to the last completion
  double cpu_s = 0;       // user_s and system_s
  double user_s = 0;
  double system_s = 0;
  double library_cpu_s = 0;
  double switches = 0;
  double peak_bytes = 0;                // of resident memory, from the start on; 0: not told
  bool intact = true;                   // what arrived at this side is what was sent
  std::map<std::string, double> extra;  // figures that only some operations have
  std::string congestion;               // TCP congestion control, of raw TCP alone
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SideResult, messages, seconds, cpu_s, user_s, system_s,
                                   library_cpu_s, switches, peak_bytes, intact, extra, congestion)

// In `extra` of the initiator where streams share a link (Spec::flows): the sum of them, that of
// their neighbours, and of them the slowest one by their mean.
inline constexpr const char* kOwnGbps = "own_gbps";
inline constexpr const char* kBesideGbps = "beside_gbps";
inline constexpr const char* kLeastOfMean = "least_of_mean";

struct Measurement {
  std::string error;  // a sentence; empty when it went well
  SideResult initiator;
  SideResult target;
  PhaseOnMachine machine;
};

using Figures = std::map<std::string, double>;

// By the operation and the group; figures.h says what they are.
// Empty for a measurement that failed.
Figures figures_of(const Spec& spec, const Measurement& m);

// A case with its repetitions.
struct CaseResult {
  Spec spec;
  std::vector<Measurement> repetitions;

  // `figure` by repetition.
  Series series(const std::string& figure) const;
};

// The case of this name, or nullptr.
const CaseResult* find_case(const std::vector<CaseResult>& cases, const std::string& name);

}  // namespace weft::bench
