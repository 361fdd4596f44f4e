// Pointers that lead nowhere, in calls on connections that say something besides bytes: EFAULT, or
// what TCP makes of them, and no crash. Prints the same by TCP and by SDP.
//
//   sdp_pointers ADDRESS

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "tests/sdp/ends.h"

namespace {

void say(const char* what, ssize_t n) {
  std::printf("%s: %s\n", what, n >= 0 ? std::to_string(n).c_str() : std::strerror(errno));
}

template <class T>
T* nowhere() {
  static void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return static_cast<T*>(page);
}

// Before there is a connection: the library may not have begun.
void before(const char* address) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  auto* to = reinterpret_cast<sockaddr*>(&name);
  say("accept, nulls, does not listen", accept(client, nullptr, nullptr));
  say("accept, size, does not listen", accept(client, to, nowhere<socklen_t>()));
  say("connect", connect(client, nowhere<sockaddr>(), sizeof(sockaddr_in)));
  say("connect to null", connect(client, nullptr, sizeof(sockaddr_in)));
  say("connect, too long", connect(client, nowhere<sockaddr>(), 1 << 20));
  const Listener listener = listener_at(address, Begins::later);
  say("poll", poll(nowhere<pollfd>(), 1, 0));
  // A fault of a thread that blocks its signal is the process's end.
  std::thread{[&listener] {
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, nullptr);
    say("accept, nulls", accept(listener.fd, nullptr, nullptr));
  }}.join();
  (void)close(client);
  (void)close(listener.fd);
}

void names(int fd) {
  sockaddr_in name{};
  auto* to = reinterpret_cast<sockaddr*>(&name);
  socklen_t size = sizeof name;
  say("getsockname", getsockname(fd, nowhere<sockaddr>(), &size));
  say("getpeername", getpeername(fd, nowhere<sockaddr>(), &size));
  say("getpeername, size", getpeername(fd, to, nowhere<socklen_t>()));
  say("getpeername, nulls", getpeername(fd, nullptr, nullptr));
  size = static_cast<socklen_t>(-1);
  say("getpeername, negative", getpeername(fd, to, &size));
  size = 3;
  say("getpeername, short", getpeername(fd, to, &size));
  std::printf("is %u\n", size);
  size = 0;
  say("getpeername, none", getpeername(fd, nowhere<sockaddr>(), &size));
}

void options(int fd) {
  int value = 0;
  socklen_t size = sizeof value;
  for (const int name : {SO_ERROR, SO_SNDBUF, SO_RCVTIMEO}) {
    say("getsockopt", getsockopt(fd, SOL_SOCKET, name, nowhere<int>(), &size));
    say("getsockopt, size", getsockopt(fd, SOL_SOCKET, name, &value, nowhere<socklen_t>()));
  }
  size = static_cast<socklen_t>(-1);
  say("getsockopt, negative", getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &size));
  size = sizeof(tcp_info);
  say("TCP_INFO", getsockopt(fd, IPPROTO_TCP, TCP_INFO, nowhere<int>(), &size));
  say("setsockopt", setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, nowhere<int>(), sizeof value));
  say("FIONREAD", ioctl(fd, FIONREAD, nowhere<int>()));
  say("SIOCATMARK", ioctl(fd, SIOCATMARK, nowhere<int>()));
}

void waits(int fd) {
  epoll_event event{};
  const int epoll = epoll_create1(0);
  say("poll", poll(nowhere<pollfd>(), 1, 0));
  const timespec at_once{};
  timeval never{};
  say("ppoll", ppoll(nowhere<pollfd>(), 1, &at_once, nullptr));
  say("select", select(fd + 1, nowhere<fd_set>(), nullptr, nullptr, &never));
  say("pselect", pselect(fd + 1, nullptr, nowhere<fd_set>(), nullptr, &at_once, nullptr));
  say("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, fd, nowhere<epoll_event>()));
  say("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
  say("epoll_wait", epoll_wait(epoll, nowhere<epoll_event>(), 1, 0));
  (void)close(epoll);
}

// What goes along with the bytes.
void messages(const Ends& ends) {
  std::array<char, 4> bytes{'a', 'b', 'c', 'd'};
  iovec piece{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, 64> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  for (const size_t length : {size_t{0}, size_t{4}, sizeof(cmsghdr), size_t{65}, ~size_t{0}}) {
    cmsghdr header{};
    header.cmsg_len = length;
    header.cmsg_level = SOL_SOCKET;
    header.cmsg_type = SCM_RIGHTS;
    std::memcpy(control.data(), &header, sizeof header);
    say("control", sendmsg(ends.client, &message, 0));
  }
  message.msg_control = nowhere<void>();
  say("control nowhere", sendmsg(ends.client, &message, 0));
  message.msg_controllen = 0;
  say("no control", sendmsg(ends.client, &message, 0));
  sockaddr_in name{};
  auto* from = reinterpret_cast<sockaddr*>(&name);
  say("recvfrom", recvfrom(ends.server, bytes.data(), 2, 0, from, nowhere<socklen_t>()));
  say("recvfrom, null", recvfrom(ends.server, bytes.data(), 2, 0, from, nullptr));
  socklen_t size = sizeof name;
  must(send(ends.client, "ef", 2, 0) == 2, "send");
  say("recvfrom", recvfrom(ends.server, bytes.data(), 2, 0, from, &size));
  std::printf("is %u\n", size);
  say("sendmmsg", sendmmsg(ends.client, nowhere<mmsghdr>(), 1, 0));
  say("recvmmsg", recvmmsg(ends.server, nowhere<mmsghdr>(), 1, MSG_DONTWAIT, nullptr));
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  before(argument[1]);
  const Ends ends = connection(argument[1]);
  names(ends.client);
  options(ends.server);
  waits(ends.server);
  messages(ends);
  return 0;
}
