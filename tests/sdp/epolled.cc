// What epoll(7) tells of connections whose registrations change again and again, by one thread and
// by several. Prints the same by TCP and by SDP, where the kernel is not asked each time.
//
//   sdp_epolled ADDRESS

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

int new_epoll() {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  must(epoll >= 0, "epoll_create1");
  return epoll;
}

int control(int epoll, int operation, int fd, uint32_t events = 0, uint64_t data = 0) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : errno;
}

// Told of without a wait, in the order of their data.
std::string told(int epoll) {
  std::array<epoll_event, 8> events{};
  const int n = epoll_wait(epoll, events.data(), events.size(), 0);
  std::sort(events.begin(), events.begin() + std::max(n, 0),
            [](const auto& a, const auto& b) { return a.data.u64 < b.data.u64; });
  std::string text = std::to_string(n);
  for (int i = 0; i < n; ++i) {
    const auto& e = events[static_cast<size_t>(i)];
    text += " " + std::to_string(e.data.u64) + ":" + std::to_string(e.events);
  }
  return text;
}

std::string told_twice(int epoll) {
  std::string text = told(epoll) + ", ";
  return text += told(epoll);
}

void say(const char* what, const std::string& result) {
  std::printf("%s: %s\n", what, result.c_str());
}

void put(int fd, char byte) {
  must(send(fd, &byte, 1, 0) == 1, "send");
}

void arrive(int fd) {
  char byte = 0;
  must(recv(fd, &byte, 1, MSG_PEEK) == 1, "recv");
}

// A connection whose server's end an epoll has told of once.
Ends known_to(int epoll, const char* address, uint64_t data) {
  const Ends ends = connection(address);
  must(control(epoll, EPOLL_CTL_ADD, ends.server, EPOLLIN, data) == 0, "epoll_ctl");
  put(ends.client, 'k');
  arrive(ends.server);
  (void)told(epoll);
  char byte = 0;
  must(recv(ends.server, &byte, 1, 0) == 1, "recv");
  (void)told(epoll);
  return ends;
}

void changes(const char* address) {
  const int epoll = new_epoll();
  const Ends ends = known_to(epoll, address, 1);
  const int fd = ends.server;
  say("twice", std::to_string(control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, 1)));
  put(ends.client, 'c');
  arrive(fd);
  say("there", told(epoll));
  say("still there", told(epoll));
  say("changed", std::to_string(control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT, 2)));
  say("both", told(epoll));
  (void)control(epoll, EPOLL_CTL_MOD, fd, EPOLLOUT, 3);
  say("room alone", told(epoll));
  (void)control(epoll, EPOLL_CTL_DEL, fd);
  say("none", told(epoll));
  say("not there", std::to_string(control(epoll, EPOLL_CTL_DEL, fd)));
  say("nor here", std::to_string(control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN, 4)));
  (void)control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, 5);
  say("an edge", told_twice(epoll));
  (void)control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, 6);
  say("once", told_twice(epoll));
  (void)control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN, 7);
  say("again", told(epoll));
  (void)close(epoll);
}

// Beside a connection that has always room, so that no wait sleeps.
void rare_news(const char* address) {
  const int epoll = new_epoll();
  const Ends busy = known_to(epoll, address, 1);
  const Ends ends = known_to(epoll, address, 2);
  const int fd = ends.server;
  const auto wait_for = [epoll](uint64_t data, uint32_t events) {
    for (std::array<epoll_event, 1> told{};;) {
      must(epoll_wait(epoll, told.data(), told.size(), -1) > 0, "epoll_wait");
      if (told[0].data.u64 == data && (told[0].events & events) != 0) return;
    }
  };
  (void)control(epoll, EPOLL_CTL_MOD, busy.server, EPOLLOUT, 1);
  (void)control(epoll, EPOLL_CTL_MOD, fd, EPOLLOUT, 2);
  const std::vector<char> much(1 << 20, 'm');
  size_t sent = 0;
  for (ssize_t n = 0; n >= 0; sent += static_cast<size_t>(n)) {
    n = send(fd, much.data(), much.size(), MSG_DONTWAIT);
    if (n < 0) break;
  }
  std::thread reader{[&ends, sent] {
    std::vector<char> place(1 << 16);
    for (size_t n = 0; n < sent;) {
      const ssize_t came = recv(ends.client, place.data(), place.size(), 0);
      must(came > 0, "recv");
      n += static_cast<size_t>(came);
    }
  }};
  wait_for(2, EPOLLOUT);
  say("room", "comes");
  reader.join();
  (void)control(epoll, EPOLL_CTL_DEL, fd);
  (void)control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN, 2);
  (void)close(ends.client);
  wait_for(2, EPOLLIN);
  char byte = 0;
  say("an end", std::to_string(recv(fd, &byte, 1, 0)));
  (void)close(epoll);
}

