// The system calls of the data path. glibc's functions of these names are cancellation points
// (pthreads(7)): a thread that is cancelled inside of one would leave with the engine held, for
// ever. And each of them looks twice whether it is, which a poll of 0.2 us notices. Sanitizers know
// glibc's functions only, and check the buffers there.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::port::calls {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kThroughLibc = true;
#else
inline constexpr bool kThroughLibc = false;
#endif

// Each as its namesake in section 2 of the manual, errno included.
inline ssize_t send(int fd, const void* p, size_t n, int flags) {
  if constexpr (kThroughLibc) return ::send(fd, p, n, flags);
  return ::syscall(SYS_sendto, fd, p, n, flags, nullptr, 0);
}
inline ssize_t sendmsg(int fd, const msghdr* m, int flags) {
  if constexpr (kThroughLibc) return ::sendmsg(fd, m, flags);
  return ::syscall(SYS_sendmsg, fd, m, flags);
}
inline int sendmmsg(int fd, mmsghdr* m, unsigned count, int flags) {
  if constexpr (kThroughLibc) return ::sendmmsg(fd, m, count, flags);
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, m, count, flags));
}
inline ssize_t recv(int fd, void* p, size_t n, int flags) {
  if constexpr (kThroughLibc) return ::recv(fd, p, n, flags);
  return ::syscall(SYS_recvfrom, fd, p, n, flags, nullptr, nullptr);
}
inline ssize_t recvmsg(int fd, msghdr* m, int flags) {
  if constexpr (kThroughLibc) return ::recvmsg(fd, m, flags);
  return ::syscall(SYS_recvmsg, fd, m, flags);
}

}  // namespace weft::port::calls
