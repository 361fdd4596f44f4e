// What a call of the program's leaves to the kernel: to sleep until a mirror has room, and the rest
// of a call that has moved some bytes when its connection goes over to a relay.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <span>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

timespec to_timespec(std::chrono::nanoseconds time);

// SO_SNDTIMEO, where it is set: also of connect(2). SO_RCVTIMEO.
std::optional<std::chrono::microseconds> limit_of_sends(int fd);
std::optional<std::chrono::microseconds> limit_of_receives(int fd);

// Sleeps as send(2) does, and puts nothing into the socket: that would be data once another process
// has it.
class SleepForRoom {
 public:
  // False with errno: a handler ended it, or a time limit, which is that of all sleeps of a call.
  // `ran`: since the call began.
  bool sleep(int fd, const Handlers::Ran& ran);

 private:
  using Clock = std::chrono::steady_clock;
  bool asked_ = false;
  std::optional<Clock::time_point> end_;
};

// Bytes that are moved of `pieces` behind the first `done`, all of them if nothing is in the way.
size_t send_rest(int fd, std::span<const iovec> pieces, size_t done, int flags);
size_t receive_rest(int fd, std::span<const iovec> pieces, size_t done, int flags);

}  // namespace weft::sdp
