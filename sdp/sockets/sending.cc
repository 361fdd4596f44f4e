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
#include "base/kept_errno.h"
#include "sdp/loop/cancellation.h"
#include "sdp/sockets/failed.h"
#include "sdp/sockets/look.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {

// One call, from its first byte to its last.
class Sending::Call {
 public:
  Call(Sending& sending, int fd, std::span<const iovec> from, int flags)
      : sending_(sending),
        session_(sending.session_),
        end_(sending.end_),
        waiting_(sending.waiting_),
        chooser_(sending.chooser_),
        fd_(fd),
        flags_(flags),
        pieces_(from),
        large_(pieces_.wanted() >= chooser_.least()),
        stopwatch_(large_) {
    // Urgent data goes by messages (spec/sdp 2).
    if (!is_urgent()) transfer_ = chooser_.choose(pieces_.wanted());
    if (transfer_ == Transfer::in_place && !blocks()) transfer_ = Transfer::copied;
    in_place_ = transfer_ == Transfer::in_place;
    may_lend_ = !is_urgent();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::optional<ssize_t> run();

 private:
  enum class Wait : uint8_t { over, at_end, would_block, interrupted };
  // How long the call takes, of those for which that matters.
  class Stopwatch {
   public:
    explicit Stopwatch(bool runs) {
      if (runs) begin_ = std::chrono::steady_clock::now();
    }
    std::chrono::nanoseconds time() const { return std::chrono::steady_clock::now() - begin_; }

   private:
    std::chrono::steady_clock::time_point begin_;
  };

  bool is_urgent() const { return (flags_ & MSG_OOB) != 0; }
  bool blocks() const { return end_.blocks(fd_, flags_); }
  bool has_room_or_end() { return !session_.out().room().empty() || !session_.out().writable(); }
  std::optional<ssize_t> go_on_relayed();
  bool write_to_peer(Bytes rest);
  bool lend_to_peer(Bytes rest);
  void copy(Bytes rest);
  Wait wait_for_room();
  bool sleep();
  ssize_t failure(Wait wait);
  ssize_t fail_at_end();
  ssize_t finish();

  Sending& sending_;
  Session& session_;
  const ProgramEnd& end_;
  Waiting& waiting_;
  TransferChooser& chooser_;
  const int fd_;
  const int flags_;
  Lock lock_{session_.lock};
  Handlers::Ran ran_;
  SleepsForRoom sleeps_;
  Pieces pieces_;
  const bool large_;
  const Stopwatch stopwatch_;
  Transfer transfer_ = Transfer::copied;
  bool in_place_ = false;  // the peer reads what is left
  bool may_lend_ = false;  // or this side writes it to a buffer of the peer's
  bool written_ = false;
  bool copied_ = false;
  bool faulted_ = false;
};

std::optional<ssize_t> Sending::send(int fd, std::span<const iovec> from, int flags) {
  if (end_.relayed()) return send_relayed(fd, from, flags);
  return Call{*this, fd, from, flags}.run();
}

std::optional<ssize_t> Sending::Call::run() {
  session_.completions().called();
  if (large_ && session_.out().pipelined()) session_.poll();
  // A call of no bytes fails behind the end, too.
  if (pieces_.wanted() == 0) {
    session_.poll();
    if (!session_.out().writable()) return fail_at_end();
  }
  for (Bytes rest = pieces_.rest(); !rest.empty() && !faulted_; rest = pieces_.rest()) {
    if (pieces_.done() == 0) ran_.begin_anew();
    if (end_.relayed()) return go_on_relayed();
    if (rest.size() >= chooser_.least() && (write_to_peer(rest) || lend_to_peer(rest))) continue;
    if (!session_.out().room().empty()) {
      copy(rest);
      continue;
    }
    const Wait wait = wait_for_room();
    if (wait == Wait::over) continue;
    if (pieces_.done() == 0) return failure(wait);
    break;
  }
  return finish();
}

// The kernel sends what is left.
std::optional<ssize_t> Sending::Call::go_on_relayed() {
  size_t done = pieces_.done();
  if (done > 0) sending_.note_zero_copy(flags_, true);
  lock_.unlock();
  if (done == 0) return sending_.send_relayed(fd_, pieces_.all(), flags_);
  if (blocks()) done += send_rest(end_.descriptor(fd_), pieces_.all(), done, flags_);
  return static_cast<ssize_t>(done);
}

// True if the rest was tried so, whatever has become of it.
bool Sending::Call::write_to_peer(Bytes rest) {
  if (!may_lend_ || !session_.out().may_write() || !blocks()) return false;
  const uint32_t n = send_written(lock_, session_, waiting_.look_time(), rest);
  may_lend_ = n > 0;
  written_ = written_ || may_lend_;
  pieces_.moved(n);
  return true;
}

bool Sending::Call::lend_to_peer(Bytes rest) {
  if (!in_place_) return false;
  const uint32_t n = send_in_place(lock_, session_, waiting_.look_time(), rest);
  // The peer is elsewhere: the rest of the call is copied, or it might never end.
  // One that offers a buffer instead is there.
  in_place_ = n == rest.size() || (may_lend_ && session_.out().may_write());
  pieces_.moved(n);
  return true;
}

void Sending::Call::copy(Bytes rest) {
  const MutableBytes room = session_.out().room();
  const size_t n = std::min(room.size(), rest.size());
  faulted_ = !copy_guarded(room.data(), rest.data(), n);
  if (faulted_) return;
  session_.out().filled(static_cast<uint32_t>(n));
  copied_ = true;
  pieces_.moved(n);
  if (n == room.size() && !(pieces_.all_done() && is_urgent())) session_.process();
}

Sending::Call::Wait Sending::Call::wait_for_room() {
  const bool looked = session_.poll();
  if (!session_.out().room().empty()) return Wait::over;
  if (!session_.out().writable()) return Wait::at_end;
  if (!blocks()) {
    waiting_.watch();
    if (!looked) session_.poll_behind_others();
    waiting_.hide_room(fd_);
    waiting_.keep_going();
    return has_room_or_end() ? Wait::over : Wait::would_block;
  }
  if (look(lock_, session_, waiting_.look_time(), [this] { return has_room_or_end(); })) {
    return Wait::over;
  }
  return sleep() ? Wait::over : Wait::interrupted;
}

// False, with errno: the call ends.
bool Sending::Call::sleep() {
  // Another thread may have given it away while this one looked.
  if (end_.relayed()) return true;
  waiting_.hide_room(fd_);
  waiting_.begin_sleep(false);
  bool slept = true;
  if (!has_room_or_end()) {
    lock_.unlock();
    slept = sleeps_.sleep(end_.descriptor(fd_), ran_, pieces_.done() > 0);
    const int error = errno;
    lock_.lock();
    errno = error;
  }
  waiting_.end_sleep(false);
  return slept;
}

ssize_t Sending::Call::failure(Wait wait) {
  if (wait == Wait::at_end) return fail_at_end();
  return wait == Wait::would_block ? failed(EAGAIN) : -1;
}

// Nothing can be sent any more.
ssize_t Sending::Call::fail_at_end() {
  const int error = session_.take_error();
  if (error != 0) waiting_.on_error_told(fd_);
  lock_.unlock();
  if (error != ECONNRESET && (flags_ & MSG_NOSIGNAL) == 0) (void)::raise(SIGPIPE);
  return failed(error != 0 ? error : EPIPE);
}

ssize_t Sending::Call::finish() {
  const size_t done = pieces_.done();
  if (is_urgent() && done > 0) session_.out().mark_urgent();
  session_.process();
  session_.poll();
  waiting_.keep_going();
  // Whoever waits for room next finds what this call has left.
  if (waiting_.watched() && !end_.relayed() && session_.out().room().empty() &&
      session_.out().writable()) {
    waiting_.hide_room(fd_);
  }
  if (large_ && pieces_.all_done() && !written_) {
    chooser_.record(transfer_, pieces_.wanted(), stopwatch_.time());
  }
  if (done > 0) sending_.note_zero_copy(flags_, copied_);
  waiting_.show_to_peer_here(lock_);
  if (faulted_ && done == 0) return failed(EFAULT);
  return static_cast<ssize_t>(done);
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
  return Queued{.all = static_cast<int>(session_.out().unacknowledged()),
                .unsent = static_cast<int>(session_.out().unsent())};
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
  const SameErrno same;
  // Who asks for reports waits for each of them.
  session_.step([&] { zero_copy_.sent(copied); });
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
