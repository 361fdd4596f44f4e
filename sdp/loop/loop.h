// The library's own thread: it waits for descriptors and does what other threads hand to it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sdp/loop/file.h"
#include "sdp/loop/handlers.h"

namespace weft::sdp {

class Loop {
 public:
  using Handler = std::function<void(uint32_t events)>;
  using Task = std::function<void()>;

  // Starts the thread. errno is set and nothing returned if that cannot be.
  static Loop* start();

  // The loop's thread alone. `events` are epoll's; a handler may remove any descriptor, its own
  // too.
  bool watch(int fd, uint32_t events, Handler handler);
  void change(int fd, uint32_t events);
  void forget(int fd);
  // After so many milliseconds, once.
  void later(int milliseconds, Task task);

  // Any thread: `task` runs on the loop's thread, soon.
  void post(Task task);
  bool on_this_thread() const;

  // Any other thread: while there is one, the loop's thread does nothing. The constructor waits
  // until that is so, at most for `most`; it comes later then, if at all.
  class Rest {
   public:
    Rest(Loop& loop, std::chrono::milliseconds most);
    Rest(const Rest&) = delete;
    Rest& operator=(const Rest&) = delete;
    ~Rest();

   private:
    struct Ends;
    const std::shared_ptr<Ends> ends_;
  };

 private:
  Loop(File epoll, File wake);
  void run();
  void run_tasks();
  int next_timeout();

  File epoll_;
  File wake_;
  std::atomic<uint64_t> thread_{0};
  Mutex lock_;  // of tasks_
  std::vector<Task> tasks_;
  std::multimap<int64_t, Task> timers_;  // by when they are due, in milliseconds
  std::unordered_map<int, Handler> handlers_;
};

}  // namespace weft::sdp
