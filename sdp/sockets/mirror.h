// The socket pair that stands for a connection: the program has one end of it in the place of its
// TCP socket, which stays beside it as the shadow: options and the own name are still asked of
// that.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/keepalive.h"
#include "sdp/loop/file.h"

namespace weft::sdp {

struct SocketPair {
  File inner;  // the library's end
  File outer;  // the program's

  // False with errno.
  bool open();
};

struct Mirror {
  File inner;                     // the library's end
  File shadow;                    // what `fd` was
  unsigned long long cookie = 0;  // of the other end

  // Puts a new pair's other end in the place of `fd`, with its flags, time limits and SO_RCVLOWAT.
  // False with errno; `fd` is then what it was.
  bool put_at(int fd);
};

// `file` comes in the place of `fd`, with the same of it. False with errno.
bool put_in_place(const File& file, int fd);

// SO_SNDBUF and SO_RCVBUF where the program has set them, else 0.
struct BufferSizes {
  uint32_t send = 0;
  uint32_t receive = 0;
};
BufferSizes chosen_buffer_sizes(int fd);

// SO_LINGER, if it is on: so long the end of it waits for the peer. 0 seconds: it is a reset.
std::optional<std::chrono::seconds> linger_of(int fd);
bool resets_at_close(int fd);

// SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT and TCP_USER_TIMEOUT.
Keepalive keepalive_of(int fd);

// What tells a socket from all others, whatever its number. 0 if it is none.
unsigned long long cookie_of(int fd);

}  // namespace weft::sdp
