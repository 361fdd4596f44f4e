// All errors that a Terminate can name (spec/errors 2), numbered, so that each has a counter.
#pragma once

#include <cstddef>

#include "wire/terminate.h"

namespace weft::wire {

inline constexpr size_t kTermErrorCount = 34;
// What index_of() gives for errors that no RFC names.
inline constexpr size_t kOtherTermError = kTermErrorCount;

struct TermErrorName {
  TermError error;
  const char* name;      // for counters
  const char* sentence;  // for people
};

size_t index_of(TermError error);
// `index` up to and with kOtherTermError.
const TermErrorName& term_error(size_t index);

}  // namespace weft::wire
