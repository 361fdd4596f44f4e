#include "sdp/sockets/epolled.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace weft::sdp {
namespace {

constexpr uint32_t kIn = EPOLLIN | EPOLLRDNORM;
constexpr uint32_t kOut = EPOLLOUT | EPOLLWRNORM;
constexpr uint32_t kAlways = EPOLLERR | EPOLLHUP;

// What can be told of without the kernel; it alone knows when an end was told.
bool is_simple(uint32_t events) {
  return (events & ~(kIn | kOut | kAlways | EPOLLRDHUP | EPOLLET)) == 0;
}

// And what can be registered without it.
bool is_level(uint32_t events) {
  return (events & ~(kIn | kOut | kAlways)) == 0;
}

}  // namespace

bool Epolled::is_behind() const {
  if (wanted_.is != kernel_.is) return true;
  return wanted_.is && (wanted_.event.events != kernel_.event.events ||
                        wanted_.event.data.u64 != kernel_.event.data.u64);
}

void Epolled::noted(int epoll, int operation, int fd, const epoll_event& event) {
  const bool is = operation != EPOLL_CTL_DEL;
  if (plain_) return;
  const bool known = set_ != nullptr && age_ == set_->age() && wanted_.is;
  if (known && (set_->number() != epoll || fd_ != fd)) return make_plain();
  if (!known && !is) return;
  if (!known) {
    set_ = EpollSet::make(epoll);
    if (set_ == nullptr) return;
    age_ = set_->age();
    fd_ = fd;
    listed_ = false;
    put_off_ = false;
  }
  wanted_ = kernel_ = {is, event};
  if (is && !is_simple(event.events)) return make_plain();
  anew_ = true;
}

// Of an end the kernel alone tells.
bool Epolled::may_put_off(int operation, const epoll_event& event) const {
  if (session_.in().ended() || session_.broken()) return false;
  switch (operation) {
    case EPOLL_CTL_DEL:
      return !wanted_.is || is_level(wanted_.event.events);
    case EPOLL_CTL_ADD:
      return is_level(event.events);
    case EPOLL_CTL_MOD:
      return is_level(event.events) && (!wanted_.is || is_level(wanted_.event.events));
    default:
      return false;
  }
}

std::optional<int> Epolled::control(EpollSet* set, int operation, int fd,
                                    const epoll_event& event) {
  // Of two calls at the same time nobody knows which one the kernel does first.
  if (calls_ > 0) make_plain();
  const bool knows = !plain_ && set_ != nullptr && is_of(*set_) && end_.direct();
  if (knows && set == set_ && fd == fd_ && may_put_off(operation, event)) {
    if (wanted_.is == (operation == EPOLL_CTL_ADD)) {
      errno = wanted_.is ? EEXIST : ENOENT;
      return -1;
    }
    const Registration before =
        std::exchange(wanted_, {.is = operation != EPOLL_CTL_DEL, .event = event});
    if (!put_off_ && is_behind()) put_off_ = set_->put_off(age_, fd_, kernel_.event.data.u64);
    if (put_off_ || !is_behind()) {
      list_if_ready();
      return 0;
    }
    wanted_ = before;
  }
  // The call is made on what the program knows.
  if (knows) bring_up();
  ++calls_;
  return std::nullopt;
}

// What the mirror shows to the kernel is what it would say.
uint32_t Epolled::ready() const {
  if (!wanted_.is) return 0;
  const uint32_t asked = wanted_.event.events;
  uint32_t found = 0;
  if (session_.in().shows_data()) found |= asked & kIn;
  // Edges of room are the kernel's to tell.
  if ((asked & EPOLLET) == 0 && mirror_.open() && !mirror_.hides_room()) found |= asked & kOut;
  return found;
}

void Epolled::list_if_ready() {
  if (listed_ || ready() == 0) return;
  listed_ = set_->put(age_, fd_);
}

void Epolled::shown() {
  if (!put_off_) return;
  if (session_.in().ended() || session_.broken()) {
    bring_up();
  } else {
    list_if_ready();
  }
}

bool Epolled::tells_without_token() {
  if (set_ == nullptr || plain_ || age_ != set_->age()) return false;
  if (!session_.in().shows_data() || session_.in().ended() || session_.broken() ||
      mirror_.hides_room()) {
    return false;
  }
  if (!listed_) listed_ = set_->put(age_, fd_);
  return listed_;
}

Epolled::Collected Epolled::collect(uint64_t age, EpollSet& set, epoll_event& event) {
  if (!is_of(set) || age != age_) return {};
  listed_ = false;
  if (plain_ || !end_.direct()) return {};
  event = wanted_.event;
  event.events = ready();
  if (event.events == 0) return {};
  if ((wanted_.event.events & EPOLLET) != 0) {
    const uint64_t pushed = session_.in().received().pushed();
    const bool news = std::exchange(anew_, false) || pushed != told_;
    told_ = pushed;
    return {.any = news};
  }
  listed_ = set.put(age_, fd_);
  return {.any = true, .lost_place = !listed_};
}

bool Epolled::set_right(EpollSet& set, epoll_event& event) {
  if (!is_of(set)) return true;
  if (!is_behind()) return true;
  bring_up();
  if (!wanted_.is) return false;
  event.events &= wanted_.event.events | kAlways;
  event.data = wanted_.event.data;
  return event.events != 0;
}

void Epolled::bring_up() {
  if (std::exchange(put_off_, false)) set_->told(fd_);
  if (!is_behind()) return;
  int operation = EPOLL_CTL_MOD;
  if (!wanted_.is) operation = EPOLL_CTL_DEL;
  if (!kernel_.is) operation = EPOLL_CTL_ADD;
  kernel_ = wanted_;
  // Its number may be another file's by now.
  if (end_.descriptor(fd_) != fd_) return;
  const int error = errno;
  (void)::syscall(SYS_epoll_ctl, set_->number(), operation, fd_, &wanted_.event);
  errno = error;
}

void Epolled::tell_kernel(EpollSet& set) {
  if (!is_of(set)) return;
  listed_ = false;
  bring_up();
}

void Epolled::make_plain() {
  if (std::exchange(plain_, true) || set_ == nullptr || age_ != set_->age()) return;
  bring_up();
}

}  // namespace weft::sdp
