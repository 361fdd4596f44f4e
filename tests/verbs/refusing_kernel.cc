#include "tests/verbs/refusing_kernel.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>

namespace weft::test {

RefusingKernel refusing_kernel;

namespace {

RefusingKernel& kernel = refusing_kernel;

// The C library's own, or a sanitizer's. No static variable of the function that calls it: to make
// one may take a system call.
template <class Function>
Function* next(std::atomic<Function*>& known, const char* name) {
  Function* f = known.load(std::memory_order_relaxed);
  if (f == nullptr) {
    f = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
    known.store(f, std::memory_order_relaxed);
  }
  return f;
}
std::atomic<long (*)(long, ...)> next_syscall;
std::atomic<ssize_t (*)(int, const msghdr*, int)> next_sendmsg;
std::atomic<int (*)(int, mmsghdr*, unsigned, int)> next_sendmmsg;
std::atomic<int (*)(int, int, int, const void*, socklen_t)> next_setsockopt;

// Of a train; 0: it is none.
size_t segment_of(const msghdr& m) {
  auto& all = const_cast<msghdr&>(m);
  for (cmsghdr* c = CMSG_FIRSTHDR(&all); c != nullptr; c = CMSG_NXTHDR(&all, c)) {
    if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_SEGMENT) continue;
    uint16_t bytes = 0;
    std::memcpy(&bytes, CMSG_DATA(c), sizeof bytes);
    return bytes;
  }
  return 0;
}

size_t bytes_of(const msghdr& m) {
  size_t n = 0;
  for (size_t i = 0; i < m.msg_iovlen; ++i) n += m.msg_iov[i].iov_len;
  return n;
}

bool no_memory() {
  if (!kernel.short_of_memory) return false;
  const uint64_t n = kernel.sends_short++;
  if (n >= 3 && n % 2 != 0) return false;
  ++kernel.memory_refused;
  return true;
}

// errno, or 0.
int refusal(const msghdr& m) {
  if (no_memory()) return ENOBUFS;
  const size_t segment = segment_of(m);
  const size_t size = segment != 0 ? segment : bytes_of(m);
  const bool fits = kernel.path == 0 || size <= kernel.path;
  if (segment == 0) return fits ? 0 : EMSGSIZE;
  kernel.trains.fetch_add(1);
  if (!kernel.segments) return EIO;
  return fits ? 0 : EINVAL;
}
int refusal(const mmsghdr* m, unsigned count) {
  if (count >= 2) kernel.one_by_one.fetch_add(1);
  return count > 0 ? refusal(m[0].msg_hdr) : 0;
}

long fails(int error) {
  errno = error;
  return -1;
}

}  // namespace
}  // namespace weft::test

using namespace weft::test;

// The libraries are to find them.
#pragma GCC visibility push(default)
extern "C" {

int setsockopt(int fd, int level, int name, const void* value, socklen_t n) noexcept {
  if (level == SOL_UDP && name == UDP_GRO && !kernel.gathers) {
    kernel.gathering_refused.fetch_add(1);
    return static_cast<int>(fails(ENOPROTOOPT));
  }
  if (level == SOL_SOCKET && kernel.usual_buffers) {
    if (name == SO_RCVBUFFORCE) return static_cast<int>(fails(EPERM));
    static constexpr int kUsual = RefusingKernel::kUsualBuffer;
    if (name == SO_RCVBUF) value = &kUsual;
  }
  return next(next_setsockopt, "setsockopt")(fd, level, name, value, n);
}

// Sanitizers' builds of the library call these, others syscall().
ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  if (const int e = refusal(*m); e != 0) return fails(e);
  return next(next_sendmsg, "sendmsg")(fd, m, flags);
}
int sendmmsg(int fd, mmsghdr* m, unsigned count, int flags) {
  if (const int e = refusal(m, count); e != 0) return static_cast<int>(fails(e));
  return next(next_sendmmsg, "sendmmsg")(fd, m, count, flags);
}

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& x : a) x = va_arg(list, long);
  va_end(list);
  int e = 0;
  if (number == SYS_sendmsg) e = refusal(*reinterpret_cast<const msghdr*>(a[1]));
  if (number == SYS_sendmmsg) {
    e = refusal(reinterpret_cast<const mmsghdr*>(a[1]), static_cast<unsigned>(a[2]));
  }
  if (e != 0) return fails(e);
  return next(next_syscall, "syscall")(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
#pragma GCC visibility pop
