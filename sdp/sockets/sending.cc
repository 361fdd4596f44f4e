#include "sdp/sockets/sending.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <vector>

#include "base/guarded.h"
#include "sdp/loop/cancellation.h"
#include "sdp/sockets/failed.h"
#include "sdp/sockets/look.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

// How long a call takes, of those for which that matters.
class Stopwatch {
 public:
  explicit Stopwatch(bool runs) {
    if (runs) begin_ = std::chrono::steady_clock::now();
  }
  std::chrono::nanoseconds time() const { return std::chrono::steady_clock::now() - begin_; }

 private:
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

std::optional<ssize_t> Sending::send(int fd, std::span<const iovec> from, int flags) {
  if (end_.relayed()) return send_relayed(fd, from, flags);
  Lock lock{session_.lock};
  session_.completions().called();
  const auto ready = [this] { return has_room_or_end(); };
  Handlers::Ran ran;
  SleepsForRoom sleeps;
  Pieces pieces{from};
  const size_t wanted = pieces.wanted();
  const bool large = wanted >= chooser_.least();
  Transfer transfer = (flags & MSG_OOB) != 0 ? Transfer::copied : chooser_.choose(wanted);
  if (transfer == Transfer::in_place && !end_.blocks(fd, flags)) transfer = Transfer::copied;
  const Stopwatch stopwatch{large};
  bool in_place = transfer == Transfer::in_place;
  bool written = false;
  // Urgent data goes by messages (spec/sdp 2).
  bool may_lend = (flags & MSG_OOB) == 0;
  if (large && session_.pipelined()) session_.poll();
  bool faulted = false;
  bool copied = false;
  // A call of no bytes fails behind the end, too.
  if (wanted == 0) {
    session_.poll();
    if (!session_.writable()) return fail_at_end(lock, fd, flags);
  }
  for (Bytes rest = pieces.rest(); !rest.empty(); rest = pieces.rest()) {
    if (pieces.done() == 0) ran.begin_anew();
    if (end_.relayed()) {
      size_t done = pieces.done();
      if (done > 0) note_zero_copy(flags, true);
      lock.unlock();
      if (done == 0) return send_relayed(fd, from, flags);
      if (end_.blocks(fd, flags)) done += send_rest(end_.descriptor(fd), from, done, flags);
      return static_cast<ssize_t>(done);
    }
    if (may_lend && rest.size() >= chooser_.least() && session_.may_write() &&
        end_.blocks(fd, flags)) {
      const uint32_t n = send_written(lock, session_, waiting_.look_time(), rest);
      may_lend = n > 0;
      written = written || may_lend;
      pieces.moved(n);
      continue;
    }
    if (in_place && rest.size() >= chooser_.least()) {
      const uint32_t n = send_in_place(lock, session_, waiting_.look_time(), rest);
      // The peer is elsewhere: the rest of the call is copied, or it might never end.
      // One that offers a buffer instead is there.
      in_place = n == rest.size() || (may_lend && session_.may_write());
      pieces.moved(n);
      continue;
    }
    const MutableBytes room = session_.room();
    if (!room.empty()) {
      const size_t n = std::min(room.size(), rest.size());
      faulted = !copy_guarded(room.data(), rest.data(), n);
      if (faulted) break;
      session_.filled(static_cast<uint32_t>(n));
      copied = true;
      pieces.moved(n);
      const bool last = pieces.all_done();
      if (n == room.size() && !(last && (flags & MSG_OOB) != 0)) session_.process();
      continue;
    }
    const bool looked = session_.poll();
    if (!session_.room().empty()) continue;
    if (!session_.writable()) {
      if (pieces.done() > 0) break;
      return fail_at_end(lock, fd, flags);
    }
    if (!end_.blocks(fd, flags)) {
      waiting_.watch();
      if (!looked) session_.poll_behind_others();
      waiting_.hide_room(fd);
      waiting_.keep_going();
      if (ready()) continue;
      if (pieces.done() > 0) break;
      return failed(EAGAIN);
    }
    if (look(lock, session_, waiting_.look_time(), ready)) continue;
    if (!sleep(lock, fd, ran, sleeps, pieces.done() > 0)) {
      if (pieces.done() > 0) break;
      return -1;
    }
  }
  const size_t done = pieces.done();
  if ((flags & MSG_OOB) != 0 && done > 0) session_.mark_urgent();
  session_.process();
  session_.poll();
  waiting_.keep_going();
  // Whoever waits for room next finds what this call has left.
  if (waiting_.watched() && !end_.relayed() && session_.room().empty() && session_.writable()) {
    waiting_.hide_room(fd);
  }
  if (large && pieces.all_done() && !written) chooser_.record(transfer, wanted, stopwatch.time());
  if (done > 0) note_zero_copy(flags, copied);
  waiting_.show_to_peer_here(lock);
  if (faulted && done == 0) return failed(EFAULT);
  return static_cast<ssize_t>(done);
}

// Nothing can be sent any more.
ssize_t Sending::fail_at_end(Lock& lock, int fd, int flags) {
  const int error = session_.take_error();
  if (error != 0) waiting_.on_error_told(fd);
  lock.unlock();
  if (error != ECONNRESET && (flags & MSG_NOSIGNAL) == 0) (void)::raise(SIGPIPE);
  return failed(error != 0 ? error : EPIPE);
}

bool Sending::sleep(Lock& lock, int fd, const Handlers::Ran& ran, SleepsForRoom& sleeps,
                    bool has_moved) {
  // Another thread may have given it away while this one looked.
  if (end_.relayed()) return true;
  waiting_.hide_room(fd);
  waiting_.begin_sleep(false);
  bool slept = true;
  if (!has_room_or_end()) {
    lock.unlock();
    slept = sleeps.sleep(end_.descriptor(fd), ran, has_moved);
    const int error = errno;
    lock.lock();
    errno = error;
  }
  waiting_.end_sleep(false);
  return slept;
}

std::optional<ssize_t> Sending::send_file(int fd, int file, off_t* offset, size_t count) {
  if (end_.relayed()) return std::nullopt;
  // What was read of a pipe or a socket, and could not be sent, cannot be put back. The kernel
  // refuses them, too.
  if (::lseek(file, 0, SEEK_CUR) < 0) return std::nullopt;
  // sendfile(2) is no cancellation point.
  const HoldCancellation hold;
  constexpr size_t kAtATime = 64 << 10;
  std::vector<std::byte> bytes(std::min(count, kAtATime));
  size_t done = 0;
  while (done < count) {
    const size_t n = std::min(count - done, bytes.size());
    const ssize_t got = offset != nullptr ? ::pread(file, bytes.data(), n, *offset)
                                          : ::syscall(SYS_read, file, bytes.data(), n);
    if (got <= 0) return done > 0 || got == 0 ? static_cast<ssize_t>(done) : -1;
    const iovec piece{bytes.data(), static_cast<size_t>(got)};
    const auto sent = send(fd, {&piece, 1}, 0);
    const ssize_t taken = sent.value_or(-1);
    // What was read and not sent is read again by the next call.
    if (offset == nullptr && taken < got) {
      const int error = errno;
      (void)::lseek(file, std::max<ssize_t>(taken, 0) - got, SEEK_CUR);
      errno = error;
    }
    // It is relayed since: the rest is the kernel's.
    if (!sent && done == 0) return std::nullopt;
    if (taken < 0) return done > 0 ? static_cast<ssize_t>(done) : taken;
    if (offset != nullptr) *offset += taken;
    done += static_cast<size_t>(taken);
    if (taken < got) break;
  }
  return static_cast<ssize_t>(done);
}

std::optional<Sending::Queued> Sending::queued() {
  if (end_.relayed()) return std::nullopt;
  const std::lock_guard lock{session_.lock};
  session_.poll();
  waiting_.keep_going();
  return Queued{.all = static_cast<int>(session_.unacknowledged()),
                .unsent = static_cast<int>(session_.unsent())};
}

void Sending::set_threshold(ZcopyThreshold threshold) {
  const std::lock_guard lock{session_.lock};
  chooser_.set_threshold(threshold);
}

ZcopyThreshold Sending::threshold() {
  const std::lock_guard lock{session_.lock};
  return chooser_.threshold();
}

// The kernel's call, which copies.
std::optional<ssize_t> Sending::send_relayed(int fd, std::span<const iovec> from, int flags) {
  if (!zero_copy_.counts(flags)) return std::nullopt;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.data());
  message.msg_iovlen = from.size();
  const ssize_t n = real().sendmsg(fd, &message, flags & ~MSG_ZEROCOPY);
  const std::lock_guard lock{session_.lock};
  if (n > 0) note_zero_copy(flags, true);
  return n;
}

// With the lock.
void Sending::note_zero_copy(int flags, bool copied) {
  if (!zero_copy_.counts(flags)) return;
  const int error = errno;
  // Who asks for reports waits for each of them.
  session_.step([&] { zero_copy_.sent(copied); });
  errno = error;
}

void Sending::take_zero_copy() {
  int on = 0;
  socklen_t size = sizeof on;
  if (real().getsockopt(shadow_, SOL_SOCKET, SO_ZEROCOPY, &on, &size) != 0) return;
  const std::lock_guard lock{session_.lock};
  zero_copy_.enable(on != 0);
}

std::optional<ZeroCopy::Report> Sending::take_report() {
  const std::lock_guard lock{session_.lock};
  return zero_copy_.take();
}

}  // namespace weft::sdp
