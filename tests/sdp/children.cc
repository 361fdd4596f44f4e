// Children that come before the first connection. Prints the same by TCP and by SDP.
//
//   sdp_children ADDRESS vfork|fork

#include <sys/epoll.h>
#include <sys/wait.h>

#include <atomic>
#include <string_view>
#include <thread>

#include "tests/sdp/ends.h"

namespace {

int reap(pid_t child) {
  int status = 0;
  must(waitpid(child, &status, 0) == child, "waitpid");
  return status;
}

// What the child closes is its own.
void close_in_child(const char* address) {
  const Listener listener = listener_at(address);
  const pid_t child = vfork();
  if (child == 0) {
    (void)close(listener.fd);
    _exit(0);
  }
  const int status = reap(child);
  const Ends ends = connection_to(listener);
  std::printf("child: %d, connected: %s\n", status, ends.server >= 0 ? "yes" : "no");
}

// Another thread makes sockets, so that a lock may be taken when the child begins.
void make_sockets_meanwhile() {
  constexpr int kChildren = 2000;
  std::atomic<bool> over{false};
  std::thread other{[&] {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    while (!over) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      epoll_event event{};
      event.events = EPOLLIN;
      (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
      (void)close(fd);
    }
  }};
  int good = 0;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      _exit(fd >= 0 ? 0 : 1);
    }
    if (reap(child) == 0) ++good;
  }
  over = true;
  other.join();
  std::printf("children that made a socket: %d\n", good);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  if (std::string_view{argument[2]} == "vfork") {
    close_in_child(argument[1]);
  } else {
    make_sockets_meanwhile();
  }
  return 0;
}
