#include "sdp/sockets/mirror.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

int raw_fcntl(int fd, int command, int value) {
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, value));
}

// Who gets signals, and which.
void copy_owner(int from, int to) {
  f_owner_ex owner{};
  if (::syscall(SYS_fcntl, from, F_GETOWN_EX, &owner) == 0 && owner.pid != 0) {
    (void)::syscall(SYS_fcntl, to, F_SETOWN_EX, &owner);
  }
  const int signal = raw_fcntl(from, F_GETSIG, 0);
  if (signal > 0) (void)raw_fcntl(to, F_SETSIG, signal);
}

template <class Value>
void copy_option(int from, int to, int option) {
  Value value{};
  socklen_t size = sizeof value;
  if (real().getsockopt(from, SOL_SOCKET, option, &value, &size) == 0) {
    (void)real().setsockopt(to, SOL_SOCKET, option, &value, size);
  }
}

}  // namespace

bool SocketPair::open() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return false;
  outer.reset(pair[0]);
  inner = out_of_the_way(File{pair[1]});
  return static_cast<bool>(inner);
}

bool put_in_place(const File& file, int fd) {
  const int flags = raw_fcntl(fd, F_GETFL, 0);
  const int descriptor_flags = raw_fcntl(fd, F_GETFD, 0);
  if (flags < 0 || descriptor_flags < 0) return false;
  (void)raw_fcntl(file.get(), F_SETFL, flags);
  copy_owner(fd, file.get());
  copy_option<timeval>(fd, file.get(), SO_RCVTIMEO);
  copy_option<timeval>(fd, file.get(), SO_SNDTIMEO);
  copy_option<int>(fd, file.get(), SO_RCVLOWAT);
  const int cloexec = (descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
  return ::syscall(SYS_dup3, file.get(), fd, cloexec) == fd;
}

bool Mirror::put_at(int fd) {
  SocketPair pair;
  if (!pair.open()) return false;
  inner = std::move(pair.inner);
  cookie = cookie_of(pair.outer.get());
  shadow = out_of_the_way(File{raw_fcntl(fd, F_DUPFD_CLOEXEC, 0)});
  // What wakes up who waits for urgent data is read like any token.
  const int on = 1;
  (void)real().setsockopt(pair.outer.get(), SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  return shadow && put_in_place(pair.outer, fd);
}

BufferSizes chosen_buffer_sizes(int fd) {
  // Of Linux 5.14 and newer; an older one does not tell, and the sizes are the library's.
  constexpr int kBufferLock = 72;  // SO_BUF_LOCK
  constexpr int kSendSet = 1;      // SOCK_SNDBUF_LOCK
  constexpr int kReceiveSet = 2;   // SOCK_RCVBUF_LOCK
  int set = 0;
  socklen_t size = sizeof set;
  if (real().getsockopt(fd, SOL_SOCKET, kBufferLock, &set, &size) != 0) return {};
  // The kernel counts its own headers as well, and tells of twice what it was asked for.
  const auto half = [fd](int name) {
    int bytes = 0;
    socklen_t room = sizeof bytes;
    const bool known = real().getsockopt(fd, SOL_SOCKET, name, &bytes, &room) == 0;
    return known ? static_cast<uint32_t>(bytes) / 2 : 0;
  };
  return {.send = (set & kSendSet) != 0 ? half(SO_SNDBUF) : 0,
          .receive = (set & kReceiveSet) != 0 ? half(SO_RCVBUF) : 0};
}

std::optional<std::chrono::seconds> linger_of(int fd) {
  linger value{};
  socklen_t size = sizeof value;
  const bool known = real().getsockopt(fd, SOL_SOCKET, SO_LINGER, &value, &size) == 0;
  if (!known || value.l_onoff == 0) return std::nullopt;
  return std::chrono::seconds{value.l_linger};
}

bool resets_at_close(int fd) {
  return linger_of(fd) == std::chrono::seconds{0};
}

Keepalive keepalive_of(int fd) {
  const auto value_of = [fd](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return real().getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
  };
  const int unacknowledged = value_of(IPPROTO_TCP, TCP_USER_TIMEOUT);
  if (value_of(SOL_SOCKET, SO_KEEPALIVE) == 0) return {.idle = 0, .unacknowledged = unacknowledged};
  return {.idle = value_of(IPPROTO_TCP, TCP_KEEPIDLE),
          .interval = value_of(IPPROTO_TCP, TCP_KEEPINTVL),
          .count = value_of(IPPROTO_TCP, TCP_KEEPCNT),
          .unacknowledged = unacknowledged};
}

unsigned long long cookie_of(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (real().getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return 0;
  return cookie;
}

}  // namespace weft::sdp
