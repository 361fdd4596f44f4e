// Starts the processes of a soak, makes them suffer, replaces the dead, and adds up what they say.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/soak/faults.h"
#include "tests/soak/growth.h"

namespace weft::soak {

struct Plan {
  unsigned seconds = 60;
  unsigned servers = 3;
  unsigned clients = 3;
  unsigned links = 8;       // of each client
  unsigned fault_ms = 150;  // from one fault to the next, on average; 0: none
  uint64_t seed = 1;
};

struct Totals {
  double seconds = 0;
  uint64_t connections = 0;
  uint64_t clean = 0;  // closed with everything answered
  uint64_t sends = 0;
  uint64_t writes = 0;
  uint64_t writes_with_immediate = 0;
  uint64_t reads = 0;
  uint64_t atomics = 0;
  uint64_t messages = 0;  // received
  uint64_t bytes_verified = 0;
  uint64_t refused_by_limits = 0;
  uint64_t refused_by_peer = 0;
  uint64_t wrong_keys = 0;
  uint64_t lost = 0;  // messages that were complete and did not arrive
  std::array<uint64_t, kFaults> faults{};
  // The sums of those that nobody killed.
  Growth::Least early{.resident_kib = 0, .descriptors = 0};
  Growth::Least late{.resident_kib = 0, .descriptors = 0};
};

class Supervisor {
 public:
  Supervisor(Ledger& ledger, const Plan& plan);
  // The whole soak. What went wrong is in the ledger.
  Totals run();

 private:
  struct Place {
    std::optional<Victim> victim;
    Clock::time_point restart{};
    uint64_t first_turns = 0;  // its number when it began
    uint64_t turns = 0;        // when it was last seen to make one
    Clock::time_point turned{};
    bool killed = false;
  };

  void start(size_t number);
  void bury();
  void look_after(Clock::time_point now);
  void strike(Clock::time_point now);
  void progress(Clock::time_point begun);
  void end();
  void compare_links(Totals& totals) const;
  // Of each kind, where time was enough for many.
  void ask_for_faults(const Totals& totals) const;

  Ledger& ledger_;
  const Plan plan_;
  std::vector<Place> places_;
  std::mt19937_64 random_;
  std::array<uint64_t, kFaults> faults_{};
  Clock::time_point next_fault_{};
  std::vector<Growth> growths_;  // of a server and a client that nobody kills
  uint32_t shown_ = 0;           // complaints
};

}  // namespace weft::soak
