// What a call of the program's leaves to the kernel: to sleep until a mirror has room, and the rest
// of a call that has moved some bytes when its connection goes over to a relay.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

timespec to_timespec(std::chrono::nanoseconds time);

// SO_SNDTIMEO, where it is set: also of connect(2). SO_RCVTIMEO.
std::optional<std::chrono::microseconds> limit_of_sends(int fd);
std::optional<std::chrono::microseconds> limit_of_receives(int fd);

// The sleeps of one call, which have one time limit together.
//
// Sleeps in ppoll(2) as send(2) or recv(2) do, and puts nothing into the socket: that would be data
// once another process has it.
class Sleeps {
 public:
  // Whether there is a time limit. The first question begins it.
  bool limited(int fd);
  // False with errno: a handler ended it, or the time limit. `ran`: since the call began.
  // `has_moved`: it has something already.
  bool sleep(int fd, const Handlers::Ran& ran, bool has_moved);

 protected:
  // Until there is this `event`, of poll(2), within what `option` says.
  Sleeps(int16_t event, int option) : event_(event), option_(option) {}

 private:
  using Clock = std::chrono::steady_clock;
  const int16_t event_;
  const int option_;
  bool asked_ = false;
  std::optional<Clock::time_point> end_;
};

struct SleepsForRoom : Sleeps {
  SleepsForRoom() : Sleeps(POLLOUT, SO_SNDTIMEO) {}
};

struct SleepsForData : Sleeps {
  SleepsForData() : Sleeps(POLLIN, SO_RCVTIMEO) {}
};

// Bytes that are moved of `pieces` behind the first `done`, all of them if nothing is in the way.
size_t send_rest(int fd, std::span<const iovec> pieces, size_t done, int flags);
size_t receive_rest(int fd, std::span<const iovec> pieces, size_t done, int flags);

}  // namespace weft::sdp
