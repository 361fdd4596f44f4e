// A listener in a thread of its own, for tests.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "doctor/listener.h"

namespace weft::doctor {

class ListenerThread {
 public:
  // `first`: what the thread does before it opens the ports, such as enter another namespace.
  explicit ListenerThread(const std::function<void()>& first = [] {}) {
    std::promise<void> open;
    thread_ = std::thread([this, &first, &open] {
      first();
      listener_ = std::make_unique<Listener>(0, [](const std::string&) {});
      open.set_value();
      listener_->run(stop_, std::chrono::hours{1});
    });
    open.get_future().wait();
  }
  ~ListenerThread() {
    const uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    thread_.join();
    ::close(stop_);
  }
  ListenerThread(const ListenerThread&) = delete;
  ListenerThread& operator=(const ListenerThread&) = delete;
  const Listener& operator*() const { return *listener_; }
  const Listener* operator->() const { return listener_.get(); }

 private:
  const int stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::unique_ptr<Listener> listener_;
  std::thread thread_;
};

}  // namespace weft::doctor
