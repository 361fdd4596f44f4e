// A stream's part in urgent data (MSG_OOB).
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/guarded.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

bool has_owner(int fd) {
  f_owner_ex owner{};
  return ::syscall(SYS_fcntl, fd, F_GETOWN_EX, &owner) == 0 && owner.pid != 0;
}

bool is_signalled(int fd) {
  const long status = ::syscall(SYS_fcntl, fd, F_GETFL, 0);
  return (status >= 0 && (status & O_ASYNC) != 0) || has_owner(fd);
}

ssize_t failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

// recv(2) with MSG_OOB, which never waits.
std::optional<ssize_t> Stream::receive_urgent(int fd, std::span<const iovec> to, int flags) {
  const std::lock_guard lock{session_->lock};
  session_->completions().called();
  if (relayed_) return std::nullopt;
  if (!session_->poll()) session_->poll_behind_others();
  UrgentMark& mark = session_->urgent();
  if (!mark.waits() || mark.in_line()) return failed(EINVAL);
  if (session_->error() != 0) return failed(ENOTCONN);
  const std::byte byte = mark.byte();
  if ((flags & MSG_PEEK) == 0) mark.read();
  if (!session_->shows_data()) drop_tokens(fd);
  keep_going();
  const auto place =
      std::find_if(to.begin(), to.end(), [](const iovec& v) { return v.iov_len > 0; });
  if (place == to.end()) return 0;
  if ((flags & MSG_TRUNC) == 0 && !copy_guarded(place->iov_base, &byte, 1)) return failed(EFAULT);
  return 1;
}

// With the lock, where the next byte is to be left out. False: a handler has to end the call first,
// as a signal that is pending at the mark does in the kernel. `ran`: since the call began.
bool Stream::leave_out_urgent(Lock& lock, const Handlers::Ran& ran) {
  show_urgent();
  // It may read the byte.
  lock.unlock();
  lock.lock();
  if (ran.interrupts()) return false;
  if (session_->urgent().is_left_out()) session_->take(1);
  show_urgent();
  return true;
}

// With the lock.
void Stream::show_urgent() {
  const UrgentMark& mark = session_->urgent();
  if (!urgent_.is_news(mark) || relayed_ || ending_) return;
  const bool polled = asks_for_urgent_ && mirror_.open();
  const int fd = Table::descriptor_of(*this);
  if (!urgent_.show(mark, polled ? -1 : fd)) return;
  session_->completions().shown();
  // Who sleeps in poll(2) wakes up by the mirror; the signal comes by that, too.
  if (polled && mark.waits()) mirror_.show_urgent();
}

void Stream::set_urgent_in_line(int fd, bool in_line) {
  const std::lock_guard lock{session_->lock};
  session_->urgent().set_in_line(in_line);
  if (relayed_) return put_urgent_in_line(fd);
  keep_going();
}

// As SO_OOBINLINE of the shadow has it.
void Stream::take_urgent_in_line() {
  int on = 0;
  socklen_t size = sizeof on;
  if (real().getsockopt(shadow_, SOL_SOCKET, SO_OOBINLINE, &on, &size) != 0) return;
  const std::lock_guard lock{session_->lock};
  session_->urgent().set_in_line(on != 0);
}

// Of a mirror whose bytes are those of the stream.
void Stream::put_urgent_in_line(int fd) {
  const int on = session_->urgent().in_line() ? 1 : 0;
  (void)real().setsockopt(descriptor(fd), SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

void Stream::take_owner(int fd) {
  if (!is_signalled(fd)) return;
  const std::lock_guard lock{session_->lock};
  if (relayed_) return;
  session_->poll();
  urgent_.signal(session_->urgent());
  signals_ = true;
  watch();
  keep_going();
}

void Stream::registered(int epoll, int operation, int fd, const epoll_event* event) {
  if (!relayed_) urgent_.note(epoll, operation, fd, event);
}

std::optional<bool> Stream::at_mark() {
  if (relayed_) return std::nullopt;
  const std::lock_guard lock{session_->lock};
  if (!session_->poll()) session_->poll_behind_others();
  keep_going();
  return session_->urgent().is_next();
}

bool Stream::urgent_waits_for_poll() {
  if (!asks_for_urgent_) asks_for_urgent_ = true;
  if (!UrgentShown::any() || relayed_) return false;
  const std::lock_guard lock{session_->lock};
  return session_->urgent().waits();
}

// The mirror may be readable by nothing but an urgent byte.
std::optional<Stream::Polled> Stream::polled(int fd) {
  if (relayed_) return std::nullopt;
  const std::lock_guard lock{session_->lock};
  if (relayed_) return std::nullopt;
  const bool over = session_->ended() || shut_;
  const bool readable = session_->shows_data() || over;
  if (!readable) drop_tokens(fd);
  return Polled{.readable = readable, .urgent = session_->urgent().waits()};
}

}  // namespace weft::sdp
