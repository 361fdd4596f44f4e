// Between a TcpStream and the kernel when faults are injected (option fault, docs/faults.md): calls
// that move a part only, at any byte, and waits before bytes that come or go after a pause. Never
// loses or changes a byte, for TCP does not either.
//
// A wait is told as would_block by a socket that is ready, so a thread that waits with
// level-triggered epoll asks again at once. Each such call takes a nap, so that asking costs
// little.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fault_spec.h"
#include "base/io_vec.h"
#include "base/random.h"
#include "base/time.h"

namespace weft::port {

class FaultyStream {
 public:
  // `number`: other streams of the same spec have others.
  FaultyStream(const FaultSpec& spec, uint64_t number);
  // Nothing when the option is not set, or does nothing to streams.
  static std::unique_ptr<FaultyStream> of_process();

  // What the next call on the socket may move, at least a byte of what it could. Nothing: it is to
  // wait. Good until the next call.
  std::optional<std::span<const IoVec>> before_send(std::span<const IoVec> pieces);
  std::optional<std::span<const IoVec>> before_receive(int fd, std::span<const IoVec> pieces);
  // What came of it; 0 where it would have blocked.
  void sent(size_t bytes);
  void received(size_t bytes);

 private:
  // Of one way: nothing has moved for a while, something is there that has to wait, or it flows.
  struct Gate {
    bool flows = false;
    Time until = Time::never();
  };
  bool waits(Gate& gate, Time now);
  std::span<const IoVec> part_of(std::span<const IoVec> pieces);

  const FaultSpec spec_;
  SeededRandom random_;
  Gate out_;
  Gate in_;
  unsigned whole_;  // sends to come that are left alone
  Time last_sent_;
  size_t allowed_ = 0;  // bytes that the last call might have moved
  std::vector<IoVec> part_;
};

}  // namespace weft::port
