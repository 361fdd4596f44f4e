#include "sdp/sockets/receiving.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <vector>

#include "base/guarded.h"
#include "sdp/sockets/failed.h"
#include "sdp/sockets/look.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

// A smaller Read costs more than the copy.
constexpr size_t kLeastInPlace = 16 << 10;

}  // namespace

// A call with these flags finds something. One that looks ahead leaves the urgent byte where it is.
bool Receiving::may_take(int flags) const {
  const size_t bytes = session_.in().received().bytes();
  return ((flags & MSG_PEEK) != 0 ? session_.in().urgent().readable(bytes) : bytes) > 0;
}

void Receiving::take_low_water(int fd) {
  int bytes = 1;
  socklen_t size = sizeof bytes;
  if (real().getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, &size) == 0) low_water_ = bytes;
}

size_t Receiving::least(size_t wanted, int flags) const {
  if ((flags & MSG_WAITALL) != 0) return wanted;
  return std::min(wanted, static_cast<size_t>(std::max<int>(low_water_, 1)));
}

std::optional<ssize_t> Receiving::receive(int fd, std::span<const iovec> to, int flags) {
  Handlers::Ran begun;
  Lock lock{session_.lock};
  session_.completions().called();
  ReceiveQueue& received = session_.in().received();
  Pieces pieces{to};
  const bool takes = (flags & (MSG_PEEK | MSG_TRUNC)) == 0;
  SleepsForData sleeps;
  bool faulted = false;
  do {
    const MutableBytes rest = pieces.rest();
    if (takes && offers_.worth(rest.size())) {
      const size_t n = lend(lock, fd, flags, rest);
      pieces.moved(n);
      if (n > 0) continue;
    }
    const auto state = wait(lock, fd, flags, pieces.done() > 0, begun, sleeps);
    if (!state) {
      size_t done = pieces.done();
      if (done == 0) return std::nullopt;
      lock.unlock();
      if (end_.blocks(fd, flags)) done += receive_rest(end_.descriptor(fd), to, done, flags);
      return static_cast<ssize_t>(done);
    }
    if (*state <= 0) {
      if (pieces.done() > 0) break;
      return state;
    }
    if (pieces.done() == 0) begun.begin_anew();
    // A call of no bytes only waits until there are some.
    if (pieces.wanted() == 0) break;
    if (received.empty() || !may_take(flags)) {
      // Who looks ahead gets what is offered behind an urgent byte without it.
      if (!received.empty()) session_.in().take(1);
      pieces.moved(fetch_offered(lock, takes ? rest : MutableBytes{}));
      // Meanwhile another thread may have given it away: what has come behind that is the relay's.
      if (end_.relayed()) continue;
    }
    if ((flags & MSG_PEEK) != 0 && may_take(flags)) {
      const size_t least_seen = least(pieces.wanted(), flags);
      if (least_seen > 1) wait_for_all(lock, fd, flags, least_seen, begun);
      if (end_.relayed()) continue;
      return peek(to, flags);
    }
    const Taken taken = take(lock, pieces, flags, begun);
    if (taken == Taken::interrupted) return failed(EINTR);
    faulted = taken == Taken::faulted;
    session_.process();
    if (pieces.done() > 0 && session_.in().urgent().is_next()) break;
  } while (!faulted && pieces.done() < least(pieces.wanted(), flags));
  if (!session_.in().shows_data() || waiting_.mirror().is_crowded()) waiting_.drop_tokens(fd);
  waiting_.keep_going();
  if (faulted && pieces.done() == 0) return failed(EFAULT);
  return static_cast<ssize_t>(pieces.done());
}

// Copies what was received, up to an urgent byte.
Receiving::Taken Receiving::take(Lock& lock, Pieces& to, int flags, const Handlers::Ran& begun) {
  const ReceiveQueue& received = session_.in().received();
  while (!to.all_done() && !received.empty() &&
         !(to.done() > 0 && session_.in().urgent().is_next())) {
    if (session_.in().urgent().is_left_out()) {
      if (!urgent_.leave_out(lock, begun)) return Taken::interrupted;
      continue;
    }
    const Bytes front =
        received.front().first(session_.in().urgent().until(received.front().size()));
    const MutableBytes place = to.rest();
    const size_t n = std::min(front.size(), place.size());
    if ((flags & MSG_TRUNC) == 0 && !copy_guarded(place.data(), front.data(), n)) {
      return Taken::faulted;
    }
    session_.in().take(n);
    to.moved(n);
  }
  return Taken::all_there_is;
}

// With data, at the end, or with an error that the call ends with. A call that has some data
// already leaves the error to the next one.
std::optional<ssize_t> Receiving::wait(Lock& lock, int fd, int flags, bool has_some,
                                       const Handlers::Ran& ran, SleepsForData& sleeps) {
  const auto ready = [this, flags] {
    return may_take(flags) || session_.in().offered() > 0 || ended();
  };
  for (;;) {
    if (end_.relayed()) return std::nullopt;
    if (may_take(flags)) return 1;
    const bool looked = session_.poll();
    if (may_take(flags)) return 1;
    const bool waits = end_.blocks(fd, flags);
    if (waits && session_.in().offered() > 0) return 1;
    waiting_.drop_tokens(fd);
    if (ended()) {
      const int error = has_some ? 0 : session_.in().take_error();
      if (error != 0) waiting_.on_error_told(fd);
      return error != 0 ? failed(error) : 0;
    }
    if (!waits) {
      waiting_.watch();
      if (!looked) session_.poll_behind_others();
      waiting_.keep_going();
      if (may_take(flags) || session_.in().ended()) continue;
      return failed(EAGAIN);
    }
    if (look(lock, session_, waiting_.look_time(), ready)) continue;
    if (!sleep(lock, fd, flags, has_some, ran, sleeps)) return -1;
  }
}

