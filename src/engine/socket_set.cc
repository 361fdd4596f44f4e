#include "engine/socket_set.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"
#include "port/calls.h"

namespace weft::engine {
namespace {

// epoll_wait(2) that does not wait, and is no cancellation point (see port/calls.h).
int epoll_now(int set, epoll_event* events, int most) {
  if constexpr (port::calls::kThroughLibc) {
    return port::calls::through_libc([&] { return ::epoll_wait(set, events, most, 0); });
  }
  return static_cast<int>(::syscall(SYS_epoll_pwait, set, events, most, 0, nullptr, size_t{8}));
}

}  // namespace

uint32_t SocketSet::interest(const EventHandler& handler) {
  return (handler.wants_read_ ? uint32_t{EPOLLIN} : 0U) |
         (handler.wants_write_ ? uint32_t{EPOLLOUT} : 0U);
}

bool SocketSet::control(int operation, EventHandler& handler) {
  counters_.epoll_ctl_calls.add();
  epoll_event e{};
  e.events = interest(handler);
  e.data.ptr = &handler;
  return ::epoll_ctl(set_.get(), operation, handler.fd_, &e) == 0;
}

void SocketSet::watch(EventHandler& handler, int fd, bool read, bool write) {
  if (outside() == &handler) {
    outside_.store(nullptr, std::memory_order_relaxed);
  } else if (handler.fd_ >= 0) {
    (void)control(EPOLL_CTL_DEL, handler);
  }
  handler.fd_ = fd;
  handler.wants_read_ = read;
  handler.wants_write_ = write;
  if (fd < 0) return;
  if (control(EPOLL_CTL_ADD, handler)) return;
  handler.fd_ = -1;
  WEFT_LOG(error,
           "descriptor %d cannot be watched: %s; what needs it fails. Remedy: raise "
           "fs.epoll.max_user_watches",
           fd, std::strerror(errno));
  throw std::bad_alloc{};
}

void SocketSet::update(EventHandler& handler, bool read, bool write) {
  if (handler.fd_ < 0 || (handler.wants_read_ == read && handler.wants_write_ == write)) return;
  handler.wants_read_ = read;
  handler.wants_write_ = write;
  if (outside() == &handler) {
    put_back();
  } else {
    (void)control(EPOLL_CTL_MOD, handler);
  }
}

void SocketSet::put_back() {
  EventHandler* const handler = outside();
  if (handler == nullptr) return;
  if (control(EPOLL_CTL_ADD, *handler)) {
    outside_.store(nullptr, std::memory_order_relaxed);
  } else if (!std::exchange(refused_, true)) {
    WEFT_LOG(warn,
             "descriptor %d cannot be watched: %s; until it can, its connection is looked after "
             "every millisecond. Remedy: raise fs.epoll.max_user_watches",
             handler->fd_, std::strerror(errno));
  }
}

int SocketSet::poll(std::span<epoll_event> events) {
  counters_.epoll_wait_calls.add();
  int n = epoll_now(set_.get(), events.data(), static_cast<int>(events.size()) - 1);
  EventHandler* const left_out = refused_ ? outside() : nullptr;
  if (left_out == nullptr) return n;
  // The bits of poll(2) are those of epoll.
  const auto found = static_cast<uint32_t>(
      port::calls::poll_now(left_out->fd_, static_cast<short>(interest(*left_out))));
  if ((found & (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return n;
  n = std::max(n, 0);
  events[static_cast<size_t>(n)] = {.events = found, .data = {.ptr = left_out}};
  return n + 1;
}

}  // namespace weft::engine
