// What weft in this process counts of the datagrams of UC (docs/counters.md).
#pragma once

#include <cstdint>

namespace weft::stream {

// What WEFT_FAULT did to what was sent.
struct Faults {
  uint64_t lost = 0;     // datagrams
  uint64_t control = 0;  // datagrams that carried no data, lost ones and others

  friend Faults operator-(const Faults& a, const Faults& b) {
    return {a.lost - b.lost, a.control - b.control};
  }
};
Faults faults_so_far();

// Datagrams with data that never came, by the gaps in their numbers.
uint64_t lost_so_far();

}  // namespace weft::stream
