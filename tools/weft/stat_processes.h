// Which processes run on weft and let this user see what they count.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "observe/counter_reader.h"
#include "weft/sdp_sockets.h"

namespace weft::tools {

struct CountingProcess {
  pid_t pid = 0;
  std::string program;
  observe::Snapshot counters;
};

struct FoundProcesses {
  std::vector<CountingProcess> processes;  // by number
  std::vector<SdpProcess> sockets;         // those with libweft-sdp.so
  bool empty() const { return processes.empty() && sockets.empty(); }
  std::vector<std::string> complaints;  // about those that were asked for, a sentence each
};

// `wanted`: numbers and names of processes; none: all there are.
FoundProcesses find_counting(const std::vector<std::string>& wanted);

// The name of a program, as ps(1) has it but not cut. Empty when the process is gone.
std::string program_name(pid_t pid);

}  // namespace weft::tools
