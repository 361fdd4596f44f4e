// Calls that receive, or look ahead (MSG_PEEK): data that the session has received is copied to the
// program's memory. Before that it is fetched where the peer only offers it (Read ZCopy), straight
// to the program's memory where that is large enough. A call that finds nothing may lend its memory
// to the peer for a moment (Write ZCopy), looks for a while, and then sleeps in the kernel's
// recv(2) on the mirror.
//
// Any thread of the program, without the session's lock.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <optional>
#include <span>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/session.h"
#include "sdp/sockets/in_place.h"
#include "sdp/sockets/mirror_calls.h"
#include "sdp/sockets/offers.h"
#include "sdp/sockets/pieces.h"
#include "sdp/sockets/program_end.h"
#include "sdp/sockets/urgent_data.h"
#include "sdp/sockets/waiting.h"

namespace weft::sdp {

class Receiving {
 public:
  Receiving(Session& session, const ProgramEnd& end, Waiting& waiting, UrgentData& urgent)
      : session_(session), end_(end), waiting_(waiting), urgent_(urgent) {}
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  // Bytes, or -1 with errno. Nothing: the call is the kernel's to answer. `flags` are those of
  // recv(2), without MSG_OOB and MSG_ERRQUEUE.
  std::optional<ssize_t> receive(int fd, std::span<const iovec> to, int flags);
  // SO_RCVLOWAT is that of `fd`, a descriptor of the mirror's other end.
  void take_low_water(int fd);
  // Bytes that receive() would find; of FIONREAD.
  std::optional<int> available();

 private:
  using Lock = SessionLock;
  bool may_take(int flags) const;
  bool ended() const { return session_.in().ended() || end_.shut_for_reading(); }
  // `ran`: since the call began. `has_some`: it has something to return.
  std::optional<ssize_t> wait(Lock& lock, int fd, int flags, bool has_some,
                              const Handlers::Ran& ran, SleepsForData& sleeps);
  bool sleep(Lock& lock, int fd, int flags, bool has_some, const Handlers::Ran& ran,
             SleepsForData& sleeps);
  size_t fetch_offered(Lock& lock, MutableBytes to);
  size_t lend(Lock& lock, int fd, int flags, MutableBytes to);
  // What take() came to.
  enum class Taken : uint8_t { all_there_is, faulted, interrupted };
  Taken take(Lock& lock, Pieces& to, int flags, const Handlers::Ran& begun);
  void wait_for_all(Lock& lock, int fd, int flags, size_t wanted, const Handlers::Ran& ran);
  ssize_t peek(std::span<const iovec> to, int flags);
  // How many bytes a call that waits waits for.
  size_t least(size_t wanted, int flags) const;
  bool takes_several(int flags) const { return (flags & MSG_WAITALL) != 0 || low_water_ > 1; }

  Session& session_;
  const ProgramEnd& end_;
  Waiting& waiting_;
  UrgentData& urgent_;
  std::atomic<int> low_water_{1};
  Offers offers_{OfferThreshold::of_process()};
};

}  // namespace weft::sdp
