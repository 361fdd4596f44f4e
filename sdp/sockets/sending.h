// Calls that send: bytes go to the session's send buffers, or are read by the peer where they lie
// (Read ZCopy), by what either way costs; or to a buffer that the peer's program waits with (Write
// ZCopy). A call without room looks for a while, and then sleeps in ppoll(2) on the mirror. What
// MSG_ZEROCOPY promises of their memory is reported here, too.
//
// Any thread of the program, without the session's lock.
#pragma once

#include <sys/uio.h>

#include <optional>
#include <span>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/session.h"
#include "sdp/sockets/in_place.h"
#include "sdp/sockets/mirror_calls.h"
#include "sdp/sockets/pieces.h"
#include "sdp/sockets/program_end.h"
#include "sdp/sockets/transfer_chooser.h"
#include "sdp/sockets/waiting.h"
#include "sdp/sockets/zero_copy.h"

namespace weft::sdp {

class Sending {
 public:
  // `shadow` has SO_ZEROCOPY as the program set it.
  Sending(Session& session, const ProgramEnd& end, Waiting& waiting, int shadow)
      : session_(session), end_(end), waiting_(waiting), shadow_(shadow) {}
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  // Bytes, or -1 with errno. Nothing: the call is the kernel's to answer. `flags` are those of
  // send(2).
  std::optional<ssize_t> send(int fd, std::span<const iovec> from, int flags);
  std::optional<ssize_t> send_file(int fd, int file, off_t* offset, size_t count);
  // SDP_ZCOPY_THRESH.
  void set_threshold(ZcopyThreshold threshold);
  ZcopyThreshold threshold();

  // SIOCOUTQ: bytes that the peer has not got yet; of SIOCOUTQNSD: that are not on their way.
  struct Queued {
    int all = 0;
    int unsent = 0;
  };
  std::optional<Queued> queued();

  // SO_ZEROCOPY, of the shadow.
  void take_zero_copy();
  // The oldest report of MSG_ZEROCOPY, and where poll(2) sees that there is one.
  std::optional<ZeroCopy::Report> take_report();
  int reports_at() const { return zero_copy_.shown_at(); }
  // With the lock: there are no more.
  void close_reports() { zero_copy_.close(); }

 private:
  using Lock = SessionLock;
  class Call;
  std::optional<ssize_t> send_relayed(int fd, std::span<const iovec> from, int flags);
  void note_zero_copy(int flags, bool copied);

  Session& session_;
  const ProgramEnd& end_;
  Waiting& waiting_;
  const int shadow_;
  TransferChooser chooser_{ZcopyThreshold::of_process()};
  ZeroCopy zero_copy_;
};

}  // namespace weft::sdp
