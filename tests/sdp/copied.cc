// A socket that has copies before it connects: each of them is connected then. Prints the same by
// TCP and by SDP.
//
//   sdp_copied ADDRESS copies|moved

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <array>
#include <cstring>
#include <string_view>

#include "tests/sdp/ends.h"

namespace {

int connected_to(const Listener& listener, int fd) {
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  must(connect(fd, at, sizeof listener.at) == 0, "connect");
  const int server = accept(listener.fd, nullptr, nullptr);
  must(server >= 0, "accept");
  return server;
}

// Both ways by each descriptor.
void talk(const char* name, std::initializer_list<int> clients, int server) {
  std::printf("%s:", name);
  for (const int fd : clients) {
    std::array<char, 6> bytes{};
    const ssize_t sent = send(fd, "asked", 5, MSG_NOSIGNAL);
    const ssize_t came = sent == 5 ? recv(server, bytes.data(), 5, MSG_WAITALL) : 0;
    std::printf(" %zd, %zd %s", sent, came, bytes.data());
    bytes.fill(0);
    const ssize_t back = send(server, "told", 4, MSG_NOSIGNAL);
    const ssize_t got = came == 5 ? recv(fd, bytes.data(), 4, MSG_WAITALL) : 0;
    std::printf(", %zd, %zd %s;", back, got, bytes.data());
  }
  std::printf("\n");
}

template <class Copy>
void connect_copied(const char* address, const char* name, Copy copy) {
  const Listener listener = listener_at(address);
  for (const bool by_copy : {false, true}) {
    const int first = socket(AF_INET, SOCK_STREAM, 0);
    const int second = copy(first);
    must(second >= 0, name);
    const int server = connected_to(listener, by_copy ? second : first);
    talk(name, {first, second}, server);
    for (const int fd : {first, second, server}) (void)close(fd);
  }
  (void)close(listener.fd);
}

void connect_with_stdio(const char* address) {
  const Listener listener = listener_at(address);
  FILE* const file = fdopen(socket(AF_INET, SOCK_STREAM, 0), "r+");
  must(file != nullptr, "fdopen");
  const int server = connected_to(listener, fileno(file));
  must(send(server, "a line\n", 7, 0) == 7 && shutdown(server, SHUT_WR) == 0, "send");
  std::array<char, 20> line{};
  const bool got = std::fgets(line.data(), line.size(), file) != nullptr;
  std::printf("fdopen: %s", got ? line.data() : "nothing\n");
  must(std::fputs("an answer", file) >= 0 && std::fclose(file) == 0, "fputs");
  std::array<char, 20> answer{};
  const ssize_t n = recv(server, answer.data(), answer.size() - 1, MSG_WAITALL);
  std::printf("fdopen: %zd, %s\n", n, answer.data());
  (void)close(server);
  (void)close(listener.fd);
}

int passed_copy(int fd) {
  std::array<int, 2> pair{};
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0, "socketpair");
  pass(fd, pair[0]);
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  must(recvmsg(pair[1], &message, 0) == 1, "recvmsg");
  int copy = -1;
  std::memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof copy);
  for (const int end : pair) (void)close(end);
  return copy;
}

// The sender of a copy connects.
void connect_passed(const char* address) {
  const Listener listener = listener_at(address);
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  const int second = passed_copy(first);
  const int server = connected_to(listener, first);
  talk("SCM_RIGHTS", {first, second}, server);
  for (const int fd : {first, second, server, listener.fd}) (void)close(fd);
}

// The parent has one copy, and a child another one, which says what it reads and answers.
void connect_with_child(const char* address, bool connects_in_child) {
  const Listener listener = listener_at(address);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  std::array<int, 2> go{};
  must(pipe(go.data()) == 0, "pipe");
  const auto connect_here = [&] {
    const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
    must(connect(client, at, sizeof listener.at) == 0, "connect");
  };
  const auto answer = [&](const char* with) {
    std::array<char, 6> bytes{};
    if (recv(client, bytes.data(), 5, MSG_WAITALL) != 5) bytes = {"none"};
    (void)send(client, with, 5, MSG_NOSIGNAL);
  };
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (connects_in_child) {
      connect_here();
      must(write(go[1], "x", 1) == 1, "write");
    } else {
      must(read(go[0], &byte, 1) == 1, "read");
      answer("child");
    }
    _exit(0);
  }
  int server = -1;
  if (connects_in_child) {
    char byte = 0;
    must(read(go[0], &byte, 1) == 1, "read");
    server = accept(listener.fd, nullptr, nullptr);
    must(send(server, "asked", 5, 0) == 5, "send");
    answer("paren");
  } else {
    connect_here();
    server = accept(listener.fd, nullptr, nullptr);
    must(send(server, "asked", 5, 0) == 5 && write(go[1], "x", 1) == 1, "send");
  }
  std::array<char, 6> bytes{};
  const ssize_t n = recv(server, bytes.data(), 5, MSG_WAITALL);
  std::printf("fork, %s connects: %zd %s\n", connects_in_child ? "child" : "parent", n,
              bytes.data());
  must(waitpid(child, nullptr, 0) == child, "waitpid");
  for (const int fd : {client, server, listener.fd, go[0], go[1]}) (void)close(fd);
}

// One that was only moved to another number is as any other. An epoll knows it by that.
void connect_moved(const char* address) {
  const Listener listener = listener_at(address);
  const int first = socket(AF_INET, SOCK_STREAM, 0);
  const int fd = fcntl(first, F_DUPFD_CLOEXEC, 100);
  must(fd >= 100 && close(first) == 0, "fcntl");
  const int epoll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 17;
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  const int server = connected_to(listener, fd);
  talk("moved", {fd}, server);
  must(send(server, "more", 4, 0) == 4, "send");
  event = {};
  const int n = epoll_wait(epoll, &event, 1, 5000);
  std::printf("epoll_wait: %d, %d, %s\n", n, static_cast<int>(event.data.u64),
              event.events == EPOLLIN ? "readable" : "another event");
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  const char* const address = argument[1];
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (std::string_view{argument[2]} == "moved") {
    connect_moved(address);
    return 0;
  }
  connect_copied(address, "dup", [](int fd) { return dup(fd); });
  connect_copied(address, "F_DUPFD", [](int fd) { return fcntl(fd, F_DUPFD, 50); });
  connect_copied(address, "dup2", [](int fd) { return dup2(fd, 60); });
  connect_copied(address, "dup3", [](int fd) { return dup3(fd, 61, O_CLOEXEC); });
  connect_copied(address, "a copy of a copy", [](int fd) {
    const int copy = dup(fd);
    const int other = dup(copy);
    (void)close(copy);
    return other;
  });
  connect_with_stdio(address);
  connect_passed(address);
  for (const bool in_child : {false, true}) connect_with_child(address, in_child);
  return 0;
}
