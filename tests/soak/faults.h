// What is done to the processes of a soak from outside.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <random>

#include "tests/soak/ledger.h"

namespace weft::soak {

using Clock = std::chrono::steady_clock;

enum class Fault : uint8_t { kill, stop, slow_reader, no_descriptors, no_memory };
inline constexpr size_t kFaults = 5;
const char* name(Fault fault);

// One process that can be made to suffer, and is put right again.
class Victim {
 public:
  Victim(Worker& worker, pid_t pid) : worker_(&worker), pid_(pid) {}

  pid_t pid() const { return pid_; }
  bool suffers() const { return until_ != Clock::time_point{}; }
  // False when it could not be done; for `kill`, the process is dead.
  bool strike(Fault fault, std::chrono::milliseconds how_long);
  // Ends what is due.
  void relieve(Clock::time_point now);
  void relieve_now() { relieve(until_); }

 private:
  bool limit(int resource, uint64_t amount);

  Worker* worker_;
  pid_t pid_;
  Fault fault_{};
  Clock::time_point until_{};
};

}  // namespace weft::soak
