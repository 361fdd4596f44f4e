// Calls that few programs make. Prints the same by TCP and by SDP.
//
//   sdp_rare ADDRESS

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/sdp/ends.h"

namespace {

// A listener that is closed with all others of its numbers refuses who comes.
void close_listener(const char* address) {
  const Listener listener = listener_at(address);
  const auto fd = static_cast<unsigned>(listener.fd);
  must(close_range(fd, fd, 0) == 0, "close_range");
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  const int status = connect(client, at, sizeof listener.at);
  std::printf("close_range: %s\n", status == 0 ? "connected" : std::strerror(errno));
  (void)close(client);
}

// One that the kernel refuses closes nothing.
void close_nothing(const char* address) {
  constexpr int kUnknown = 1 << 30;
  const Ends ends = connection(address);
  const auto fd = static_cast<unsigned>(ends.client);
  std::array<int, 3> errors{};
  errors[0] = close_range(fd, fd, kUnknown) == 0 ? 0 : errno;
  errors[1] = ::syscall(SYS_close_range, fd, fd, kUnknown) == 0 ? 0 : errno;
  errors[2] = close_range(fd, fd - 1, 0) == 0 ? 0 : errno;
  for (const int error : errors) std::printf("close_range: %s\n", std::strerror(error));
  const ssize_t sent = send(ends.client, "abc", 3, MSG_NOSIGNAL);
  (void)shutdown(ends.client, SHUT_WR);
  std::array<char, 10> bytes{};
  const ssize_t came = recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL);
  std::printf("then: sent %zd, received %zd\n", sent, came);
}

// An epoll that was closed before the socket connected, and another one that has its number.
void connect_behind_an_epoll(const char* address) {
  const Listener listener = listener_at(address);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  epoll_event event{};
  event.events = EPOLLOUT;
  event.data.u64 = 1;
  const int closed = epoll_create1(0);
  must(epoll_ctl(closed, EPOLL_CTL_ADD, client, &event) == 0, "epoll_ctl");
  (void)close(closed);
  const int epoll = dup2(epoll_create1(0), closed);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  must(connect(client, at, sizeof listener.at) == 0, "connect");
  event.data.u64 = 2;
  const int added = epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
  std::printf("epoll_ctl: %s, ", added == 0 ? "added" : std::strerror(errno));
  const int n = epoll_wait(epoll, &event, 1, -1);
  std::printf("epoll_wait: %d, %d\n", n, static_cast<int>(event.data.u64));
  for (const int fd : {epoll, client, listener.fd}) (void)close(fd);
}

// Sets of the program's own may have room for more descriptors than an fd_set.
void wait_with_large_sets(const char* address) {
  constexpr int kHigh = 1500;
  constexpr size_t kInWord = 8 * sizeof(fd_mask);
  rlimit limit{};
  must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  const Ends ends = connection(address);
  const int high = fcntl(ends.server, F_DUPFD, kHigh);
  must(high >= kHigh, "fcntl");
  std::array<fd_mask, 2048 / kInWord> set{};
  const auto place = static_cast<size_t>(high) / kInWord;
  const auto bit = static_cast<fd_mask>(1UL << static_cast<size_t>(high) % kInWord);
  set[place] = bit;
  std::atomic<long> thread{::syscall(SYS_gettid)};
  std::thread sender{[&] {
    wait_until_sleeps_in_a_call(thread);
    must(send(ends.client, "a", 1, 0) == 1, "send");
  }};
  const int n = select(high + 1, reinterpret_cast<fd_set*>(set.data()), nullptr, nullptr, nullptr);
  sender.join();
  std::printf("select: %d, %s\n", n, set[place] == bit ? "readable" : "not readable");
}

// A call that looks ahead waits for all that it asks for, and for no more than there is to come.
void look_ahead_for_all(const char* address) {
  const Ends ends = connection(address);
  std::array<char, 6> bytes{};
  must(send(ends.client, "abc", 3, 0) == 3, "send");
  std::atomic<long> thread{::syscall(SYS_gettid)};
  std::thread sender{[&] {
    wait_until_sleeps(thread, true);
    must(send(ends.client, "def", 3, 0) == 3, "send");
  }};
  ssize_t n = recv(ends.server, bytes.data(), bytes.size(), MSG_PEEK | MSG_WAITALL);
  std::printf("look ahead for all: %zd, %.*s\n", n, static_cast<int>(n), bytes.data());
  sender.join();
  std::array<char, 10> more{};
  n = recv(ends.server, more.data(), more.size(), MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT);
  std::printf("without waiting: %zd\n", n);
  const timeval soon{0, 20'000};
  must(setsockopt(ends.server, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0, "SO_RCVTIMEO");
  n = recv(ends.server, more.data(), more.size(), MSG_PEEK | MSG_WAITALL);
  std::printf("within a limit: %zd\n", n);
  must(shutdown(ends.client, SHUT_WR) == 0, "shutdown");
  const timeval never{};
  must(setsockopt(ends.server, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof never) == 0, "SO_RCVTIMEO");
  n = recv(ends.server, more.data(), more.size(), MSG_PEEK | MSG_WAITALL);
  std::printf("up to the end: %zd, %.*s\n", n, static_cast<int>(n), more.data());
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  close_listener(argument[1]);
  close_nothing(argument[1]);
  connect_behind_an_epoll(argument[1]);
  wait_with_large_sets(argument[1]);
  look_ahead_for_all(argument[1]);
  return 0;
}
