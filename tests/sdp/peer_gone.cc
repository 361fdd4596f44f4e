// Writers whose peer is gone: it ended its half before, or has sent what nobody reads. They end
// with an error, and are not left to wait. Prints the same by TCP and by SDP.
//
//   sdp_peer_gone ADDRESS relayed|direct

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "tests/sdp/ends.h"

namespace {

struct Ending {
  const char* name;
  bool ends_half;  // else it sends what nobody reads
  bool killed;     // else it closes
};

constexpr Ending kEndings[] = {{"ended its half, then closed", true, false},
                               {"ended its half, then was killed", true, true},
                               {"left bytes, then closed", false, false},
                               {"left bytes, then was killed", false, true}};

int write_until_it_fails(int fd) {
  const std::array<char, 4096> bytes{};
  while (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
  }
  return errno;
}

// What is on its way to a relay, or in the kernel, makes room for a moment.
void fill(int fd) {
  must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
  pollfd room{fd, POLLOUT, 0};
  do must(write_until_it_fails(fd) == EAGAIN, "write");
  while (poll(&room, 1, 100) == 1);
}

struct Pipe {
  Pipe() { must(pipe(ends.data()) == 0, "pipe"); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends) (void)close(end);
  }
  template <class T>
  void put(T value) const {
    must(write(ends[1], &value, sizeof value) == sizeof value, "write");
  }
  template <class T>
  T take() const {
    T value{};
    must(read(ends[0], &value, sizeof value) == sizeof value, "read");
    return value;
  }
  std::array<int, 2> ends{};
};

// A process of its own, made before the library begins, that connects, and is gone when it is told.
struct Peer {
  explicit Peer(const Ending& ending) : child(fork()) {
    if (child == 0) be(ending);
  }

  [[noreturn]] void be(const Ending& ending) const {
    const auto at = where.take<sockaddr_in>();
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, "connect");
    if (ending.ends_half) must(shutdown(fd, SHUT_WR) == 0, "shutdown");
    told.take<char>();
    if (!ending.ends_half) fill(fd);
    if (ending.killed) (void)kill(getpid(), SIGKILL);
    (void)close(fd);
    _exit(0);
  }

  int accepted(const char* address) const {
    const Listener listener = listener_at(address);
    where.put(listener.at);
    const int fd = accept(listener.fd, nullptr, nullptr);
    must(fd >= 0, "accept");
    (void)close(listener.fd);
    return fd;
  }
  void go() const { told.put('x'); }

  Pipe where;
  Pipe told;
  pid_t child;
};

// The peer goes when the writer sleeps in its call.
int error_of_writer(int fd, const Peer& peer) {
  std::atomic<long> thread{0};
  int error = 0;
  std::thread writer{[&] {
    thread = ::syscall(SYS_gettid);
    error = write_until_it_fails(fd);
  }};
  wait_until_sleeps_in_a_call(thread);
  peer.go();
  writer.join();
  return error;
}

const char* name_of(int error) {
  return error == EPIPE || error == ECONNRESET ? "no peer" : std::strerror(error);
}

// A child of fork writes: its connection is relayed.
void relayed(const char* address, const Ending& ending) {
  const Peer peer{ending};
  const int fd = peer.accepted(address);
  const pid_t writer = fork();
  if (writer == 0) {
    std::printf("%s: write: %s\n", ending.name, name_of(error_of_writer(fd, peer)));
    _exit(0);
  }
  (void)close(fd);
  int status = 0;
  must(waitpid(writer, &status, 0) == writer && status == 0, "the writer");
  must(waitpid(peer.child, &status, 0) == peer.child, "the peer");
}

// Until there is something to be told: whether it is room that a write would find.
bool epoll_tells(int fd) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLOUT;
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  const int n = epoll_wait(epoll, &event, 1, 5000);
  (void)close(epoll);
  return n == 1 && (event.events & EPOLLOUT) != 0;
}

bool poll_tells(int fd) {
  pollfd waited{fd, POLLOUT, 0};
  return poll(&waited, 1, 5000) == 1 && (waited.revents & POLLOUT) != 0;
}

void direct(const char* address, const Ending& ending) {
  {
    const Peer peer{ending};
    const int fd = peer.accepted(address);
    std::printf("%s: write: %s\n", ending.name, name_of(error_of_writer(fd, peer)));
    (void)close(fd);
  }
  for (const auto tells : {poll_tells, epoll_tells}) {
    const Peer peer{ending};
    const int fd = peer.accepted(address);
    // The end of its half is told before.
    pollfd ended{fd, POLLIN, 0};
    if (ending.ends_half) must(poll(&ended, 1, -1) == 1, "poll");
    fill(fd);
    std::atomic<long> thread{::syscall(SYS_gettid)};
    std::thread later{[&] {
      wait_until_sleeps_in_a_call(thread);
      peer.go();
    }};
    const bool told = tells(fd);
    later.join();
    std::printf("%s: %s: %s, write: %s\n", ending.name, tells == poll_tells ? "poll" : "epoll",
                told ? "told" : "not told", name_of(write_until_it_fails(fd)));
    (void)close(fd);
  }
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto run = std::string_view{argument[2]} == "relayed" ? relayed : direct;
  for (const Ending& ending : kEndings) {
    // The library begins in a process of its own, behind the fork of the peer.
    const pid_t child = fork();
    if (child == 0) {
      // What waits for ever fails the test.
      (void)alarm(12);
      run(argument[1], ending);
      _exit(0);
    }
    int status = 0;
    must(waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0) std::printf("%s: it waits for ever\n", ending.name);
  }
  return 0;
}
