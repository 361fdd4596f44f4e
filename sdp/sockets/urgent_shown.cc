#include "sdp/sockets/urgent_shown.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

#include "base/kept_errno.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

int control(int epoll, int operation, int fd, const epoll_event* event) {
  return static_cast<int>(
      ::syscall(SYS_epoll_ctl, epoll, operation, fd, const_cast<epoll_event*>(event)));
}

// Whether `epoll` waits at `fd`. Its number may be another file's by now, or it has let go of it.
bool waits_at(int epoll, int fd) {
  epoll_event nothing{};
  if (control(epoll, EPOLL_CTL_ADD, fd, &nothing) != 0) return errno == EEXIST;
  (void)control(epoll, EPOLL_CTL_DEL, fd, nullptr);
  return false;
}

void copy_owner(int from, int to) {
  f_owner_ex owner{};
  if (from < 0 || ::syscall(SYS_fcntl, from, F_GETOWN_EX, &owner) != 0) owner = {};
  (void)::syscall(SYS_fcntl, to, F_SETOWN_EX, &owner);
}

}  // namespace

// With the lock.
bool UrgentShown::open() {
  if (inner_) return true;
  SocketPair pair;
  if (closed_ || !pair.open()) return false;
  // What was shown is read like any byte.
  const int on = 1;
  (void)real().setsockopt(pair.outer.get(), SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  outer_ = out_of_the_way(std::move(pair.outer));
  inner_ = std::move(pair.inner);
  return static_cast<bool>(outer_);
}

// With the lock.
void UrgentShown::wait_here(int epoll, const epoll_event& event) {
  epoll_event own = event;
  own.events = EPOLLPRI | (event.events & (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE));
  if (control(epoll, EPOLL_CTL_ADD, outer_.get(), &own) == 0 || errno != EEXIST) return;
  (void)control(epoll, EPOLL_CTL_MOD, outer_.get(), &own);
}

void UrgentShown::note(int epoll, int operation, int fd, const epoll_event* event) {
  const std::lock_guard lock{lock_};
  const bool asks = operation != EPOLL_CTL_DEL && (event->events & EPOLLPRI) != 0;
  const SameErrno same;
  if (asks) {
    asked_[{epoll, fd}] = *event;
    if (outer_) wait_here(epoll, *event);
  } else if (asked_.erase({epoll, fd}) > 0 && outer_) {
    (void)control(epoll, EPOLL_CTL_DEL, outer_.get(), nullptr);
  }
}

void UrgentShown::signal(const UrgentMark& mark) {
  const std::lock_guard lock{lock_};
  signals_ = true;
  if (!shows_) told_ = mark.count();
}

bool UrgentShown::show(const UrgentMark& mark, int owned) {
  const std::lock_guard lock{lock_};
  const bool came = std::exchange(told_, mark.count()) != mark.count();
  const bool showed = std::exchange(shows_, mark.waits());
  if (came) g_any = true;
  if (inner_ && showed) drain();
  if (!came || !shows_ || (asked_.empty() && !signals_)) return came;
  const bool fresh = !inner_;
  if (!open()) return came;
  copy_owner(signals_ ? owned : -1, outer_.get());
  (void)real().send(inner_.get(), "", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL);
  if (!fresh) return came;
  for (auto i = asked_.begin(); i != asked_.end();) {
    const auto& [epoll, fd] = i->first;
    if (waits_at(epoll, fd)) {
      wait_here(epoll, i->second);
      ++i;
    } else {
      i = asked_.erase(i);
    }
  }
  return came;
}

// With the lock.
void UrgentShown::drain() {
  std::array<char, 64> bytes{};
  while (real().recv(outer_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
}

// Before the program has closed its last descriptor: an event of this one behind that would be of
// nothing. A child may have a copy, so that epolls keep it.
void UrgentShown::close() {
  const std::lock_guard lock{lock_};
  closed_ = true;
  if (!outer_) return;
  const SameErrno same;
  for (const auto& asked : asked_) {
    (void)control(asked.first.first, EPOLL_CTL_DEL, outer_.get(), nullptr);
  }
  outer_.reset();
  inner_.reset();
}

}  // namespace weft::sdp
