// Calls about urgent data of a connection (MSG_OOB, SO_OOBINLINE, SIOCATMARK), with the rules of
// urgent_mark.h. Who waits for it is told by waiting.h.
//
// Any thread, which has not the session's lock unless it is said.
#pragma once

#include <sys/uio.h>

#include <optional>
#include <span>

#include "sdp/rdma/session.h"
#include "sdp/sockets/in_place.h"
#include "sdp/sockets/program_end.h"
#include "sdp/sockets/waiting.h"

namespace weft::sdp {

class UrgentData {
 public:
  // `shadow` has SO_OOBINLINE as the program set it before.
  UrgentData(Session& session, const ProgramEnd& end, Waiting& waiting, int shadow)
      : session_(session), end_(end), waiting_(waiting), shadow_(shadow) {}

  // recv(2) with MSG_OOB, which never waits.
  std::optional<ssize_t> receive(int fd, std::span<const iovec> to, int flags);
  // With the lock, where the next byte is to be left out of what is read. False: a handler has to
  // end the call first, as a signal that is pending at the mark does in the kernel. `ran`: since
  // the call began.
  bool leave_out(SessionLock& lock, const Handlers::Ran& ran);
  // SO_OOBINLINE; the second one is that of the shadow.
  void set_in_line(int fd, bool in_line);
  void take_in_line();
  // With the lock: the same for a mirror whose bytes are those of the stream from now on.
  void put_in_line(int fd);
  // SIOCATMARK. Nothing: the kernel knows.
  std::optional<bool> at_mark();
  // What poll(2) or select(2) has to say, once there was urgent data. Nothing: the kernel knows.
  struct Polled {
    bool readable = false;
    bool urgent = false;
  };
  std::optional<Polled> polled(int fd);

 private:
  Session& session_;
  const ProgramEnd& end_;
  Waiting& waiting_;
  const int shadow_;
};

}  // namespace weft::sdp
