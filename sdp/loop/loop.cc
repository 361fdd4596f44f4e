#include "sdp/loop/loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <future>
#include <new>

#include "sdp/loop/own_descriptors.h"

namespace weft::sdp {
namespace {

// Somebody else may have given some back by then.
constexpr int kUntilMemoryMs = 10;

int64_t now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

uint64_t this_thread() {
  return static_cast<uint64_t>(::syscall(SYS_gettid));
}

}  // namespace

Loop::Loop(File epoll, File wake, Task catch_up)
    : epoll_(std::move(epoll)), wake_(std::move(wake)), catch_up_(std::move(catch_up)) {}

Loop* Loop::start(Task catch_up) {
  File epoll = out_of_the_way(File{::epoll_create1(EPOLL_CLOEXEC)});
  File wake = out_of_the_way(File{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)});
  if (!epoll || !wake) return nullptr;
  // It is never destroyed: its thread runs until the process ends.
  auto* loop = new Loop(std::move(epoll), std::move(wake), std::move(catch_up));
  epoll_event event{.events = EPOLLIN, .data = {.fd = loop->wake_.get()}};
  // Signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  (void)sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const auto body = [](void* self) -> void* {
    static_cast<Loop*>(self)->run();
    return nullptr;
  };
  const bool started =
      ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->wake_.get(), &event) == 0 &&
      ::pthread_create(&thread, nullptr, body, loop) == 0;
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) {
    delete loop;
    return nullptr;
  }
  (void)::pthread_setname_np(thread, "weft-sdp");
  (void)::pthread_detach(thread);
  return loop;
}

bool Loop::watch(int fd, uint32_t events, Handler handler) {
  // Those of an adapter come here, too.
  OwnDescriptors::add(fd);
  epoll_event event{.events = events, .data = {.fd = fd}};
  handlers_[fd] = std::make_shared<const Handler>(std::move(handler));
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return true;
  handlers_.erase(fd);
  return false;
}

void Loop::change(int fd, uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::forget(int fd) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(fd);
}

void Loop::later(int milliseconds, Task task) {
  timers_.emplace(now_ms() + milliseconds, std::move(task));
}

Loop::Ready Loop::ready(Task task) {
  Ready one;
  one.push_back(std::move(task));
  return one;
}

void Loop::post(Task task) {
  try {
    post(ready(std::move(task)));
  } catch (const std::bad_alloc&) {
    lacked_ = true;
    wake();
    throw;
  }
}

void Loop::post(Ready&& task) noexcept {
  {
    const std::lock_guard lock{lock_};
    tasks_.splice(tasks_.end(), task);
  }
  wake();
}

// It looks before it sleeps.
void Loop::wake() const {
  if (on_this_thread()) return;
  const uint64_t one = 1;
  // A full counter wakes as well. Not write(2), where a thread may be cancelled.
  (void)::syscall(SYS_write, wake_.get(), &one, sizeof one);
}

bool Loop::on_this_thread() const {
  return thread_ == this_thread();
}

int Loop::next_timeout() {
  if (lacked_) return kUntilMemoryMs;
  {
    const std::lock_guard lock{lock_};
    if (!tasks_.empty()) return 0;
  }
  if (timers_.empty()) return -1;
  return static_cast<int>(std::clamp<int64_t>(timers_.begin()->first - now_ms(), 0, 60'000));
}

template <class Step>
void Loop::do_if_memory(const Step& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    lacked_ = true;
  }
}

void Loop::run_tasks() {
  std::list<Task> tasks;
  {
    const std::lock_guard lock{lock_};
    tasks.swap(tasks_);
  }
  // Each ends before the next one begins: it may hold the last copy of something.
  for (; !tasks.empty(); tasks.pop_front()) do_if_memory(tasks.front());
  const int64_t now = now_ms();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto timer = timers_.extract(timers_.begin());
    do_if_memory(timer.mapped());
  }
}

void Loop::run() {
  thread_ = this_thread();
  std::array<epoll_event, 64> events{};
  for (;;) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), events.size(), next_timeout());
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.fd == wake_.get()) {
        uint64_t count = 0;
        (void)!::read(wake_.get(), &count, sizeof count);
        continue;
      }
      // A handler of this round may have removed it, and it may remove itself.
      const auto found = handlers_.find(event.data.fd);
      if (found == handlers_.end()) continue;
      do_if_memory([handler = found->second, &event] { (*handler)(event.events); });
    }
    run_tasks();
    if (lacked_.exchange(false)) do_if_memory(catch_up_);
  }
}

struct Loop::Rest::Ends {
  std::promise<void> begun;
  std::promise<void> over;
};

Loop::Rest::Rest(Loop& loop, std::chrono::milliseconds most) : ends_(std::make_shared<Ends>()) {
  const auto begun = ends_->begun.get_future();
  const auto over = ends_->over.get_future().share();
  loop.post([ends = ends_, over] {
    ends->begun.set_value();
    over.wait();
  });
  (void)begun.wait_for(most);
}

Loop::Rest::~Rest() {
  ends_->over.set_value();
}

}  // namespace weft::sdp
