// Calls that succeed leave errno as it was, as system calls do: programs set it to 0, call, and
// look at it whatever came back. Prints the same by TCP and by SDP.
//
//   sdp_errno_kept ADDRESS

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <map>
#include <mutex>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

constexpr int kMark = 4242;  // no error of the system's
constexpr size_t kLarge = 1 << 20;
constexpr int kRounds = 40;

// What became of errno in all calls of this name that succeeded: kMark, or the last other value.
std::map<std::string, int> g_left;
std::mutex g_lock;

template <class Call>
auto kept(const char* name, Call call) {
  errno = kMark;
  const auto result = call();
  const int left = errno;
  const std::lock_guard lock{g_lock};
  if (result < 0) return result;
  int& all = g_left.try_emplace(name, kMark).first->second;
  if (left != kMark) all = left;
  return result;
}

template <class Call>
auto works(const char* name, Call call) {
  const auto result = kept(name, call);
  must(result >= 0, name);
  return result;
}

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

// Behind it, both ends; the server's thread sleeps in accept.
Ends make_connection(const char* address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  (void)inet_pton(AF_INET, address, &at.sin_addr);
  socklen_t size = sizeof at;
  auto* const name = reinterpret_cast<sockaddr*>(&at);
  const int listener = works("socket", [] { return socket(AF_INET, SOCK_STREAM, 0); });
  works("bind", [&] { return bind(listener, name, size); });
  works("listen", [&] { return listen(listener, 5); });
  works("getsockname", [&] { return getsockname(listener, name, &size); });
  pollfd waited{listener, POLLIN, 0};
  works("poll of nothing", [&] { return poll(&waited, 1, 0); });
  Ends ends;
  std::atomic<long> thread = 0;
  std::thread server{[&] {
    thread = gettid();
    ends.server = works("accept", [&] { return accept(listener, nullptr, nullptr); });
  }};
  wait_until_sleeps_in_a_call(thread);
  ends.client = works("socket", [] { return socket(AF_INET, SOCK_STREAM, 0); });
  works("connect", [&] { return connect(ends.client, name, size); });
  server.join();
  works("getpeername", [&] { return getpeername(ends.client, name, &size); });
  works("close", [&] { return close(listener); });
  return ends;
}

void use_options(int fd) {
  const int on = 1;
  int error = 0;
  socklen_t size = sizeof error;
  works("setsockopt", [&] { return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); });
  works("getsockopt", [&] { return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size); });
  works("fcntl", [&] { return fcntl(fd, F_GETFL); });
  works("fcntl that sets", [&] { return fcntl(fd, F_SETFL, O_RDWR); });
  int n = 0;
  works("ioctl", [&] { return ioctl(fd, FIONREAD, &n); });
  const int copy = works("dup", [&] { return dup(fd); });
  works("dup2", [&] { return dup2(fd, copy); });
  works("close", [&] { return close(copy); });
}

// The thread waits by `wait`; what it waits for comes when it sleeps.
template <class Wait>
void sleeps_until(const char* name, const Ends& ends, Wait wait) {
  std::atomic<long> thread = 0;
  std::thread waiter{[&] {
    thread = gettid();
    works(name, wait);
    char byte = 0;
    works("recv", [&] { return recv(ends.server, &byte, 1, 0); });
  }};
  wait_until_sleeps(thread, true);
  works("send", [&] { return send(ends.client, "x", 1, 0); });
  waiter.join();
}

void wait_in_each_way(const Ends& ends) {
  const int fd = ends.server;
  pollfd one{fd, POLLIN, 0};
  sleeps_until("poll", ends, [&] { return poll(&one, 1, -1); });
  sleeps_until("ppoll", ends, [&] { return ppoll(&one, 1, nullptr, nullptr); });
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  sleeps_until("select", ends, [&] { return select(fd + 1, &set, nullptr, nullptr, nullptr); });
  const int epoll = works("epoll_create1", [] { return epoll_create1(EPOLL_CLOEXEC); });
  epoll_event event{};
  event.events = EPOLLIN;
  works("epoll_ctl that adds", [&] { return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event); });
  for (int i = 0; i < 3; ++i) {
    sleeps_until("epoll_wait", ends, [&] { return epoll_wait(epoll, &event, 1, -1); });
    event.events = EPOLLIN;
    if (i == 1) event.events |= EPOLLONESHOT;
    works("epoll_ctl that changes", [&] { return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event); });
  }
  works("epoll_ctl that removes", [&] { return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr); });
  works("close", [&] { return close(epoll); });
}

// Reads what comes to the end, by each of the calls in turn.
void read_all(int fd) {
  std::vector<char> room(100'000);
  iovec piece{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  mmsghdr several{};
  several.msg_hdr = message;
  for (int i = 0;; ++i) {
    ssize_t n = -1;
    if (i % 5 == 0) n = kept("read", [&] { return read(fd, room.data(), room.size()); });
    if (i % 5 == 1) n = kept("recv", [&] { return recv(fd, room.data(), room.size(), 0); });
    if (i % 5 == 2) n = kept("readv", [&] { return readv(fd, &piece, 1); });
    if (i % 5 == 3) n = kept("recvmsg", [&] { return recvmsg(fd, &message, 0); });
    if (i % 5 == 4) {
      n = kept("recvmmsg", [&] { return recvmmsg(fd, &several, 1, 0, nullptr); });
      if (n > 0) n = several.msg_len;
    }
    must(n >= 0, "to receive");
    if (n == 0) return;
  }
}

// Large ones that find no room for all, with and without waiting.
void send_much(int fd) {
  auto bytes = pattern(kLarge);
  const int file = memfd_create("bytes", MFD_CLOEXEC);
  must(write(file, bytes.data(), kLarge) == static_cast<ssize_t>(kLarge), "memfd");
  iovec piece{bytes.data(), kLarge};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  mmsghdr several{};
  several.msg_hdr = message;
  for (int i = 0; i < kRounds; ++i) {
    kept("send at once", [&] { return send(fd, bytes.data(), kLarge, MSG_DONTWAIT); });
    kept("sendmsg at once", [&] { return sendmsg(fd, &message, MSG_DONTWAIT); });
    kept("sendmmsg at once", [&] { return sendmmsg(fd, &several, 1, MSG_DONTWAIT); });
    works("write", [&] { return write(fd, bytes.data(), kLarge); });
    works("send", [&] { return send(fd, bytes.data(), kLarge, 0); });
    works("writev", [&] { return writev(fd, &piece, 1); });
    works("sendmsg", [&] { return sendmsg(fd, &message, 0); });
    works("sendmmsg", [&] { return sendmmsg(fd, &several, 1, 0); });
    off_t from = 0;
    works("sendfile", [&] { return sendfile(fd, file, &from, kLarge); });
  }
  (void)close(file);
}

}  // namespace

int main(int count, char** arguments) {
  must(count == 2, "one argument");
  const Ends ends = make_connection(arguments[1]);
  use_options(ends.client);
  wait_in_each_way(ends);
  std::thread reader{[&] { read_all(ends.server); }};
  send_much(ends.client);
  works("shutdown", [&] { return shutdown(ends.client, SHUT_WR); });
  reader.join();
  works("close", [&] { return close(ends.client); });
  works("close", [&] { return close(ends.server); });
  for (const auto& [name, left] : g_left) {
    std::printf("%s: %s\n", name.c_str(), left == kMark ? "kept" : strerror(left));
  }
  return 0;
}
