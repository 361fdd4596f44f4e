#include "abi/rsockets/poll.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <vector>

#include "abi/rsockets/deadline.h"
#include "abi/rsockets/sleeper.h"

namespace weft::rsockets {
namespace {

using Clock = std::chrono::steady_clock;

// So long a poll looks before it sleeps: an answer from another host takes about that.
constexpr std::chrono::microseconds kLook{20};

// What one call waits for.
class Watch {
 public:
  Watch(const Table& table, pollfd* fds, nfds_t count) : fds_(fds), count_(count), streams_(count) {
    for (nfds_t i = 0; i < count; ++i) {
      if (fds[i].fd >= 0) streams_[i] = table.find(fds[i].fd);
    }
  }

  // Fills in what is ready. How many, or -1.
  int look() {
    int ready = 0;
    bool has_others = false;
    for (nfds_t i = 0; i < count_; ++i) {
      fds_[i].revents = 0;
      if (streams_[i] != nullptr) {
        fds_[i].revents = streams_[i]->ready(fds_[i].events);
        ready += fds_[i].revents != 0 ? 1 : 0;
      } else {
        has_others = has_others || fds_[i].fd >= 0;
      }
    }
    if (!has_others) return ready;
    const int others = wait_for_others(nullptr, 0);
    return others < 0 ? -1 : ready + others;
  }

  // Sleeps until look() may find more, or for `timeout` ms, or until a signal: -1 then.
  int sleep(Sleeper& sleeper, int timeout) {
    bool ready = false;
    Armed armed{*this, sleeper};
    std::vector<pollfd> wakers{{sleeper.fd(), POLLIN, 0}};
    for (; armed.count < count_ && !ready; ++armed.count) {
      if (streams_[armed.count] == nullptr) continue;
      const std::optional<int> fd = streams_[armed.count]->arm(fds_[armed.count].events, sleeper);
      if (fd) wakers.push_back({*fd, POLLIN, 0});
      ready = !fd;
    }
    return ready ? 0 : wait_for_others(&wakers, timeout);
  }

 private:
  // The first sockets that are to be disarmed, also when the thread is cancelled.
  struct Armed {
    Armed(Watch& w, Sleeper& s) : watch(w), sleeper(s) {}
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;
    ~Armed() {
      for (nfds_t i = 0; i < count; ++i) {
        if (watch.streams_[i] != nullptr) watch.streams_[i]->disarm(sleeper);
      }
      sleeper.clear();
    }
    Watch& watch;
    Sleeper& sleeper;
    nfds_t count = 0;
  };

  // poll(2) of the descriptors that are no rsockets, with `wakers` beside them. How many of the
  // former are ready.
  int wait_for_others(const std::vector<pollfd>* wakers, int timeout) {
    std::vector<pollfd> all;
    if (wakers != nullptr) all = *wakers;
    const size_t first = all.size();
    for (nfds_t i = 0; i < count_; ++i) {
      if (streams_[i] == nullptr) all.push_back(fds_[i]);
    }
    if (::poll(all.data(), all.size(), timeout) < 0) return -1;
    int ready = 0;
    auto at = all.begin() + static_cast<std::ptrdiff_t>(first);
    for (nfds_t i = 0; i < count_; ++i) {
      if (streams_[i] != nullptr) continue;
      fds_[i].revents = at->revents;
      ready += at->revents != 0 ? 1 : 0;
      ++at;
    }
    return ready;
  }

  pollfd* fds_;
  nfds_t count_;
  std::vector<std::shared_ptr<Stream>> streams_;
};

}  // namespace

int poll(const Table& table, pollfd* fds, nfds_t count, int timeout) {
  Watch watch{table, fds, count};
  const auto began = Clock::now();
  Deadline deadline;
  if (timeout >= 0) deadline = began + std::chrono::milliseconds{timeout};
  for (;;) {
    const int ready = watch.look();
    if (ready != 0 || timeout == 0) return ready;
    if (Clock::now() - began < kLook) continue;
    const int left = left_of(deadline);
    if (left == 0) return 0;
    thread_local Sleeper sleeper;
    if (watch.sleep(sleeper, left) < 0) return -1;
  }
}

}  // namespace weft::rsockets
