// A value that the machine told, or why it did not and what to do about it. Never 0 in its place.
#pragma once

#include <string>

#include "base/result.h"

namespace weft::measure {

struct Unmeasured {
  std::string reason;  // a clause: "energy_uj: Permission denied"
  std::string remedy;  // a clause in the imperative: "run as root"
  friend bool operator==(const Unmeasured&, const Unmeasured&) = default;
};

template <class T>
using Measured = Result<T, Unmeasured>;

}  // namespace weft::measure
