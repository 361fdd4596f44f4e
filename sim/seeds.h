// Seeds for tests over the simulator. A failure names the seed it came from, and WEFT_SIM_SEED=n in
// the environment runs that seed alone. WEFT_SIM_SEEDS=n leaves it at the first n, for builds in
// which each run takes long:
//
//   for (const uint64_t seed : sim::seeds(50)) {
//     WEFT_SIM_TRACE(seed);
//     ...
//   }
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace weft::sim {

// 1 .. count, or what the environment asks for.
inline std::vector<uint64_t> seeds(uint64_t count) {
  if (const char* only = std::getenv("WEFT_SIM_SEED")) return {std::strtoull(only, nullptr, 0)};
  if (const char* most = std::getenv("WEFT_SIM_SEEDS")) {
    count = std::min<uint64_t>(count, std::max<uint64_t>(1, std::strtoull(most, nullptr, 0)));
  }
  std::vector<uint64_t> all;
  for (uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

inline std::string seed_sentence(uint64_t seed) {
  return "to see this run alone: WEFT_SIM_SEED=" + std::to_string(seed);
}

}  // namespace weft::sim

#define WEFT_SIM_TRACE(seed) SCOPED_TRACE(::weft::sim::seed_sentence(seed))
