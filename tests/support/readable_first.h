// Which of two descriptors became readable first: what a thread that sleeps on either would see.
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace weft::test {

class ReadableFirst {
 public:
  // Neither is readable yet.
  ReadableFirst(int a, int b) : fds_{a, b} {
    for (const int fd : fds_) {
      epoll_event e{.events = EPOLLIN, .data = {.fd = fd}};
      (void)::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e);
    }
  }
  ~ReadableFirst() { ::close(epoll_); }
  ReadableFirst(const ReadableFirst&) = delete;
  ReadableFirst& operator=(const ReadableFirst&) = delete;

  // -1 when not both become so within ten seconds.
  int wait() const {
    for (const int fd : fds_) {
      pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&p, 1, 10'000) != 1) return -1;
    }
    // Linux lists those that are ready in the order in which they became so.
    epoll_event first{};
    return ::epoll_wait(epoll_, &first, 1, 0) == 1 ? first.data.fd : -1;
  }

 private:
  const int fds_[2];
  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
};

}  // namespace weft::test
