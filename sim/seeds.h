// Seeds for tests over the simulator. A failure names the seed it came from, and WEFT_SIM_SEED=n in
// the environment runs that seed alone. WEFT_SIM_SEEDS=n leaves it at the first n, for builds in
// which each run takes long; WEFT_SIM_SEEDS=m..n runs these, for who has hours:
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
#include <string_view>
#include <vector>

namespace weft::sim {

// 1 .. count, or what the environment asks for.
inline std::vector<uint64_t> seeds(uint64_t count) {
  if (const char* only = std::getenv("WEFT_SIM_SEED")) return {std::strtoull(only, nullptr, 0)};
  uint64_t first = 1;
  if (const char* wanted = std::getenv("WEFT_SIM_SEEDS")) {
    char* rest = nullptr;
    const uint64_t number = std::max<uint64_t>(1, std::strtoull(wanted, &rest, 0));
    if (std::string_view{rest}.substr(0, 2) == "..") {
      first = number;
      count = std::max<uint64_t>(first, std::strtoull(rest + 2, nullptr, 0));
    } else {
      count = std::min<uint64_t>(count, number);
    }
  }
  std::vector<uint64_t> all;
  for (uint64_t seed = first; seed <= count; ++seed) all.push_back(seed);
  return all;
}

inline std::string seed_sentence(uint64_t seed) {
  return "to see this run alone: WEFT_SIM_SEED=" + std::to_string(seed);
}

}  // namespace weft::sim

#define WEFT_SIM_TRACE(seed) SCOPED_TRACE(::weft::sim::seed_sentence(seed))
