// What /proc tells of processes and threads (proc(5)).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::measure {

// A line of the kind of /proc/PID/stat, of a process or of a thread.
struct StatLine {
  std::string name;
  char state = '?';
  pid_t parent = 0;
  uint64_t start = 0;  // ticks after the machine's start: tells a process from a later one
  uint64_t user = 0;   // ticks
  uint64_t system = 0;
  uint64_t children_user = 0;  // of children that were waited for, and theirs
  uint64_t children_system = 0;
};
std::optional<StatLine> parse_stat(const std::string& text);

// Of /proc/PID/status.
struct StatusLines {
  std::optional<uint64_t> peak_bytes;      // VmHWM
  std::optional<uint64_t> resident_bytes;  // VmRSS
  uint64_t voluntary = 0;                  // context switches of that one thread
  uint64_t involuntary = 0;
};
StatusLines parse_status(const std::string& text);

// The files below `proc`, mostly "/proc". Nothing of what has gone.
class ProcessFiles {
 public:
  explicit ProcessFiles(std::string proc) : proc_(std::move(proc)) {}

  std::vector<pid_t> threads(pid_t pid) const;
  std::optional<StatLine> stat(pid_t pid) const;
  std::optional<StatLine> stat(pid_t pid, pid_t thread) const;
  StatusLines status(pid_t pid, pid_t thread) const;
  // CPU of a thread by the scheduler's own account, seconds.
  std::optional<double> exact_cpu_s(pid_t pid, pid_t thread) const;
  std::vector<pid_t> children(pid_t pid) const;

 private:
  std::vector<pid_t> children_by_all(pid_t pid) const;

  std::string proc_;
};

}  // namespace weft::measure
