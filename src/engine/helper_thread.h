// The one thread that an engine makes. No exception leaves it or its making: a process may be out
// of threads or of memory for their stacks.
#pragma once

#include <pthread.h>

namespace weft::engine {

class HelperThread {
 public:
  HelperThread() = default;
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;

  // Runs `main(argument)`. Signals are the program's: none is ever delivered to this thread but
  // those that it brings upon itself. 0, or the errno of pthread_create(3): EAGAIN where the system
  // has no thread or no memory for its stack.
  int start(void* (*main)(void*), void* argument);
  // Waits for `main` to return.
  void join();
  // Ends one that nothing can wake any more: in a call in which it can be cancelled, or when `main`
  // returns.
  void cancel_and_join();

 private:
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace weft::engine
