// The system calls that are made while the engine is held. glibc's functions of these names are
// cancellation points (pthreads(7)): a thread that is cancelled inside of one would leave with the
// engine held, for ever, or end the process where it may not throw, as in a destructor. And each of
// them looks twice whether it is, which a poll of 0.2 us notices. Sanitizers know glibc's functions
// only, and check the buffers there.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>

namespace weft::port::calls {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kThroughLibc = true;
#else
inline constexpr bool kThroughLibc = false;
#endif

// What a sanitizer is to see of a call. Nobody is cancelled in there either.
template <class F>
auto through_libc(F&& call) {
  struct Pending {
    Pending() { (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); }
    ~Pending() { (void)::pthread_setcancelstate(before, nullptr); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    int before = PTHREAD_CANCEL_ENABLE;
  } const pending;
  return call();
}

// Each as its namesake in section 2 of the manual, errno included.
// A library that takes socket(2) over for the program (librspreload) must not see weft's own: it
// would make them rsockets.
inline int socket(int family, int type, int protocol) {
  return static_cast<int>(::syscall(SYS_socket, family, type, protocol));
}
inline ssize_t send(int fd, const void* p, size_t n, int flags) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::send(fd, p, n, flags); });
  return ::syscall(SYS_sendto, fd, p, n, flags, nullptr, 0);
}
inline ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::sendmsg(fd, m, flags); });
  return ::syscall(SYS_sendmsg, fd, m, flags);
}
inline int sendmmsg(int fd, mmsghdr* m, unsigned count, int flags) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::sendmmsg(fd, m, count, flags); });
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, m, count, flags));
}
inline ssize_t recv(int fd, void* p, size_t n, int flags) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::recv(fd, p, n, flags); });
  return ::syscall(SYS_recvfrom, fd, p, n, flags, nullptr, nullptr);
}
inline ssize_t recvmsg(int fd, msghdr* m, int flags) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::recvmsg(fd, m, flags); });
  return ::syscall(SYS_recvmsg, fd, m, flags);
}
inline int connect(int fd, const sockaddr* to, socklen_t n) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::connect(fd, to, n); });
  return static_cast<int>(::syscall(SYS_connect, fd, to, n));
}
// Of a listening socket; who called does not matter here.
inline int accept4(int fd, int flags) {
  if constexpr (kThroughLibc) {
    return through_libc([&] { return ::accept4(fd, nullptr, nullptr, flags); });
  }
  return static_cast<int>(::syscall(SYS_accept4, fd, nullptr, nullptr, flags));
}
// As poll(2) of one descriptor that does not wait: what it finds.
inline short poll_now(int fd, short events) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  timespec no_time{};
  return ::syscall(SYS_ppoll, &p, 1, &no_time, nullptr, size_t{0}) > 0 ? p.revents : short{0};
}
// Bytes, an end or an error are there.
inline bool readable(int fd) {
  return poll_now(fd, POLLIN) != 0;
}
inline int close(int fd) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::close(fd); });
  return static_cast<int>(::syscall(SYS_close, fd));
}
// A word to or from a descriptor of the kernel's own, such as an eventfd: nothing for a sanitizer.
inline ssize_t read_word(int fd, uint64_t& word) {
  return ::syscall(SYS_read, fd, &word, sizeof word);
}
inline ssize_t write_word(int fd, uint64_t word) {
  return ::syscall(SYS_write, fd, &word, sizeof word);
}
// Until there is something to be read, or a signal came.
inline void wait_readable(int fd) {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  (void)::syscall(SYS_ppoll, &p, 1UL, nullptr, nullptr, 0UL);
}
// A short sleep, for faults on purpose. A signal ends it early.
inline void nap(std::chrono::nanoseconds time) {
  const timespec t{.tv_sec = 0, .tv_nsec = static_cast<long>(time.count())};
  if constexpr (kThroughLibc) {
    (void)through_libc([&] { return ::nanosleep(&t, nullptr); });
  } else {
    (void)::syscall(SYS_nanosleep, &t, nullptr);
  }
}
// Files: captures, the log of faults, and what the kernel says in /proc.
inline int open(const char* name, int flags, mode_t mode) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::open(name, flags, mode); });
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, name, flags, mode));
}
inline ssize_t read(int fd, void* p, size_t n) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::read(fd, p, n); });
  return ::syscall(SYS_read, fd, p, n);
}
inline ssize_t write(int fd, const void* p, size_t n) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::write(fd, p, n); });
  return ::syscall(SYS_write, fd, p, n);
}
inline ssize_t pwritev(int fd, const iovec* pieces, int n, off_t at) {
  if constexpr (kThroughLibc) return through_libc([&] { return ::pwritev(fd, pieces, n, at); });
  // The offset in halves, as the kernel takes it; all of it is in the first on 64-bit machines.
  static_assert(sizeof(long) == 8);
  return ::syscall(SYS_pwritev, fd, pieces, n, at, 0L);
}

}  // namespace weft::port::calls
