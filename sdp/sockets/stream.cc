#include "sdp/sockets/stream.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/guarded.h"
#include "sdp/loop/cancellation.h"
#include "sdp/sockets/look.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/recent.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

// How long a message may take to the same process.
constexpr std::chrono::microseconds kMostOnItsWay{50};
// A smaller Read costs more than the copy.
constexpr size_t kLeastInPlace = 16 << 10;

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

ssize_t failed(int error) {
  errno = error;
  return -1;
}

size_t total(std::span<const iovec> pieces) {
  size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace

Stream::Stream(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session, File inner,
               const File& shadow, uint64_t cookie, std::function<void()> ended)
    : loop_(loop),
      fabric_(fabric),
      session_(std::move(session)),
      shadow_(shadow.get()),
      cookie_(cookie),
      ended_(std::move(ended)),
      mirror_(std::move(inner)) {}

Stream::~Stream() = default;

void Stream::start() {
  // A program with several threads may have closed it already.
  if (relay_ || ending_) return;
  // Its edges, for the kernel would tell of an end again and again.
  (void)loop_.watch(mirror_.fd(), EPOLLRDHUP | EPOLLET,
                    [this](uint32_t events) { on_inner(events); });
  const std::lock_guard lock{session_->lock};
  session_->on_news = [this] { on_news(); };
  session_->poll();
  keep_going();
}

void Stream::greet() {
  const std::lock_guard lock{session_->lock};
  session_->greet();
  session_->process();
  session_->poll();
}

void Stream::on_inner(uint32_t events) {
  if (relayed_) return;
  // It is also told of when both halves have ended, with data that the program still reads.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    Table::drop_closed(*this, cookie_);
    if (!Table::holds(*this)) return end();
  }
  if ((events & EPOLLRDHUP) != 0) {
    const std::lock_guard lock{session_->lock};
    session_->end_sending();
    session_->process();
    session_->poll();
    keep_going();
  }
}

void Stream::on_closed() {
  urgent_.close();
  loop_.post([self = shared_from_this()] { self->end(); });
}

// With the lock.
void Stream::on_news() {
  if (!relayed_ && !ending_) show_and_want();
}

bool Stream::look_for_news() {
  session_->completions().take(Completions::How::if_free);
  const std::unique_lock lock{session_->lock, std::try_to_lock};
  if (!lock.owns_lock() || relayed_ || ending_) return false;
  const bool news =
      session_->shows_data() || session_->ended() || mirror_.hides_room_that_is(*session_);
  show_urgent();
  if (news) show_state();
  return news;
}

void Stream::looked_at() {
  Recent::note(session_->completions());
  if (!looked_at_.load(std::memory_order_relaxed)) looked_at_ = true;
}

// With the lock: the mirror shows what is, and completions are taken when there is need. A thread
// that looks before it sleeps says itself when it sleeps.
void Stream::show_and_want() {
  session_->want((watched_ && (!looked_at_ || signals_)) || waiting_ > 0 ||
                 session_->unsent() > 0 || session_->busy());
  show_urgent();
  if (watched_ || waiting_ > 0) show_state();
}

// The same before the caller goes elsewhere, where the stream still has the session.
void Stream::keep_going() {
  if (relayed_ || ending_) return;
  show_and_want();
  if (session_->rest()) show_and_want();
  session_->told();
}

void Stream::watch() {
  watched_ = true;
  session_->set_stages_by_itself(true);
}

void Stream::show_state() {
  if (!mirror_.open()) return;
  const Readiness::For who{.edges = watched_, .takers = takers_ > 0};
  if (mirror_.show(*session_, who)) session_->completions().shown();
  if (session_->error() != 0) loop_.post([self = shared_from_this()] { self->show_error(); });
}

// On the loop's thread: a socket pair whose one end is closed with a byte in it that nobody read
// shows an error at its other end, as TCP does after a reset.
void Stream::show_error() {
  const std::lock_guard lock{session_->lock};
  if (relayed_ || ending_ || !mirror_.open()) return;
  if (session_->untold_error() == 0) {
    mirror_.show_room();
  } else if (!shut_for_writing_) {
    put_byte_into_inner(Table::descriptor_of(*this));
  }
  loop_.forget(mirror_.fd());
  mirror_.close();
}

// One of the program's: `fd`, unless that was closed since the call began. Its number may be
// another file's then. -1: it has none any more.
int Stream::descriptor(int fd) const {
  return Table::is_at(fd, *this) ? fd : Table::descriptor_of(*this);
}

