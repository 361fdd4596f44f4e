#include "verbs/event_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "port/calls.h"

namespace weft::verbs {
namespace {

// Of the pipe that has this end. Not valid without /proc.
port::Fd open_both_ends(int end) {
  std::array<char, 32> path{};
  (void)std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", end);
  return port::Fd{port::calls::open(path.data(), O_RDWR | O_NONBLOCK | O_CLOEXEC, 0)};
}

}  // namespace

// Blocking from the program's point of view until it says otherwise.
EventFd::EventFd() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  port::Fd read{ends[0]};
  port::Fd write{ends[1]};
  both_ = port::raise(open_both_ends(read.get()));
  if (!both_.valid()) {
    both_ = read.duplicate();
    write_ = port::raise(std::move(write));
    if (!both_.valid() || ::fcntl(write_.get(), F_SETFL, O_NONBLOCK) != 0) return;
  }
  shown_ = std::move(read);
}

void EventFd::close() {
  shown_.reset();
  both_.reset();
  write_.reset();
}

void EventFd::signal() const {
  const int to = write_.valid() ? write_.get() : both_.get();
  while (port::calls::write_word(to, 1) < 0) {
    // It has room for hundreds: nobody empties it in this moment.
    if (errno == EAGAIN) owed_.fetch_add(1, std::memory_order_relaxed);
    if (errno != EINTR) return;
  }
}

void EventFd::take() const {
  for (uint64_t owed = owed_.load(std::memory_order_relaxed); owed > 0;) {
    if (owed_.compare_exchange_weak(owed, owed - 1, std::memory_order_relaxed)) return;
  }
  uint64_t word = 0;
  while (port::calls::read_word(both_.get(), word) < 0) {
    if (errno == EAGAIN) {
      port::calls::wait_readable(both_.get());
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool EventFd::nonblocking() const {
  const int flags = ::fcntl(shown_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

}  // namespace weft::verbs
