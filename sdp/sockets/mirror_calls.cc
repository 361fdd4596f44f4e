#include "sdp/sockets/mirror_calls.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// `move` is told a place, and returns how many bytes of it are moved.
template <class Move>
size_t each_rest(std::span<const iovec> pieces, size_t done, Move move) {
  size_t moved = 0;
  for (const iovec& piece : pieces) {
    const size_t skipped = std::min(done, piece.iov_len);
    done -= skipped;
    const size_t left = piece.iov_len - skipped;
    if (left == 0) continue;
    const ssize_t n = move(static_cast<char*>(piece.iov_base) + skipped, left);
    if (n > 0) moved += static_cast<size_t>(n);
    if (n < 0 || static_cast<size_t>(n) < left) break;
  }
  return moved;
}

std::optional<std::chrono::microseconds> time_limit(int fd, int option) {
  timeval limit{};
  socklen_t size = sizeof limit;
  if (real().getsockopt(fd, SOL_SOCKET, option, &limit, &size) != 0) return std::nullopt;
  if (limit.tv_sec == 0 && limit.tv_usec == 0) return std::nullopt;
  return seconds{limit.tv_sec} + std::chrono::microseconds{limit.tv_usec};
}

}  // namespace

timespec to_timespec(nanoseconds time) {
  const auto whole = std::chrono::duration_cast<seconds>(time);
  return {whole.count(), (time - whole).count()};
}

std::optional<std::chrono::microseconds> limit_of_sends(int fd) {
  return time_limit(fd, SO_SNDTIMEO);
}

std::optional<std::chrono::microseconds> limit_of_receives(int fd) {
  return time_limit(fd, SO_RCVTIMEO);
}

bool Sleeps::limited(int fd) {
  if (!std::exchange(asked_, true)) {
    if (const auto limit = time_limit(fd, option_)) end_ = Clock::now() + *limit;
  }
  return end_.has_value();
}

bool Sleeps::sleep(int fd, const Handlers::Ran& ran, bool has_moved) {
  (void)limited(fd);
  for (;;) {
    // The kernel's rule: with a time limit SA_RESTART does not count, nor where there is something
    // to return.
    if (ran.interrupts() || ((end_ || has_moved) && ran.any())) {
      errno = EINTR;
      return false;
    }
    const nanoseconds left = end_ ? std::max<nanoseconds>(*end_ - Clock::now(), {}) : nanoseconds{};
    const timespec most = to_timespec(left);
    pollfd waited{fd, event_, 0};
    const int n = real().ppoll(&waited, 1, end_ ? &most : nullptr, nullptr);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EAGAIN;
    if (n > 0 && (waited.revents & POLLNVAL) != 0) errno = EBADF;
    return n > 0 && (waited.revents & POLLNVAL) == 0;
  }
}

// It is known by the count that it has ended early.
size_t send_rest(int fd, std::span<const iovec> pieces, size_t done, int flags) {
  return each_rest(pieces, done, [fd, flags](const char* from, size_t size) {
    return real().send(fd, from, size, flags | MSG_NOSIGNAL);
  });
}

size_t receive_rest(int fd, std::span<const iovec> pieces, size_t done, int flags) {
  return each_rest(pieces, done,
                   [fd, flags](char* to, size_t size) { return real().recv(fd, to, size, flags); });
}

}  // namespace weft::sdp