void Stream::hide_room(int fd) {
  mirror_.hide_room(descriptor(fd));
}

void Stream::drop_tokens(int fd) {
  if (mirror_.has_tokens()) mirror_.drop_tokens(descriptor(fd));
}

bool Stream::blocks(int fd, int flags) const {
  if ((flags & MSG_DONTWAIT) != 0) return false;
  const long status = ::syscall(SYS_fcntl, descriptor(fd), F_GETFL, 0);
  return status < 0 || (status & O_NONBLOCK) == 0;
}

// Only the program's end can. Its number may be another file's at any time, a copy of it may not.
void Stream::put_byte_into_inner(int fd) {
  const File copy{static_cast<int>(::syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0))};
  if (!copy || cookie_of(copy.get()) != cookie_) return;
  (void)real().send(copy.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// A call has told of it: the mirror does not tell it again, and shows the end at once. The loop,
// which shows errors, may come too late for a program that asks without waiting.
void Stream::on_error_told(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  (void)real().getsockopt(descriptor(fd), SOL_SOCKET, SO_ERROR, &error, &size);
  if (mirror_.open()) mirror_.show_end();
}

std::optional<int> Stream::take_error(int fd) {
  const std::lock_guard lock{session_->lock};
  if (relayed_) return std::nullopt;
  session_->poll();
  const int error = session_->take_error();
  if (error != 0) on_error_told(fd);
  return error;
}

void Stream::about_to_wait(int fd) {
  if (relayed_ || watched_) return;
  const std::lock_guard lock{session_->lock};
  if (relayed_) return;
  watch();
  if (session_->room().empty() && session_->writable()) hide_room(fd);
  keep_going();
}

// The kernel sleeps in the program's call, with its rules for signals and time limits.
bool Stream::wait_for_data(Lock& lock, int fd, int flags, const Handlers::Ran& ran) {
  const int taker = (flags & MSG_PEEK) == 0 ? 1 : 0;
  ++waiting_;
  takers_ += taker;
  keep_going();
  bool slept = true;
  if (!may_take(flags) && session_->offered() == 0 && !session_->ended()) {
    lock.unlock();
    char token = 0;
    // A handler may have run while this looked, or when the lock was let go: the kernel's call
    // would not know.
    if (ran.interrupts()) {
      slept = false;
      errno = EINTR;
    } else {
      slept = real().recv(descriptor(fd), &token, 1, MSG_PEEK) >= 0;
    }
    const int error = errno;
    lock.lock();
    errno = error;
    // The session knows of it.
    if (!slept && error == ECONNRESET) slept = true;
  }
  --waiting_;
  takers_ -= taker;
  return slept;
}

bool Stream::wait_for_room(Lock& lock, int fd, const Handlers::Ran& ran, SleepForRoom& sleep) {
  // Another thread may have given it away while this one looked.
  if (relayed_) return true;
  ++waiting_;
  hide_room(fd);
  keep_going();
  bool slept = true;
  if (session_->room().empty() && session_->writable()) {
    lock.unlock();
    slept = sleep.sleep(descriptor(fd), ran);
    const int error = errno;
    lock.lock();
    errno = error;
  }
  --waiting_;
  return slept;
}

// A call with these flags finds something. One that looks ahead leaves the urgent byte where it is.
bool Stream::may_take(int flags) const {
  const size_t bytes = session_->received().bytes();
  return ((flags & MSG_PEEK) != 0 ? session_->urgent().readable(bytes) : bytes) > 0;
}

// With data, at the end, or with an error that the call ends with. A call that has some data
// already leaves the error to the next one.
std::optional<ssize_t> Stream::wait_to_receive(Lock& lock, int fd, int flags, bool has_some) {
  const auto ready = [this, flags] {
    return may_take(flags) || session_->offered() > 0 || session_->ended() || shut_;
  };
  const Handlers::Ran ran;
  for (;;) {
    if (relayed_) return std::nullopt;
    if (may_take(flags)) return 1;
    const bool looked = session_->poll();
    if (may_take(flags)) return 1;
    const bool waits = blocks(fd, flags);
    if (waits && session_->offered() > 0) return 1;
    drop_tokens(fd);
    if (session_->ended() || shut_) {
      const int error = has_some ? 0 : session_->take_read_error();
      if (error != 0) on_error_told(fd);
      return error != 0 ? failed(error) : 0;
    }
    if (!waits) {
      watch();
      if (!looked) session_->poll_behind_others();
      keep_going();
      if (may_take(flags) || session_->ended()) continue;
      return failed(EAGAIN);
    }
    if (look(lock, *session_, look_time_, ready)) continue;
    if (!wait_for_data(lock, fd, flags, ran)) return -1;
  }
}

std::optional<ssize_t> Stream::receive(int fd, std::span<const iovec> to, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return take_report() ? 0 : failed(EAGAIN);
  if (relayed_) return std::nullopt;
  if ((flags & MSG_OOB) != 0) return receive_urgent(fd, to, flags);
  const Handlers::Ran begun;
  Lock lock{session_->lock};
  session_->completions().called();
  ReceiveQueue& received = session_->received();
  size_t done = 0;
  const size_t wanted = total(to);
  if (wanted == 0) return 0;
  const bool takes = (flags & (MSG_PEEK | MSG_TRUNC)) == 0;
  size_t piece = 0;
  size_t at = 0;
  bool faulted = false;
  do {
    while (at == to[piece].iov_len) ++piece, at = 0;
    const MutableBytes rest{static_cast<std::byte*>(to[piece].iov_base) + at,
                            to[piece].iov_len - at};
    if (takes && offers_.worth(rest.size())) {
      const Handlers::Ran ran;
      const size_t n = receive_to_offer(lock, fd, flags, rest);
      at += n;
      done += n;
      if (n > 0) continue;
      // The waits below look at handlers that run from then on.
      if (ran.interrupts()) {
        if (done > 0) break;
        return failed(EINTR);
      }
    }
    const auto state = wait_to_receive(lock, fd, flags, done > 0);
    if (!state) {
      if (done == 0) return std::nullopt;
      lock.unlock();
      if (blocks(fd, flags)) done += receive_rest(descriptor(fd), to, done, flags);
      return static_cast<ssize_t>(done);
    }
    if (*state <= 0) {
      if (done > 0) break;
      return state;
    }
    if (received.empty() || !may_take(flags)) {
      // Who looks ahead gets what is offered behind an urgent byte without it.
      if (!received.empty()) session_->take(1);
      const size_t n = receive_offered(lock, takes ? rest : MutableBytes{});
      at += n;
      done += n;
      // Meanwhile another thread may have given it away: what has come behind that is the relay's.
      if (relayed_) continue;
    }
    if ((flags & MSG_PEEK) != 0 && may_take(flags)) {
      if ((flags & MSG_WAITALL) != 0) wait_for_all(lock, fd, flags, wanted);
      if (relayed_) continue;
      return peek(to);
    }
    while (done < wanted && !received.empty() && !(done > 0 && session_->urgent().is_next())) {
      if (at == to[piece].iov_len) {
        ++piece, at = 0;
        continue;
      }
      if (session_->urgent().is_left_out()) {
        if (!leave_out_urgent(lock, begun)) return failed(EINTR);
        continue;
      }
      const Bytes front = received.front().first(session_->urgent().until(received.front().size()));
      const size_t n = std::min(front.size(), to[piece].iov_len - at);
      auto* const place = static_cast<std::byte*>(to[piece].iov_base) + at;
      faulted = (flags & MSG_TRUNC) == 0 && !copy_guarded(place, front.data(), n);
      if (faulted) break;
      session_->take(n);
      at += n;
      done += n;
    }
    session_->process();
    if (done > 0 && session_->urgent().is_next()) break;
  } while (!faulted && (done == 0 || ((flags & MSG_WAITALL) != 0 && done < wanted)));
  if (!session_->shows_data() || mirror_.is_crowded()) drop_tokens(fd);
  keep_going();
  if (faulted && done == 0) return failed(EFAULT);
  return static_cast<ssize_t>(done);
}

// What the peer offers where it lies goes to the caller's memory, or is received then.
size_t Stream::receive_offered(Lock& lock, MutableBytes to) {
  if (to.size() >= kLeastInPlace) {
    if (const uint32_t n = receive_in_place(lock, *session_, look_time_, to); n > 0) return n;
  }
  receive_staged(lock, *session_, look_time_);
  return 0;
}

// Before a call sleeps, the peer may write to its memory for a moment.
size_t Stream::receive_to_offer(Lock& lock, int fd, int flags, MutableBytes to) {
  if (relayed_ || session_->readable()) return 0;
  session_->poll();
  if (session_->readable() || session_->ended() || shut_ || !blocks(fd, flags)) return 0;
  session_->ask_for_offers();
  if (!session_->may_offer() || !offers_.now()) return 0;
  const size_t n = receive_written(lock, *session_, look_time_, to);
  offers_.result(n > 0);
  return n;
}

std::optional<ssize_t> Stream::send(int fd, std::span<const iovec> from, int flags) {
  if (relayed_) return send_relayed(fd, from, flags);
  Lock lock{session_->lock};
  session_->completions().called();
  const auto ready = [this] { return !session_->room().empty() || !session_->writable(); };
  const Handlers::Ran ran;
  SleepForRoom sleep;
  const size_t wanted = total(from);
  Way way = (flags & MSG_OOB) != 0 ? Way::copied : way_.choose(wanted);
  if (way == Way::in_place && !blocks(fd, flags)) way = Way::copied;
  const Stopwatch stopwatch{wanted >= way_.least()};
  bool in_place = way == Way::in_place;
  bool written = false;
  // Urgent data goes by messages (spec/sdp 2).
  bool may_lend = (flags & MSG_OOB) == 0;
  if (wanted >= way_.least() && session_->pipelined()) session_->poll();
  bool faulted = false;
  bool copied = false;
  size_t done = 0;
  size_t piece = 0;
  size_t at = 0;
  while (piece < from.size()) {
    if (at == from[piece].iov_len) {
      ++piece, at = 0;
      continue;
    }
    if (relayed_) {
      if (done > 0) note_zero_copy(flags, true);
      lock.unlock();
      if (done == 0) return send_relayed(fd, from, flags);
      if (blocks(fd, flags)) done += send_rest(descriptor(fd), from, done, flags);
      return static_cast<ssize_t>(done);
    }
    const Bytes rest{static_cast<const std::byte*>(from[piece].iov_base) + at,
                     from[piece].iov_len - at};
    if (may_lend && rest.size() >= way_.least() && session_->may_write() && blocks(fd, flags)) {
      const uint32_t n = send_written(lock, *session_, look_time_, rest);
      may_lend = n > 0;
      written = written || may_lend;
      at += n;
      done += n;
      continue;
    }
    if (in_place && rest.size() >= way_.least()) {
      const uint32_t n = send_in_place(lock, *session_, look_time_, rest);
      // The peer is elsewhere: the rest of the call is copied, or it might never end.
      // One that offers a buffer instead is there.
      in_place = n == rest.size() || (may_lend && session_->may_write());
      at += n;
      done += n;
      continue;
    }
    const MutableBytes room = session_->room();
    if (!room.empty()) {
      const size_t n = std::min(room.size(), rest.size());
      faulted = !copy_guarded(room.data(), rest.data(), n);
      if (faulted) break;
      session_->filled(static_cast<uint32_t>(n));
      copied = true;
      at += n;
      done += n;
      const bool last = done == wanted;
      if (n == room.size() && !(last && (flags & MSG_OOB) != 0)) session_->process();
      continue;
    }
    const bool looked = session_->poll();
    if (!session_->room().empty()) continue;
    if (!session_->writable()) {
      if (done > 0) break;
      const int error = session_->take_error();
      if (error != 0) on_error_told(fd);
      lock.unlock();
      if (error != ECONNRESET && (flags & MSG_NOSIGNAL) == 0) (void)::raise(SIGPIPE);
      return failed(error != 0 ? error : EPIPE);
    }
    if (!blocks(fd, flags)) {
      watch();
      if (!looked) session_->poll_behind_others();
      hide_room(fd);
      keep_going();
      if (ready()) continue;
      if (done > 0) break;
      return failed(EAGAIN);
    }
    if (look(lock, *session_, look_time_, ready)) continue;
    if (!wait_for_room(lock, fd, ran, sleep)) {
      if (done > 0) break;
      return -1;
    }
  }
  if ((flags & MSG_OOB) != 0 && done > 0) session_->mark_urgent();
  session_->process();
  session_->poll();
  keep_going();
  // Whoever waits for room next finds what this call has left.
  if (watched_ && !relayed_ && session_->room().empty() && session_->writable()) {
    hide_room(fd);
  }
  if (wanted >= way_.least() && done == wanted && !written)
    way_.record(way, wanted, stopwatch.time());
  if (done > 0) note_zero_copy(flags, copied);
  show_to_peer_here(lock);
  if (faulted && done == 0) return failed(EFAULT);
  return static_cast<ssize_t>(done);
}

void Stream::is_peer_of(const std::shared_ptr<Stream>& other) {
  const std::lock_guard lock{session_->lock};
  peer_here_ = other;
}

// A program that talks to itself finds at once what it has sent, as with TCP.
void Stream::show_to_peer_here(Lock& lock) {
  const auto peer = peer_here_.lock();
  lock.unlock();
  if (!peer || !peer->watched()) return;
  // Another thread may have the adapter's engine for a moment.
  const auto until = std::chrono::steady_clock::now() + kMostOnItsWay;
  while (!peer->look_for_news() && std::chrono::steady_clock::now() < until) {
  }
}

void Stream::take_buffer_sizes() {
  const BufferSizes sizes = chosen_buffer_sizes(shadow_);
  const std::lock_guard lock{session_->lock};
  session_->limit_buffers(sizes.send, sizes.receive);
}

std::optional<ssize_t> Stream::send_file(int fd, int file, off_t* offset, size_t count) {
  if (relayed_) return std::nullopt;
  // sendfile(2) is no cancellation point.
  const HoldCancellation hold;
  std::array<std::byte, 64 << 10> bytes;
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

void Stream::set_threshold(ZcopyThreshold threshold) {
  const std::lock_guard lock{session_->lock};
  way_.set_threshold(threshold);
}

ZcopyThreshold Stream::threshold() {
  const std::lock_guard lock{session_->lock};
  return way_.threshold();
}

bool Stream::shutdown(int fd, int how) {
  Lock lock{session_->lock};
  if (relayed_) return true;
  session_->poll();
  const bool connected = !is_over();
  if (how == SHUT_WR || how == SHUT_RDWR) {
    // What is in it then says later that there was an error, and nothing can be put there any more.
    if (!std::exchange(shut_for_writing_, true) && mirror_.open()) {
      mirror_.show_room();
      put_byte_into_inner(fd);
    }
    session_->end_sending();
  }
  if (how == SHUT_RD || how == SHUT_RDWR) shut_ = true;
  if (shut_ && shut_for_writing_) session_->refuse_data();
  session_->process();
  session_->poll();
  keep_going();
  show_to_peer_here(lock);
  if (!connected) errno = ENOTCONN;
  return connected;
}

// Of TCP's states it is the last one.
bool Stream::is_over() const {
  return session_->error() != 0 || session_->finished();
}

int Stream::tcp_state() {
  const std::lock_guard lock{session_->lock};
  session_->poll();
  if (is_over()) return TCP_CLOSE;
  if (session_->got_end()) return session_->ending() ? TCP_LAST_ACK : TCP_CLOSE_WAIT;
  return session_->ending() ? TCP_FIN_WAIT2 : TCP_ESTABLISHED;
}

std::optional<int> Stream::available() {
  if (relayed_) return std::nullopt;
  const std::lock_guard lock{session_->lock};
  if (!session_->poll()) session_->poll_behind_others();
  keep_going();
  const size_t bytes =
      session_->urgent().counted(session_->received().bytes() + session_->offered());
  return static_cast<int>(std::min<size_t>(bytes, INT32_MAX));
}

void Stream::relay_from_now(int fd) {
  const std::lock_guard lock{session_->lock};
  if (relayed_ || ending_ || !mirror_.open()) return;
  mirror_.clear(fd);
  urgent_.close();
  put_urgent_in_line(fd);
  relayed_ = true;
  session_->relayed();
  loop_.post([self = shared_from_this()] { self->start_relay(); });
}

void Stream::start_relay() {
  if (ending_) return;
  loop_.forget(mirror_.fd());
  relay_ = std::make_unique<Relay>(loop_, fabric_, session_, mirror_.hand_over(), shadow_,
                                   std::move(ended_));
  relay_->start();
}

void Stream::end() {
  {
    const std::lock_guard lock{session_->lock};
    if (ending_ || relayed_) return;
    ending_ = true;
    if (resets_at_close(shadow_)) session_->abort();
    loop_.forget(mirror_.fd());
    mirror_.close();
    zero_copy_.close();
  }
  fabric_.close(session_);
  loop_.post(std::exchange(ended_, nullptr));
}

}  // namespace weft::sdp
