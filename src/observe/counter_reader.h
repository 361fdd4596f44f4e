// Reads the counters of a running process (counter_memory.h). The kernel lets it where it would let
// a debugger look: the same user, and a process that has not forbidden it (prctl(2),
// PR_SET_DUMPABLE).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "port/fd.h"
#include "stats/table.h"

namespace weft::observe {

// The numbers as they were at one moment; each engine with its queue pairs is consistent in itself.
// Values stand where their rows stand in stats::table().
struct Snapshot {
  struct QueuePair {
    uint32_t qpn = 0;
    unsigned engine = 0;
    uint32_t last_terminate = 0;      // stats::LastTerminate::pack(), or 0
    std::optional<stats::Peer> peer;  // of its connection, if there is one; never of UD
    std::vector<uint64_t> values;
  };
  int64_t started_ns = 0;  // CLOCK_REALTIME
  std::vector<uint64_t> device;
  std::vector<std::vector<uint64_t>> engines;
  std::vector<QueuePair> queue_pairs;  // by number
};

enum class ReadError : uint8_t {
  none_there,     // the process shows no counters, or not to us
  other_version,  // it counts other things than this program knows
  never_still,    // stopped while it took counters from one place to another
};

// `pid` as this process sees it; 0: the calling process.
Result<Snapshot, ReadError> read_process(pid_t pid);
// The memory file of a process. Invalid when it has none.
port::Fd open_counters(pid_t pid);
// What is in it. `owner`: the process that must have made it, or 0.
Result<Snapshot, ReadError> read_counters(const port::Fd& file, uint32_t owner = 0);

}  // namespace weft::observe
