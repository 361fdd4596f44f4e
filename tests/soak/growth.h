// Whether a process that lives for the whole of a soak takes more and more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <limits>

#include "tests/soak/ledger.h"

namespace weft::soak {

// Looks at one process now and then. What counts is the least of an early and of a late part of the
// time: in between, connections come and go.
class Growth {
 public:
  struct Least {
    uint64_t resident_kib = std::numeric_limits<uint64_t>::max();
    uint64_t descriptors = std::numeric_limits<uint64_t>::max();
  };

  explicit Growth(size_t worker) : worker_(worker) {}

  size_t worker() const { return worker_; }
  // `share` of the time is over.
  void look(pid_t pid, double share);
  // Complains of what is larger late than early, by more than comes and goes.
  void judge(Ledger& ledger) const;
  const Least& early() const { return early_; }
  const Least& late() const { return late_; }

 private:
  size_t worker_;
  Least early_;
  Least late_;
};

}  // namespace weft::soak
