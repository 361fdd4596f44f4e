// Memory of the process at the other end, to be read from there and never to be written
// (spec/same-host 3.3).
#pragma once

#include <span>

#include "base/io_vec.h"
#include "wire/host_offer.h"

namespace weft::shared {

// A process, told by its number and by something that it alone has. A value.
class PeerMemory {
 public:
  // `witness`: address in that process where the nonce stands. Another process that got the number
  // meanwhile has it not.
  PeerMemory(int pid, uint64_t witness, const wire::HostOffer::Nonce& nonce)
      : pid_(pid), witness_(witness), nonce_(nonce) {}

  // Copies what begins at `address` there to the places `to`. One system call.
  struct Pulled {
    size_t bytes = 0;  // from the front
    int error = 0;     // errno where there are none: EFAULT is of either side's memory; ESRCH:
                       // it is not that process any more
  };
  Pulled pull(std::span<const IoVec> to, uint64_t address) const;
  // Does the kernel allow it, and is it that process?
  bool can_pull() const;

 private:
  int pid_;
  uint64_t witness_;
  wire::HostOffer::Nonce nonce_;
};

}  // namespace weft::shared
