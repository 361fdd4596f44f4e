// Children that come before the first connection, in the middle of other threads' connections, or
// execute a program that has a connection, or read what came before. Prints the same by TCP and by
// SDP.
//
//   sdp_children ADDRESS vfork|fork|threads|programs|unread

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

std::vector<char> distinct_bytes(size_t count) {
  std::vector<char> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  return bytes;
}

// Without a look at the data.
void wait_for_end_of_peer(int fd) {
  for (;;) {
    tcp_info info{};
    socklen_t size = sizeof info;
    must(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0, "TCP_INFO");
    if (info.tcpi_state == TCP_CLOSE_WAIT) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

// Whether all bytes come to the other end, and behind them its end.
bool moves_bytes(const Ends& ends) {
  const std::vector<char> sent = distinct_bytes(60'000);
  std::vector<char> came(sent.size());
  const auto size = static_cast<ssize_t>(sent.size());
  if (write(ends.client, sent.data(), sent.size()) != size) return false;
  if (recv(ends.server, came.data(), came.size(), MSG_WAITALL) != size || came != sent)
    return false;
  (void)shutdown(ends.client, SHUT_WR);
  return read(ends.server, came.data(), came.size()) == 0;
}

// Other threads connect, send and close, so that each of them may be anywhere in the library when a
// child begins, and the adapter is in the midst of its work.
void connect_meanwhile(const char* address) {
  constexpr int kChildren = 200;
  constexpr int kThreads = 4;
  std::atomic<int> begun{0};
  std::atomic<int> broken{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Listener listener = listener_at(address);
      for (bool first = true; !over; first = false) {
        const Ends ends = next_connection_to(listener);
        if (!moves_bytes(ends)) ++broken;
        (void)close(ends.server);
        (void)close(ends.client);
        if (first) ++begun;
      }
    });
  }
  while (begun < kThreads) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  int good = 0;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (reap(child) == 0) ++good;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("children: %d, connections without all their bytes: %d\n", good, broken.load());
}

void execute(std::string_view way, const char* script) {
  const char* const shell = "/bin/sh";
  const std::array<char*, 4> all{const_cast<char*>("sh"), const_cast<char*>("-c"),
                                 const_cast<char*>(script), nullptr};
  const std::array<char*, 2> environment{const_cast<char*>("WORD=word"), nullptr};
  if (way == "execv") (void)execv(shell, all.data());
  if (way == "execl") (void)execl(shell, "sh", "-c", script, nullptr);
  if (way == "execlp") (void)execlp("sh", "sh", "-c", script, nullptr);
  if (way == "execle") (void)execle(shell, "sh", "-c", script, nullptr, environment.data());
  if (way == "execveat") (void)execveat(AT_FDCWD, shell, all.data(), environment.data(), 0);
  if (way == "fexecve") (void)fexecve(open(shell, O_RDONLY), all.data(), environment.data());
}

// The program that a child of vfork() executes writes to a connection of the parent's.
void execute_in_children(const char* address) {
  for (const char* way : {"execv", "execl", "execlp", "execle", "execveat", "fexecve"}) {
    const Ends ends = connection(address);
    const std::string script = "echo said by its child with $WORD >&" + std::to_string(ends.client);
    const pid_t child = vfork();
    if (child == 0) {
      execute(way, script.c_str());
      _exit(1);
    }
    const int status = reap(child);
    (void)close(ends.client);
    std::string said;
    std::array<char, 100> bytes{};
    ssize_t n = 0;
    while ((n = read(ends.server, bytes.data(), bytes.size())) > 0)
      said.append(bytes.data(), static_cast<size_t>(n));
    (void)close(ends.server);
    std::printf("%s: %d, '%s'\n", way, status, said.c_str());
  }
}

// What came before a child began, the peer's end too, is the child's to read.
void read_in_children(const char* address) {
  for (const bool watched_by_epoll : {false, true}) {
    const Ends ends = connection(address);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    if (watched_by_epoll) (void)epoll_ctl(epoll, EPOLL_CTL_ADD, ends.server, &event);
    const std::vector<char> sent = distinct_bytes(60'000);
    must(write(ends.client, sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()),
         "write");
    (void)shutdown(ends.client, SHUT_WR);
    wait_for_end_of_peer(ends.server);
    pollfd waited{ends.server, POLLIN, 0};
    must(poll(&waited, 1, -1) == 1, "poll");
    const pid_t child = fork();
    if (child == 0) {
      std::vector<char> came(sent.size());
      const ssize_t n = recv(ends.server, came.data(), came.size(), MSG_WAITALL);
      std::printf("the child has read %zd, %s, and then %zd\n", n,
                  came == sent ? "as sent" : "others", read(ends.server, came.data(), came.size()));
      std::fflush(stdout);
      _exit(0);
    }
    (void)reap(child);
    (void)close(ends.client);
    (void)close(ends.server);
    (void)close(epoll);
  }
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  const std::string_view mode = argument[2];
  if (mode == "vfork") {
    close_in_child(argument[1]);
  } else if (mode == "threads") {
    connect_meanwhile(argument[1]);
  } else if (mode == "programs") {
    execute_in_children(argument[1]);
  } else if (mode == "unread") {
    read_in_children(argument[1]);
  } else {
    make_sockets_meanwhile();
  }
  return 0;
}
