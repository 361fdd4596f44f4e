// What weft in this process counts of datagrams (docs/counters.md): of UC, and of this program's
// own sockets where WEFT_FAULT acts on them.
#pragma once

#include <cstdint>

namespace weft::stream {

// What WEFT_FAULT did to what was sent.
struct Faults {
  uint64_t lost = 0;     // datagrams
  uint64_t control = 0;  // datagrams of UC that carried no data, lost ones and others

  friend Faults operator-(const Faults& a, const Faults& b) {
    return {a.lost - b.lost, a.control - b.control};
  }
};
Faults faults_so_far();
// Of this program's own sockets; weft's library counts for itself.
void count_own_faults();

// Of what was sent to UC's sockets here.
struct Absent {
  uint64_t lost = 0;      // datagrams with data that never came, by the gaps in their numbers
  uint64_t overruns = 0;  // datagrams that a socket had no room for
};
Absent absent_so_far();

}  // namespace weft::stream
