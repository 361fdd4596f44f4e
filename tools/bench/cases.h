// The cases of `weft bench rc`, in the order in which a repetition runs them.
#pragma once

#include <string>
#include <vector>

#include "bench/spec.h"

namespace weft::bench {

struct CaseChoice {
  std::vector<uint64_t> sizes = {64, 4096, 65536, 1048576};  // of the bandwidth cases
  std::vector<std::string> only;  // patterns of fnmatch(3) for names; none means all
  Wait bandwidth_wait = Wait::event;
};

inline constexpr uint64_t kLargestMessage = 64U << 20;

// Baselines stand right before what is compared with them; a baseline that a chosen case needs is
// there even when `only` does not name it.
std::vector<Spec> make_cases(const CaseChoice& choice);

}  // namespace weft::bench
