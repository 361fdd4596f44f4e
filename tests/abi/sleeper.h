// Threads of a program that sleep inside a call.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weft::test {

// Waits until a thread of this process sleeps in the kernel; false when it is `done` before.
inline bool falls_asleep(const std::atomic<pid_t>& thread, const std::atomic<bool>& done) {
  while (!done.load()) {
    if (thread.load() != 0) {
      std::ifstream stat{"/proc/self/task/" + std::to_string(thread.load()) + "/stat"};
      std::string line;
      std::getline(stat, line);
      // "tid (name) S ...": the name may have anything in it.
      const size_t end = line.rfind(')');
      if (end != std::string::npos && line.compare(end, 3, ") S") == 0) return true;
    }
    std::this_thread::yield();
  }
  return false;
}

// Somebody else's bytes stand where something was freed, so that whoever still looks there finds
// nothing that works.
class Scribble {
 public:
  Scribble() {
    for (size_t i = 0; i < 2000; ++i) blocks_.emplace_back(24 + i % 1000, char{0x41});
  }

 private:
  std::vector<std::vector<char>> blocks_;
};

inline bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

// A thread of the program inside `call`.
template <class Call>
class Sleeper {
 public:
  explicit Sleeper(Call call)
      : call_(std::move(call)), thread_([this] {
          id_.store(gettid());
          result_ = call_();
          error_ = errno;
          done_.store(true);
        }) {}
  bool sleeps() { return falls_asleep(id_, done_); }
  bool came_back() const { return done_.load(); }
  void interrupt() { pthread_kill(thread_.native_handle(), SIGUSR1); }
  // As programs end such threads.
  void cancel() {
    pthread_cancel(thread_.native_handle());
    thread_.join();
  }
  // The errno that it came back with; 0: it did not fail.
  int error() {
    thread_.join();
    return result_ == 0 ? 0 : error_;
  }

 private:
  Call call_;
  int result_ = 0;
  int error_ = 0;
  std::atomic<pid_t> id_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace weft::test