void sleeper(const char* address) {
  const int epoll = new_epoll();
  const Ends ends = known_to(epoll, address, 1);
  (void)control(epoll, EPOLL_CTL_DEL, ends.server);
  put(ends.client, 's');
  arrive(ends.server);
  std::atomic<long> thread{0};
  epoll_event event{};
  std::thread waiter{[&] {
    thread = syscall(SYS_gettid);
    must(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");
  }};
  wait_until_sleeps_in_a_call(thread);
  (void)control(epoll, EPOLL_CTL_ADD, ends.server, EPOLLIN, 8);
  waiter.join();
  say("a sleeper", std::to_string(event.data.u64));
  (void)close(epoll);
}

// Others than the one epoll by its number.
void elsewhere(const char* address) {
  const int epoll = new_epoll();
  const Ends ends = known_to(epoll, address, 1);
  (void)control(epoll, EPOLL_CTL_MOD, ends.server, EPOLLOUT, 2);
  (void)control(epoll, EPOLL_CTL_MOD, ends.server, EPOLLIN, 3);
  put(ends.client, 'e');
  arrive(ends.server);
  const int outer = new_epoll();
  must(control(outer, EPOLL_CTL_ADD, epoll, EPOLLIN, 4) == 0, "epoll_ctl");
  say("an epoll in another", told(outer));
  pollfd polled{epoll, POLLIN, 0};
  say("poll", std::to_string(poll(&polled, 1, 0)));
  const Ends other = known_to(epoll, address, 5);
  const int second = new_epoll();
  (void)control(second, EPOLL_CTL_ADD, other.server, EPOLLIN, 6);
  put(other.client, 'o');
  arrive(other.server);
  say("one epoll", told(epoll));
  say("two epolls", told(second));
  const int number = dup(second);
  say("another number", told(number));
  (void)close(number);
  const int copy = dup(other.server);
  (void)close(other.server);
  say("another descriptor", told(second));
  // What has the number of an epoll that was tells nothing of its connections.
  const int third = new_epoll();
  const Ends last = known_to(third, address, 7);
  (void)control(third, EPOLL_CTL_MOD, last.server, EPOLLIN, 8);
  (void)close(third);
  must(new_epoll() == third, "the same number");
  put(last.client, 'l');
  arrive(last.server);
  say("a new epoll", told(third));
  (void)close(copy);
}

// Whether a connection that is told of has nothing in the kernel: by SDP its mirror would. TCP's
// bytes are the kernel's.
void without_kernel(const char* address) {
  constexpr int kRounds = 100;
  const int epoll = new_epoll();
  const Ends ends = known_to(epoll, address, 1);
  int domain = 0;
  socklen_t size = sizeof domain;
  (void)syscall(SYS_getsockopt, ends.server, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  int empty = 0;
  for (int round = 0; round < kRounds; ++round) {
    put(ends.client, static_cast<char>(round));
    arrive(ends.server);
    must(told(epoll) == "1 1:1", "told");
    int bytes = 0;
    (void)syscall(SYS_ioctl, ends.server, FIONREAD, &bytes);
    if (bytes == 0) ++empty;
    char byte = 0;
    must(recv(ends.server, &byte, 1, 0) == 1 && byte == static_cast<char>(round), "recv");
  }
  say("without the kernel", domain != AF_UNIX || empty > 0 ? "yes" : "no");
  (void)close(epoll);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  changes(argument[1]);
  rare_news(argument[1]);
  sleeper(argument[1]);
  elsewhere(argument[1]);
  without_kernel(argument[1]);
  return 0;
}
