#include "sdp/sockets/waiting.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "sdp/sockets/real.h"
#include "sdp/sockets/recent.h"

namespace weft::sdp {
namespace {

// How long a message may take to the same process.
constexpr std::chrono::microseconds kMostOnItsWay{50};
// By a loop that may be at rest.
constexpr std::chrono::milliseconds kMostUntilShown{1000};

bool has_owner(int fd) {
  f_owner_ex owner{};
  return ::syscall(SYS_fcntl, fd, F_GETOWN_EX, &owner) == 0 && owner.pid != 0;
}

bool is_signalled(int fd) {
  const long status = ::syscall(SYS_fcntl, fd, F_GETFL, 0);
  return (status >= 0 && (status & O_ASYNC) != 0) || has_owner(fd);
}

}  // namespace

Waiting::Waiting(Loop& loop, Session& session, const ProgramEnd& end, File inner,
                 std::function<void()> on_error)
    : loop_(loop),
      session_(session),
      end_(end),
      on_error_(std::move(on_error)),
      mirror_(std::move(inner)) {}

void Waiting::close_mirror() {
  loop_.forget(mirror_.fd());
  mirror_.close();
}

void Waiting::on_news() {
  if (end_.direct()) show_and_want();
}

// The mirror shows what is, and completions are taken when there is need. A thread that looks
// before it sleeps says itself when it sleeps.
void Waiting::show_and_want() {
  session_.want((watched_ && (!looked_at_ || signals_)) || sleepers_ > 0 ||
                session_.out().unsent() > 0 || session_.busy());
  show_urgent();
  if (watched_ || sleepers_ > 0) show_state();
}

void Waiting::keep_going() {
  if (!end_.direct()) return;
  show_and_want();
  if (session_.rest()) show_and_want();
  session_.told();
}

void Waiting::show_state() {
  if (!mirror_.open()) return;
  if (sleepers_ == 0 && !signals_ && epolled_.tells_without_token()) return;
  const Readiness::For who{.edges = watched_, .takers = takers_ > 0, .ends = asks_for_end_};
  if (mirror_.show(session_, who)) session_.completions().shown();
  epolled_.shown();
  if (session_.error() == 0) return;
  error_ = true;
  on_error_();
}

void Waiting::begin_sleep(bool takes) {
  ++sleepers_;
  if (takes) ++takers_;
  keep_going();
}

void Waiting::end_sleep(bool takes) {
  --sleepers_;
  if (takes) --takers_;
}

void Waiting::watch() {
  watched_ = true;
  session_.in().set_stages_by_itself(true);
}

void Waiting::about_to_wait(int fd, bool for_end) {
  if (end_.relayed()) return;
  if (!watched_ || (for_end && !asks_for_end_)) {
    const std::lock_guard lock{session_.lock};
    if (end_.relayed()) return;
    if (for_end) asks_for_end_ = true;
    watch();
    if (session_.out().room().empty() && session_.out().writable()) hide_room(fd);
    keep_going();
  }
  // Who asks without waiting is not to find a connection that is good, and is not.
  if (error_) error_shown_.wait(kMostUntilShown);
}

void Waiting::looked_at() {
  Recent::note(session_.completions());
  if (!looked_at_.load(std::memory_order_relaxed)) looked_at_ = true;
}

bool Waiting::look_for_news() {
  session_.completions().take(Completions::How::if_free);
  const std::unique_lock lock{session_.lock, std::try_to_lock};
  if (!lock.owns_lock() || !end_.direct()) return false;
  const bool news =
      session_.in().shows_data() || session_.in().ended() || mirror_.hides_room_that_is(session_);
  show_urgent();
  if (news) show_state();
  return news;
}

void Waiting::hide_room(int fd) {
  mirror_.hide_room(end_.descriptor(fd));
}

void Waiting::drop_tokens(int fd) {
  if (mirror_.has_tokens()) mirror_.drop_tokens(end_.descriptor(fd));
}

// A socket pair whose one end is closed with a byte in it that nobody read shows an error at its
// other end, as TCP does after a reset.
void Waiting::show_error() {
  const std::lock_guard lock{session_.lock};
  // Behind this, or where there is nothing to show.
  const Once::Comes comes{error_shown_};
  if (!end_.direct() || !mirror_.open()) return;
  if (session_.untold_error() == 0) {
    mirror_.show_room();
  } else if (!end_.shut_for_writing()) {
    end_.put_byte(end_.any_descriptor());
  }
  close_mirror();
}

// The loop, which shows errors, may come too late for a program that asks without waiting.
void Waiting::on_error_told(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  (void)real().getsockopt(end_.descriptor(fd), SOL_SOCKET, SO_ERROR, &error, &size);
  if (mirror_.open()) mirror_.show_end();
}

void Waiting::show_urgent() {
  const UrgentMark& mark = session_.in().urgent();
  if (!urgent_.is_news(mark) || !end_.direct()) return;
  const bool polled = asks_for_urgent_ && mirror_.open();
  const int fd = end_.any_descriptor();
  bool shows = false;
  session_.step([&] { shows = urgent_.show(mark, polled ? -1 : fd); });
  if (!shows) return;
  session_.completions().shown();
  // Who sleeps in poll(2) wakes up by the mirror; the signal comes by that, too.
  if (polled && mark.waits()) mirror_.show_urgent();
}

void Waiting::take_owner(int fd) {
  if (!is_signalled(fd)) return;
  const std::lock_guard lock{session_.lock};
  if (end_.relayed()) return;
  session_.poll();
  urgent_.signal(session_.in().urgent());
  signals_ = true;
  watch();
  keep_going();
}

void Waiting::registered(int epoll, int operation, int fd, const epoll_event* event) {
  if (end_.relayed()) return;
  urgent_.note(epoll, operation, fd, event);
  if (operation != EPOLL_CTL_DEL && (event->events & EPOLLRDHUP) != 0) about_to_wait(fd, true);
  const std::lock_guard lock{session_.lock};
  if (end_.relayed()) return;
  epolled_.noted(epoll, operation, fd, operation != EPOLL_CTL_DEL ? *event : epoll_event{});
  if (watched_) show_state();
}

std::optional<int> Waiting::control(EpollSet* set, int operation, int fd,
                                    const epoll_event& event) {
  const std::lock_guard lock{session_.lock};
  const auto status = epolled_.control(set, operation, fd, event);
  if (status == 0) show_state();
  return status;
}

void Waiting::control_ended() {
  const std::lock_guard lock{session_.lock};
  epolled_.control_ended();
}

bool Waiting::collect(uint64_t age, EpollSet& set, epoll_event& event) {
  const std::lock_guard lock{session_.lock};
  const auto collected = epolled_.collect(age, set, event);
  if (collected.lost_place) show_state();
  return collected.any;
}

bool Waiting::set_right(EpollSet& set, epoll_event& event) {
  const std::lock_guard lock{session_.lock};
  return epolled_.set_right(set, event);
}

void Waiting::tell_kernel(EpollSet& set) {
  const std::lock_guard lock{session_.lock};
  epolled_.tell_kernel(set);
  if (end_.direct()) show_state();
}

void Waiting::about_to_wait_elsewhere() {
  if (elsewhere_.exchange(true)) return;
  const std::lock_guard lock{session_.lock};
  epolled_.make_plain();
  if (end_.direct() && watched_) show_state();
}

bool Waiting::urgent_waits_for_poll() {
  if (!asks_for_urgent_) asks_for_urgent_ = true;
  if (!UrgentShown::any() || end_.relayed()) return false;
  const std::lock_guard lock{session_.lock};
  return session_.in().urgent().waits();
}

void Waiting::show_to_peer_here(SessionLock& lock) {
  const auto peer = peer_here_.lock();
  lock.unlock();
  if (!peer || !peer->watched()) return;
  // Another thread may have the adapter's engine for a moment.
  const auto until = std::chrono::steady_clock::now() + kMostOnItsWay;
  while (!peer->look_for_news() && std::chrono::steady_clock::now() < until) {
  }
}

}  // namespace weft::sdp
