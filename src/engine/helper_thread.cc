#include "engine/helper_thread.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>

namespace weft::engine {
namespace {

// The usual 8 MiB count against RLIMIT_AS, and in a program under mlockall(MCL_FUTURE) against
// RLIMIT_MEMLOCK, all of them at once. What the helper calls needs a few KiB; sanitizers make its
// frames several times as large.
constexpr size_t kStack = size_t{256} << 10;

}  // namespace

int HelperThread::start(void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) return error;
  int error = pthread_attr_setstacksize(&attributes, kStack);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Blocked, these would end the process before any handler runs.
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, own);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error == 0) error = pthread_create(&thread_, &attributes, main, argument);
  // The thread-local data of the program's libraries stand on the stack, too, and may need more.
  if (error == EINVAL) error = pthread_create(&thread_, nullptr, main, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  running_ = error == 0;
  return error;
}

void HelperThread::join() {
  if (!running_) return;
  running_ = false;
  pthread_join(thread_, nullptr);
}

void HelperThread::cancel_and_join() {
  if (running_) pthread_cancel(thread_);
  join();
}

}  // namespace weft::engine
