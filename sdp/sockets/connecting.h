// Attempts to connect by SDP. A thread of the program's waits while the loop's connects; where
// nothing came of it, that is remembered for a while. Any thread, which holds handlers up (they run
// while it waits).
#pragma once

#include <memory>

#include "sdp/loop/loop.h"
#include "sdp/rdma/fabric.h"
#include "sdp/sockets/absent.h"
#include "sdp/sockets/awaited.h"

namespace weft::sdp {

class Connecting {
 public:
  Connecting(Loop& loop, Fabric& fabric) : loop_(loop), fabric_(fabric) {}
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  struct Made {
    std::shared_ptr<Session> session;  // nothing: it came to nothing
    Address own{};
    Fallback why = Fallback::none;
    int left = 0;  // errno of a call that ended before
  };
  // A connection for `fd`, which stays what it is. `remember`: what was not there a moment ago is
  // not tried.
  Made make(int fd, const Address& to, bool remember, const Awaited::Patience& patience);

 private:
  void close_unless_taken(const std::shared_ptr<Awaited>& awaited,
                          const std::weak_ptr<Session>& session);

  Loop& loop_;
  Fabric& fabric_;
  Absent absent_;
};

}  // namespace weft::sdp
