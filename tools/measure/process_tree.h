// A command's processes and threads, as they are seen from time to time.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "measure/process_files.h"

namespace weft::measure {

struct ThreadUsage {
  pid_t pid = 0;  // 0: several together
  pid_t thread = 0;
  std::string process;
  std::string name;
  unsigned threads = 1;  // how many this is of
  double cpu_s = 0;
  double user_s = 0;  // in ticks, mostly of 10 ms
  double system_s = 0;
  uint64_t voluntary = 0;
  uint64_t involuntary = 0;
};

// What processes have used, with the children that they waited for.
struct ProcessUsage {
  double user_s = 0;
  double system_s = 0;
  uint64_t voluntary = 0;
  uint64_t involuntary = 0;

  double cpu_s() const { return user_s + system_s; }
};

// Each look sees the threads that live then, so of a thread that ended it knows what that had used
// at the last look; one that lived between two looks it does not know at all.
class ProcessTree {
 public:
  // `self` adopts the command's orphans (PR_SET_CHILD_SUBREAPER). Children that it already has are
  // not the command's. `ticks` a second in the files. Threads that have ended are kept apart up to
  // `most_threads`; above, those of a name together.
  ProcessTree(ProcessFiles files, pid_t self, double ticks, size_t most_threads = 4096);

  // The command's first process.
  void begin(pid_t root) { root_ = root; }
  void look();

  // By CPU, the busiest first.
  std::vector<ThreadUsage> threads() const;
  // The largest VmHWM of a process, and the largest sum of VmRSS in one look; 0: none was seen.
  uint64_t peak_bytes() const { return peak_bytes_; }
  uint64_t peak_sum_bytes() const { return peak_sum_bytes_; }
  // Adopted orphans that have ended, for `self` to wait for. Of the last look.
  const std::vector<pid_t>& ended_orphans() const { return ended_orphans_; }
  // Of the last look: CPU of those that lived or were not waited for, and of all whom they waited
  // for.
  double cpu_s() const { return cpu_s_; }
  // Takes a look, and says what those have used that live on after the first process was waited
  // for, with their children that they have not waited for, and the names of the living. Without
  // ended_orphans(), for which `self` is to wait after this.
  std::pair<ProcessUsage, std::vector<std::string>> survivors();

 private:
  struct Key {
    pid_t pid = 0;
    pid_t thread = 0;
    uint64_t start = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  void find_below(pid_t top, std::map<pid_t, StatLine>& found) const;
  void find_processes();
  void look_at(pid_t pid, const StatLine& process);
  void look_at_thread(pid_t pid, pid_t thread, const std::string& process);
  void fold();
  double seconds(uint64_t ticks) const { return static_cast<double>(ticks) / ticks_; }

  ProcessFiles files_;
  pid_t self_;
  double ticks_;
  size_t most_threads_;
  pid_t root_ = 0;
  std::set<pid_t> foreign_;              // children of self_ that are not the command's
  std::map<pid_t, StatLine> processes_;  // alive at the last look
  std::map<Key, ThreadUsage> threads_;
  std::set<Key> alive_;
  std::map<std::pair<std::string, std::string>, ThreadUsage> folded_;
  std::vector<pid_t> ended_orphans_;
  uint64_t peak_bytes_ = 0;
  uint64_t peak_sum_bytes_ = 0;
  uint64_t sum_bytes_ = 0;
  double cpu_s_ = 0;
};

}  // namespace weft::measure
