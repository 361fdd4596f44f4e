// Many connections of which some are busy: what both transports have in common.
#pragma once

#include <cstddef>

#include "bench/rest.h"
#include "bench/spec.h"

namespace weft::bench {

// The connection that carries this message. The busy ones take them by turns, and stand at equal
// distances among the others.
inline size_t busy_connection(const Spec& spec, uint64_t message) {
  return message % spec.busy * (spec.connections / spec.busy);
}

// Before the measurement, where some do not carry anything: until their bring-up is over.
inline void settle(const Spec& spec) {
  if (spec.busy < spec.connections) sleep_ns(kSettle);
}

}  // namespace weft::bench
