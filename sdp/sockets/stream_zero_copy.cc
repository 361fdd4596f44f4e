// A stream's part in MSG_ZEROCOPY.
#include <sys/socket.h>

#include <cerrno>
#include <mutex>

#include "sdp/sockets/real.h"
#include "sdp/sockets/stream.h"

namespace weft::sdp {

// The kernel's call, which copies.
std::optional<ssize_t> Stream::send_relayed(int fd, std::span<const iovec> from, int flags) {
  if (!zero_copy_.counts(flags)) return std::nullopt;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.data());
  message.msg_iovlen = from.size();
  const ssize_t n = real().sendmsg(fd, &message, flags & ~MSG_ZEROCOPY);
  const std::lock_guard lock{session_->lock};
  if (n > 0) note_zero_copy(flags, true);
  return n;
}

// With the lock.
void Stream::note_zero_copy(int flags, bool copied) {
  if (!zero_copy_.counts(flags)) return;
  const int error = errno;
  zero_copy_.sent(copied);
  errno = error;
}

void Stream::take_zero_copy() {
  int on = 0;
  socklen_t size = sizeof on;
  if (real().getsockopt(shadow_, SOL_SOCKET, SO_ZEROCOPY, &on, &size) != 0) return;
  const std::lock_guard lock{session_->lock};
  zero_copy_.enable(on != 0);
}

std::optional<ZeroCopy::Report> Stream::take_report() {
  const std::lock_guard lock{session_->lock};
  return zero_copy_.take();
}

}  // namespace weft::sdp