// The kernel sleeps in the program's call, with its rules for signals and time limits. But its
// limit would begin anew with each sleep of a call that may need several, and it does not know that
// the call has some data.
bool Receiving::sleep(Lock& lock, int fd, int flags, bool has_some, const Handlers::Ran& ran,
                      SleepsForData& sleeps) {
  const bool takes = (flags & MSG_PEEK) == 0;
  waiting_.begin_sleep(takes);
  bool slept = true;
  if (!may_take(flags) && session_.in().offered() == 0 && !session_.in().ended()) {
    lock.unlock();
    char token = 0;
    // A handler may have run while this looked, or when the lock was let go: the kernel's call
    // would not know.
    if (ran.interrupts()) {
      slept = false;
      errno = EINTR;
    } else if (const int at = end_.descriptor(fd);
               has_some || (takes_several(flags) && sleeps.limited(at))) {
      slept = sleeps.sleep(at, ran, has_some);
    } else {
      slept = real().recv(at, &token, 1, MSG_PEEK) >= 0;
    }
    const int error = errno;
    lock.lock();
    errno = error;
    // The session knows of it.
    if (!slept && error == ECONNRESET) slept = true;
  }
  waiting_.end_sleep(takes);
  return slept;
}

// What the peer offers where it lies goes to the caller's memory, or is received then.
size_t Receiving::fetch_offered(Lock& lock, MutableBytes to) {
  LookTime& look_time = waiting_.look_time();
  if (to.size() >= kLeastInPlace) {
    if (const uint32_t n = receive_in_place(lock, session_, look_time, to); n > 0) return n;
  }
  receive_staged(lock, session_, look_time);
  return 0;
}

// Before a call sleeps, the peer may write to its memory for a moment.
size_t Receiving::lend(Lock& lock, int fd, int flags, MutableBytes to) {
  if (end_.relayed() || session_.in().readable()) return 0;
  session_.poll();
  if (session_.in().readable() || ended() || !end_.blocks(fd, flags)) return 0;
  session_.in().ask_for_offers();
  if (!session_.in().may_offer() || !offers_.now()) return 0;
  const size_t n = receive_written(lock, session_, waiting_.look_time(), to);
  offers_.result(n > 0);
  return n;
}

// Of a call that looks ahead: until so much is there, or the call has to end with less. A byte is
// there already, by which a sleep in the kernel would end at once.
void Receiving::wait_for_all(Lock& lock, int fd, int flags, size_t wanted,
                             const Handlers::Ran& ran) {
  constexpr std::chrono::milliseconds kHandlers{10};  // they do not end the sleep
  using Clock = std::chrono::steady_clock;
  const auto limit = limit_of_receives(end_.descriptor(fd));
  const auto until = limit ? Clock::now() + *limit : Clock::time_point::max();
  const auto all = [&] {
    const UrgentMark& mark = session_.in().urgent();
    const size_t bytes = mark.readable(session_.in().received().bytes());
    return bytes >= wanted || mark.until(bytes) < bytes;
  };
  while (!end_.relayed() && !all()) {
    session_.poll();
    if (all()) return;
    if (session_.in().offered() > 0) {
      receive_staged(lock, session_, waiting_.look_time());
      continue;
    }
    if (ended() || !end_.blocks(fd, flags)) return;
    // With SA_RESTART, too, for there is something to return.
    if (ran.any() || Clock::now() >= until) return;
    session_.sleep(lock, kHandlers);
  }
}

// With MSG_TRUNC it counts what it finds, and leaves the caller's memory alone.
ssize_t Receiving::peek(std::span<const iovec> to, int flags) {
  const UrgentMark& mark = session_.in().urgent();
  const size_t skipped = mark.is_left_out() ? 1 : 0;
  const size_t readable = mark.until(mark.readable(session_.in().received().bytes()));
  const size_t found = std::min(Pieces{to}.wanted(), readable);
  if ((flags & MSG_TRUNC) != 0) return static_cast<ssize_t>(found);
  std::vector<std::byte> bytes(found);
  (void)session_.in().received().peek(bytes, skipped);
  size_t copied = 0;
  for (const iovec& v : to) {
    const size_t n = std::min(v.iov_len, bytes.size() - copied);
    if (!copy_guarded(v.iov_base, bytes.data() + copied, n)) {
      if (copied == 0) return failed(EFAULT);
      break;
    }
    copied += n;
  }
  return static_cast<ssize_t>(copied);
}

std::optional<int> Receiving::available() {
  if (end_.relayed()) return std::nullopt;
  const std::lock_guard lock{session_.lock};
  if (!session_.poll()) session_.poll_behind_others();
  waiting_.keep_going();
  const size_t bytes =
      session_.in().urgent().counted(session_.in().received().bytes() + session_.in().offered());
  return static_cast<int>(std::min<size_t>(bytes, INT32_MAX));
}

}  // namespace weft::sdp
