#include "sdp/sockets/urgent_data.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/guarded.h"
#include "sdp/sockets/failed.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {

std::optional<ssize_t> UrgentData::receive(int fd, std::span<const iovec> to, int flags) {
  const std::lock_guard lock{session_.lock};
  session_.completions().called();
  if (end_.relayed()) return std::nullopt;
  if (!session_.poll()) session_.poll_behind_others();
  UrgentMark& mark = session_.in().urgent();
  if (!mark.waits() || mark.in_line()) return failed(EINVAL);
  if (session_.error() != 0) return failed(ENOTCONN);
  const std::byte byte = mark.byte();
  if ((flags & MSG_PEEK) == 0) mark.read();
  if (!session_.in().shows_data()) waiting_.drop_tokens(fd);
  waiting_.keep_going();
  const auto place =
      std::find_if(to.begin(), to.end(), [](const iovec& v) { return v.iov_len > 0; });
  if (place == to.end()) return 0;
  if ((flags & MSG_TRUNC) == 0 && !copy_guarded(place->iov_base, &byte, 1)) return failed(EFAULT);
  return 1;
}

bool UrgentData::leave_out(SessionLock& lock, const Handlers::Ran& ran) {
  waiting_.show_urgent();
  // A handler may read the byte.
  lock.unlock();
  lock.lock();
  if (ran.interrupts()) return false;
  if (session_.in().urgent().is_left_out()) session_.in().take(1);
  waiting_.show_urgent();
  return true;
}

void UrgentData::set_in_line(int fd, bool in_line) {
  const std::lock_guard lock{session_.lock};
  session_.in().urgent().set_in_line(in_line);
  if (end_.relayed()) return put_in_line(end_.descriptor(fd));
  waiting_.keep_going();
}

void UrgentData::take_in_line() {
  int on = 0;
  socklen_t size = sizeof on;
  if (real().getsockopt(shadow_, SOL_SOCKET, SO_OOBINLINE, &on, &size) != 0) return;
  const std::lock_guard lock{session_.lock};
  session_.in().urgent().set_in_line(on != 0);
}

void UrgentData::put_in_line(int fd) {
  const int on = session_.in().urgent().in_line() ? 1 : 0;
  (void)real().setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

std::optional<bool> UrgentData::at_mark() {
  if (end_.relayed()) return std::nullopt;
  const std::lock_guard lock{session_.lock};
  if (!session_.poll()) session_.poll_behind_others();
  waiting_.keep_going();
  return session_.in().urgent().is_next();
}

// The mirror may be readable by nothing but an urgent byte.
std::optional<UrgentData::Polled> UrgentData::polled(int fd) {
  if (end_.relayed()) return std::nullopt;
  const std::lock_guard lock{session_.lock};
  if (end_.relayed()) return std::nullopt;
  const bool over = session_.in().ended() || end_.shut_for_reading();
  const bool readable = session_.in().shows_data() || over;
  if (!readable) waiting_.drop_tokens(fd);
  return Polled{.readable = readable, .urgent = session_.in().urgent().waits()};
}

}  // namespace weft::sdp
