// What a process has used of the machine so far, as it sees it itself.
#pragma once

#include <sys/resource.h>

namespace weft::measure {

struct OwnUsage {
  double user_s = 0;  // all threads
  double system_s = 0;
  double cpu_s = 0;         // user and system
  double others_cpu_s = 0;  // all threads but the calling one
  double switches = 0;      // context switches of all threads, asked for or not

  friend OwnUsage operator-(const OwnUsage& a, const OwnUsage& b) {
    return {a.user_s - b.user_s, a.system_s - b.system_s, a.cpu_s - b.cpu_s,
            a.others_cpu_s - b.others_cpu_s, a.switches - b.switches};
  }
};

// To be called by the process's first thread.
OwnUsage own_usage();

// The largest resident memory that this process had, bytes.
double own_peak_bytes();

double seconds(const timeval& time);

}  // namespace weft::measure
