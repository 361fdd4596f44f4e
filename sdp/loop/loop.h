// The library's own thread: it waits for descriptors and does what other threads hand to it. What
// there is no memory for (bad_alloc) is given up; somebody is asked soon to look for what that
// left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sdp/loop/file.h"
#include "sdp/loop/handlers.h"

namespace weft::sdp {

class Loop {
 public:
  using Handler = std::function<void(uint32_t events)>;
  using Task = std::function<void()>;

  // Starts the thread. errno is set and nothing returned if that cannot be. `catch_up` is called
  // on it when there was no memory for something that it was to do.
  static Loop* start(Task catch_up = [] {});

  // The loop's thread alone. `events` are epoll's; a handler may remove any descriptor, its own
  // too.
  bool watch(int fd, uint32_t events, Handler handler);
  void change(int fd, uint32_t events);
  void forget(int fd);
  // After so many milliseconds, once.
  void later(int milliseconds, Task task);

  // Any thread: `task` runs on the loop's thread, soon.
  void post(Task task);
  // The same of one that has its memory before it is needed; none: nothing.
  using Ready = std::list<Task>;
  static Ready ready(Task task);
  void post(Ready&& task) noexcept;
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
  Loop(File epoll, File wake, Task catch_up);
  void wake() const;
  template <class Step>
  void do_if_memory(const Step& step);
  void run();
  void run_tasks();
  int next_timeout();

  File epoll_;
  File wake_;
  const Task catch_up_;
  std::atomic<bool> lacked_{false};
  std::atomic<uint64_t> thread_{0};
  Mutex lock_;  // of tasks_
  std::list<Task> tasks_;
  std::multimap<int64_t, Task> timers_;  // by when they are due, in milliseconds
  std::unordered_map<int, std::shared_ptr<const Handler>> handlers_;
};

}  // namespace weft::sdp
