#include "tests/abi/scarcity.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace weft::test {

std::atomic<bool> no_threads{false};
thread_local long pieces_left = -1;
thread_local bool one_is_missing = false;
std::atomic<long> other_thread{0};
std::atomic<long> pieces_left_there{-1};

namespace {

[[maybe_unused]] bool out_of_memory() {
  if (other_thread != 0 && other_thread == ::syscall(SYS_gettid) && pieces_left_there >= 0) {
    return pieces_left_there.fetch_sub(1) == 0;
  }
  if (pieces_left < 0) return false;
  if (pieces_left > 0) {
    --pieces_left;
    return false;
  }
  if (one_is_missing) pieces_left = -1;
  return true;
}

}  // namespace
}  // namespace weft::test

// The libraries are to find them.
#pragma GCC visibility push(default)
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*main)(void*),
                   void* argument) noexcept {
  if (weft::test::no_threads.load()) return EAGAIN;
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, main, argument);
}

#ifndef WEFT_SANITIZER
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static void* scarce(void* (*allocate)(size_t, size_t), size_t a, size_t b) {
  if (!weft::test::out_of_memory()) return allocate(a, b);
  errno = ENOMEM;
  return nullptr;
}
void* malloc(size_t size) {
  return scarce([](size_t n, size_t) { return __libc_malloc(n); }, size, 0);
}
void* calloc(size_t count, size_t size) {
  return scarce(__libc_calloc, count, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return scarce(__libc_memalign, alignment, size);
}
void* realloc(void* old, size_t size) {
  if (!weft::test::out_of_memory()) return __libc_realloc(old, size);
  errno = ENOMEM;
  return nullptr;
}
#endif

}  // extern "C"
#pragma GCC visibility pop
