// When a connection over TCP gives up a peer that is silent.
#pragma once

namespace weft {

// The numbers are those of TCP's options (tcp(7)).
struct Keepalive {
  // While nothing is on its way: seconds of silence until the peer's kernel is asked whether it is
  // there (TCP_KEEPIDLE). 0: it never is, and a host that lost its power is waited for for ever.
  int idle = 10;
  int interval = 2;  // seconds from one question to the next (TCP_KEEPINTVL)
  int count = 10;    // questions without an answer: the peer is lost (TCP_KEEPCNT)
  // What is on its way: milliseconds without an acknowledgement, or with a peer that takes no
  // bytes, until the peer is lost (TCP_USER_TIMEOUT). 0: as long as the kernel repeats what it
  // sent.
  int unacknowledged = 0;

  bool operator==(const Keepalive&) const = default;

  // Whether the kernel takes them.
  constexpr bool valid() const {
    constexpr int kMostSeconds = 32767;
    constexpr int kMostCount = 127;
    return idle >= 0 && idle <= kMostSeconds && unacknowledged >= 0 &&
           (idle == 0 ||
            (interval >= 1 && interval <= kMostSeconds && count >= 1 && count <= kMostCount));
  }
};

}  // namespace weft
