// A stream's calls that look ahead (MSG_PEEK).
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "base/guarded.h"
#include "sdp/sockets/stream.h"

namespace weft::sdp {

// Of a call that looks ahead (MSG_PEEK): until so much is there, or the call has to end with less.
// A byte is there already, by which a sleep in the kernel would end at once.
void Stream::wait_for_all(Lock& lock, int fd, int flags, size_t wanted) {
  constexpr std::chrono::milliseconds kHandlers{10};  // they do not end the sleep
  using Clock = std::chrono::steady_clock;
  const Handlers::Ran ran;
  const auto limit = limit_of_receives(descriptor(fd));
  const auto until = limit ? Clock::now() + *limit : Clock::time_point::max();
  const auto all = [&] {
    const UrgentMark& mark = session_->urgent();
    const size_t bytes = mark.readable(session_->received().bytes());
    return bytes >= wanted || mark.until(bytes) < bytes;
  };
  while (!relayed_ && !all()) {
    session_->poll();
    if (all()) return;
    if (session_->offered() > 0) {
      receive_staged(lock, *session_, look_time_);
      continue;
    }
    if (session_->ended() || shut_ || !blocks(fd, flags)) return;
    if (ran.interrupts() || (limit && ran.any()) || Clock::now() >= until) return;
    session_->sleep(lock, kHandlers);
  }
}

ssize_t Stream::peek(std::span<const iovec> to) {
  const UrgentMark& mark = session_->urgent();
  const size_t skipped = mark.is_left_out() ? 1 : 0;
  const size_t readable = mark.until(mark.readable(session_->received().bytes()));
  size_t wanted = 0;
  for (const iovec& v : to) wanted += v.iov_len;
  std::vector<std::byte> bytes(std::min(wanted, readable));
  (void)session_->received().peek(bytes, skipped);
  size_t copied = 0;
  for (const iovec& v : to) {
    const size_t n = std::min(v.iov_len, bytes.size() - copied);
    if (!copy_guarded(v.iov_base, bytes.data() + copied, n)) {
      if (copied == 0) {
        errno = EFAULT;
        return -1;
      }
      break;
    }
    copied += n;
  }
  return static_cast<ssize_t>(copied);
}

}  // namespace weft::sdp
