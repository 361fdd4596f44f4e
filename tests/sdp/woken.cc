// A signal that comes right behind an answer ends the call that its thread waits in, although the
// library looks for a while before it lets the kernel wait. Prints the same by TCP and by SDP.
//
//   sdp_woken ADDRESS

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/sdp/ends.h"

namespace {

constexpr int kRounds = 100;
// A signal may come in the moment before the call, by TCP as well.
constexpr int kBetween = 3;
constexpr std::chrono::seconds kLost{2};

enum class Call { poll, epoll, select, recv };

volatile std::sig_atomic_t g_signals = 0;

void count(int /*signal*/) {
  g_signals = g_signals + 1;
}

// The result of one wait for input.
int wait_by(Call call, int fd, int epoll) {
  switch (call) {
    case Call::poll: {
      pollfd one{fd, POLLIN, 0};
      return poll(&one, 1, -1);
    }
    case Call::epoll: {
      epoll_event event{};
      return epoll_wait(epoll, &event, 1, -1);
    }
    case Call::select: {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(fd, &set);
      return select(fd + 1, &set, nullptr, nullptr, nullptr);
    }
    case Call::recv:
      break;
  }
  return 1;
}

// Answers each byte; counts the signals that it has seen between two calls.
void serve(Call call, int fd, std::atomic<int>& seen) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  while (true) {
    seen = g_signals;
    if (wait_by(call, fd, epoll) <= 0) continue;
    char byte = 0;
    const ssize_t n = recv(fd, &byte, 1, 0);
    if (n == 0) break;
    if (n == 1) must(send(fd, &byte, 1, 0) == 1, "send");
  }
  (void)close(epoll);
}

void exchange(int fd) {
  char byte = 'x';
  must(send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, MSG_WAITALL) == 1, "an answer");
}

bool ends(Call call, const char* address) {
  const Ends both = connection(address);
  std::atomic<int> seen{0};
  std::thread server{serve, call, both.server, std::ref(seen)};
  int lost = 0;
  for (int round = 0; round < kRounds && lost <= kBetween; ++round) {
    for (int i = 0; i < 20; ++i) exchange(both.client);
    const int before = g_signals;
    must(pthread_kill(server.native_handle(), SIGUSR1) == 0, "pthread_kill");
    const auto end = std::chrono::steady_clock::now() + kLost;
    while (seen == before && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    if (seen != before) continue;
    ++lost;
    exchange(both.client);
  }
  (void)shutdown(both.client, SHUT_WR);
  server.join();
  return lost <= kBetween;
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  struct sigaction action {};
  action.sa_handler = count;  // without SA_RESTART
  (void)sigaction(SIGUSR1, &action, nullptr);
  for (const auto& [name, call] :
       {std::pair{"poll", Call::poll}, std::pair{"epoll", Call::epoll},
        std::pair{"select", Call::select}, std::pair{"recv", Call::recv}}) {
    std::printf("%s: %s\n", name, ends(call, argument[1]) ? "ends" : "sleeps on");
  }
  return 0;
}
