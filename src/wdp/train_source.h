// What has datagrams to say on a socket: a UC connection, a queue pair of UD or RD, or a channel.
// The socket's driver asks each in its turn (docs/design/09).
#pragma once

#include "base/time.h"
#include "wdp/train.h"

namespace weft::wdp {

// Engine holder calls.
class TrainSource {
 public:
  virtual bool ready(Time now) = 0;
  // Adds datagrams to the train, which is empty. It may stay empty: a request was at fault, a probe
  // was over. Then ready() tells whether there is anything else.
  virtual void fill(Train& train, Time now) = 0;
  // fill() would write no data, but what somebody waits for.
  virtual bool urgent(Time now) const = 0;
  // The kernel has all that fill() wrote.
  virtual void llp_took_all(Time now) = 0;
  // The kernel refused a datagram: the path carries this much UDP payload at most.
  virtual void path_carries(size_t max_payload) = 0;
  // The kernel has what fill() wrote up to memory of the program's that it could not reach
  // (EFAULT), and not the rest: a request named it, or the peer's Read does.
  virtual void own_memory_lost(Time now) = 0;

 protected:
  ~TrainSource() = default;
};

}  // namespace weft::wdp
